"""The results of dbt commands: the ending, counts and failed nodes in the registry, and copies of dbt's own results.

dbt's `run_results.json` has the results of the last command only.
"""

from __future__ import annotations

import enum
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from dbt.adapters.silt.engine.kernel import owned_folders

RESULTS_FILE: Final = "run_results.json"

COUNTED: Final = ("pass", "warn", "error", "skip", "reused")
"""The counted outcomes, in display order."""

_RAN: Final = frozenset(COUNTED) - {"skip"}

_MOST_FAILED: Final = 200
_LONGEST_PROBLEM: Final = 500
"""Characters."""


FOLDER: Final = "silt_results"

COMMANDS: Final = 60
"""The number of commands whose results are kept."""
_NODES: Final = 2_000
_MESSAGE: Final = 1_000
"""Characters of a node's message."""
_COPIED: Final = ("unique_id", "status", "thread_id", "timing", "failures")
_RESPONSE: Final = ("run_id", "table", "table_version", "skipped", "reused")
_IS_ID: Final = re.compile(r"[\w-]{1,200}")


class Ending(enum.StrEnum):
    """How a dbt command ended."""

    SUCCESS = "success"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class CommandResult:
    """The result of a dbt command.

    Attributes:
        ending: how it ended.
        counts: the number of nodes and tests by outcome: `pass`, `warn`, `error`, `skip`, and `reused` for a node whose
            work is in an earlier commit. Empty if dbt has left no results.
        failed: the unique ids of the nodes and tests that failed, in the order of dbt's results; at most 200.
        problem: the error that ended the command, if it was not an error of a node.
        left: the unique ids of the nodes and tests that failed in an earlier command of the run and that this command
            did not run; at most 200.
        upkeep: the upkeep at its end, as a line, if there was any.
    """

    ending: Ending
    counts: Mapping[str, int] = field(default_factory=dict)
    failed: tuple[str, ...] = ()
    problem: str | None = None
    left: tuple[str, ...] = ()
    upkeep: str | None = None

    @classmethod
    def of(
        cls,
        ending: Ending,
        results: Sequence[Mapping[str, Any]],
        problem: str | None = None,
        earlier: Sequence[str] = (),
    ) -> CommandResult:
        """Summarises a command.

        Args:
            results: results of its nodes, as in dbt's `run_results.json`.
            problem: the error's message; it is shortened.
            earlier: the unique ids of the nodes and tests that had failed in the run before this command.
        """
        outcomes = [(str(each.get("unique_id")), _outcome(each)) for each in results]
        counted = Counter(outcome for _, outcome in outcomes)
        failed = tuple(unique_id for unique_id, outcome in outcomes if outcome == "error")
        ran = {unique_id for unique_id, outcome in outcomes if outcome in _RAN}
        left = tuple(unique_id for unique_id in earlier if unique_id not in ran)
        counts = {name: counted[name] for name in COUNTED} if results else {}
        shortened = problem and " ".join(problem.split())[:_LONGEST_PROBLEM]
        return cls(ending, counts, failed[:_MOST_FAILED], shortened, left[:_MOST_FAILED])

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> CommandResult:
        """Parses the output of `to_json`.

        Raises:
            KeyError, ValueError: if it is not such output.
        """
        counts = {str(name): int(count) for name, count in body.get("counts", {}).items()}
        failed, left = (tuple(map(str, body.get(name, ()))) for name in ("failed", "left"))
        return cls(Ending(body["ending"]), counts, failed, body.get("problem"), left, body.get("upkeep"))

    def to_json(self) -> dict[str, Any]:
        lists = {"failed": list(self.failed), "left": list(self.left)}
        kept = {"counts": dict(self.counts), **lists, "problem": self.problem, "upkeep": self.upkeep}
        return {"ending": self.ending.value, **{name: value for name, value in kept.items() if value}}


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
        self._folder.parent.mkdir(parents=True, exist_ok=True)
        owned_folders.create(str(self._folder))
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

    def results_of(self, invocation_id: str) -> Sequence[Mapping[str, Any]] | None:
        """Returns the results of a command's nodes; None if not all of them are kept."""
        results = (self.of(invocation_id) or {}).get("results")
        if not isinstance(results, list) or len(results) >= _NODES:
            return None
        return [each for each in results if isinstance(each, Mapping)]

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


