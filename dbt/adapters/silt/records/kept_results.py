"""Keeps the results of a project's last commands, node by node: `run_results.json` has the last command only."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from dbt.adapters.silt.records.command_result import is_failed

FOLDER: Final = "silt_results"
COMMANDS: Final = 60
"""The number of commands whose results are kept."""

_NODES: Final = 2_000
_MESSAGE: Final = 1_000
"""Characters of a node's message."""

_COPIED: Final = ("unique_id", "status", "thread_id", "timing", "failures")
_RESPONSE: Final = ("run_id", "table", "table_version", "skipped")
_IS_ID: Final = re.compile(r"[\w-]{1,200}")


class KeptResults:
    """The folder `silt_results` of a target folder, with a file for each of the last commands.

    A file has the form of `run_results.json`, with the data for a timeline: at most 2,000 nodes, failed nodes first,
    and messages of at most 1,000 characters.

    Args:
        target_path: dbt's target path.
    """

    def __init__(self, target_path: Path) -> None:
        self._folder = target_path / FOLDER

    def keep(self, invocation_id: str, which: str, results: Sequence[Mapping[str, Any]]) -> None:
        """Writes the results of a command, and deletes the results of the oldest commands.

        Args:
            which: dbt's name of the command.
            results: with the structure of dbt's `run_results.json`.

        Raises:
            OSError: if they cannot be written.
        """
        kept = sorted(results, key=lambda each: not is_failed(each))[:_NODES]
        document = {
            "metadata": {"invocation_id": invocation_id},
            "args": {"which": which},
            "results": [_shortened(each) for each in kept],
        }
        self._folder.mkdir(parents=True, exist_ok=True)
        temporary = self._folder / f"{invocation_id}.{os.getpid()}.tmp"
        temporary.write_text(json.dumps(document), encoding="utf-8")
        os.replace(temporary, self._path(invocation_id))
        self._forget()

    def of(self, invocation_id: str) -> Mapping[str, Any] | None:
        """Returns the document of a command, if it is kept and valid."""
        if not _IS_ID.fullmatch(invocation_id):
            return None
        try:
            found = json.loads(self._path(invocation_id).read_bytes())
        except (OSError, ValueError, RecursionError):
            return None
        return found if isinstance(found, Mapping) else None

    def _path(self, invocation_id: str) -> Path:
        return self._folder / f"{invocation_id}.json"

    def _forget(self) -> None:
        for _, path in sorted(self._by_age(), reverse=True)[COMMANDS:]:
            path.unlink(missing_ok=True)

    def _by_age(self) -> Iterator[tuple[int, Path]]:
        for path in self._folder.glob("*.json"):
            try:
                yield path.stat().st_mtime_ns, path
            except FileNotFoundError:  # another command has deleted it
                continue


def _shortened(result: Mapping[str, Any]) -> dict[str, Any]:
    response = result.get("adapter_response") or {}
    message = result.get("message")
    return {
        **{name: result[name] for name in _COPIED if name in result},
        "message": message[:_MESSAGE] if isinstance(message, str) else None,
        "adapter_response": {name: response[name] for name in _RESPONSE if name in response},
    }