def is_on_run_hook(unique_id: str) -> bool:
    """Returns whether the unique id of a node is that of a hook of `on-run-start` or `on-run-end`."""
    return unique_id.startswith("operation.")


def node_name(unique_id: str) -> str:
    """Returns the name in a unique id of dbt: `orders` for `model.shop.orders`, and a model's version."""
    kind, *rest = unique_id.split(".")
    # A generic test has a hash after its name.
    own = rest[1:2] if kind == "test" else rest[1:]
    return ".".join(own) or unique_id


def results_of_command(folder: Path, invocation_id: str) -> Sequence[Mapping[str, Any]]:
    """Reads the results of a command's nodes from dbt's target folder; empty if the command has left no results there.

    Raises:
        OSError: if the file cannot be read.
        ValueError: if the file is not an artifact of dbt.
    """
    try:
        document = json.loads((folder / RESULTS_FILE).read_bytes())
        is_own = document["metadata"]["invocation_id"] == invocation_id
        return [dict(each) for each in document["results"]] if is_own else ()
    except FileNotFoundError:
        return ()
    except (KeyError, TypeError) as error:
        raise ValueError(f"{RESULTS_FILE} is not an artifact of dbt") from error


def replace_results(folder: Path, document: Mapping[str, Any]) -> None:
    """Replaces dbt's results, so that a reader sees the old or the new document.

    Raises:
        OSError: if the file cannot be written.
    """
    path = folder / RESULTS_FILE
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    temporary.write_text(json.dumps(document), encoding="utf-8")
    os.replace(temporary, path)


def is_failed(result: Mapping[str, Any]) -> bool:
    """Returns whether a node or test of dbt's results failed."""
    return _outcome(result) == "error"


def last_outcomes(commands: Iterable[Sequence[Mapping[str, Any]]]) -> dict[str, str]:
    """Returns the last outcome of each node and test, by its unique id; a skip is not the result of a failed node.

    Args:
        commands: the results of each command, oldest first.
    """
    found: dict[str, str] = {}
    for each in (result for results in commands for result in results):
        unique_id, outcome = str(each.get("unique_id")), _outcome(each)
        if outcome is not None and not (outcome == "skip" and found.get(unique_id) == "error"):
            found.pop(unique_id, None)
            found[unique_id] = outcome
    return found


def is_skipped(result: Mapping[str, Any]) -> bool:
    """Returns whether a node or test of dbt's results was skipped, because a node before it failed."""
    return _outcome(result) == "skip"


_OUTCOMES: Final = {
    "success": "pass",
    "pass": "pass",
    "warn": "warn",
    "error": "error",
    "fail": "error",
    "runtime error": "error",
    "partial success": "error",
    "skipped": "skip",
}


def _outcome(result: Mapping[str, Any]) -> str | None:
    """Returns the counted outcome, or None for dbt's `no-op`."""
    outcome = _OUTCOMES.get(str(result.get("status")))
    is_reused = (result.get("adapter_response") or {}).get("skipped") is True
    return "reused" if outcome == "pass" and is_reused else outcome


def _shortened(result: Mapping[str, Any]) -> dict[str, Any]:
    response = result.get("adapter_response") or {}
    message = result.get("message")
    return {
        **{name: result[name] for name in _COPIED if name in result},
        "message": message[:_MESSAGE] if isinstance(message, str) else None,
        "adapter_response": {name: response[name] for name in _RESPONSE if name in response},
    }
