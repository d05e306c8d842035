"""Reads dbt's artifacts in a target folder, without dbt, and the results of commands by node.

A missing or unreadable artifact is not an error: the page then shows less, and explains why.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final

from dbt.adapters.silt.engine.kernel.errors import SiltError
from dbt.adapters.silt.records.command_result import KeptResults
from dbt.adapters.silt.records.project_records import ProjectRecords

MANIFEST: Final = "manifest.json"
RESULTS: Final = "run_results.json"
SOURCES: Final = "sources.json"

_EMPTY: Final[Mapping[str, Any]] = {}

_RUNNING: Final = ("build", "run", "seed", "snapshot", "clone", "test", "retry")
"""The commands of dbt that run nodes: the results of `compile` say nothing about the warehouse."""

_FAILED: Final = ("error", "fail", "runtime error", "partial success")


@dataclass(frozen=True)
class Artifacts:
    """The content of a project's target folder; empty without a project.

    Attributes:
        manifest, results, sources: the documents of these files; empty if they cannot be read.
        records: records of the project's runs.
        kept: the results of the project's last commands, if there is a project.
        notes: sentences that explain missing data to users.
    """

    manifest: Mapping[str, Any] = field(default_factory=dict)
    results: Mapping[str, Any] = field(default_factory=dict)
    sources: Mapping[str, Any] = field(default_factory=dict)
    records: ProjectRecords = field(default_factory=ProjectRecords)
    kept: KeptResults | None = None
    notes: tuple[str, ...] = ()

    @property
    def results_invocation(self) -> str | None:
        """dbt's id of the command that wrote `run_results.json`."""
        return text(mapping(self.results, "metadata"), "invocation_id")

    def results_of(self, invocation_id: str) -> Sequence[NodeResult]:
        """Returns the results of the nodes of a command, if they are kept; at most 2,000."""
        kept = None if self.kept is None else self.kept.of(invocation_id)
        if kept is None and invocation_id == self.results_invocation:
            kept = self.results
        return node_results(kept or {})

    @classmethod
    def of(cls, target_path: Path | None) -> Artifacts:
        """Reads a target folder; returns empty artifacts without a project."""
        if target_path is None:
            return cls(notes=("No dbt project was given: models, failures and skips are unknown.",))
        notes: list[str] = []
        manifest = _document(target_path / MANIFEST, notes)
        if not (target_path / MANIFEST).exists():
            notes.append(f"{MANIFEST} is not in {target_path.name}/: the graph of models is unknown.")
        results, sources = (_document(target_path / name, notes) for name in (RESULTS, SOURCES))
        return cls(manifest, results, sources, _records(target_path, notes), KeptResults(target_path), tuple(notes))


def members(document: Mapping[str, Any], name: str) -> Mapping[str, Mapping[str, Any]]:
    """Returns the objects of a field of an artifact by name; omits values of any other form."""
    found = mapping(document, name)
    return {key: value for key, value in found.items() if isinstance(value, Mapping)}


def mapping(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Returns a field that is an object; an empty object if it is missing or of another type."""
    found = document.get(name)
    return found if isinstance(found, Mapping) else _EMPTY


def items(document: Mapping[str, Any], name: str) -> Sequence[Mapping[str, Any]]:
    """Returns the objects that a field of an artifact lists; omits values of any other form."""
    found = document.get(name)
    return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else ()


def text(document: Mapping[str, Any], name: str) -> str | None:
    """Returns a field if it is a nonempty string."""
    found = document.get(name)
    return found if isinstance(found, str) and found else None


def number(document: Mapping[str, Any], name: str) -> int | None:
    """Returns a field if it is a whole number."""
    found = document.get(name)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def milliseconds(moment: object) -> int | None:
    """Returns an ISO 8601 time as milliseconds since 1970-01-01 UTC; a time without a zone is in UTC, as in dbt."""
    if not isinstance(moment, str):
        return None
    try:
        found = datetime.fromisoformat(moment.replace("Z", "+00:00"))
    except ValueError:
        return None
    zoned = found if found.tzinfo else found.replace(tzinfo=timezone.utc)
    return round(zoned.timestamp() * 1000)


def _document(path: Path, notes: list[str]) -> Mapping[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        notes.append(f"{path.name} cannot be read, and is left out: {error}")
        return {}
    if isinstance(found, Mapping):
        return found
    notes.append(f"{path.name} is not an artifact of dbt, and is left out.")
    return {}


def _records(target_path: Path, notes: list[str]) -> ProjectRecords:
    try:
        return ProjectRecords.of(target_path)
    except SiltError as error:
        notes.append(f"{error.problem}; its records are left out.")
        return ProjectRecords()


@dataclass(frozen=True)
class NodeResult:
    """The result of a node.

    Attributes:
        state: `built`; `done earlier`, by an earlier command of the run; `reused`, because a build would write the rows
            that its table holds; `skipped`, because another node failed; `failed`; for a test `passed` or `warned`; or
            dbt's own status.
        thread: dbt's thread.
        started_ms, ended_ms: milliseconds since 1970-01-01 UTC; None if it was not run.
        message: the reason of its failure, or a summary of its work.
        table, version: written by the node, or by an earlier commit of its work.
        failures: the number of rows that a test returned.
    """

    node: str
    state: str
    thread: str = ""
    started_ms: int | None = None
    ended_ms: int | None = None
    message: str = ""
    table: str | None = None
    version: int | None = None
    failures: int | None = None


@dataclass(frozen=True)
class LeftResults:
    """The content of `run_results.json`, if no record names its command: another version or program has run it.

    Attributes:
        run_id: its logical run; without a record, the invocation id.
        which: dbt's name of the command, such as `build`.
    """

    invocation_id: str
    run_id: str
    which: str
    results: tuple[NodeResult, ...]


def left_results(artifacts: Artifacts) -> LeftResults | None:
    """Returns the results in `run_results.json`, if their command is not recorded and has built or tested nodes."""
    invocation, found = artifacts.results_invocation, node_results(artifacts.results)
    which = text(mapping(artifacts.results, "args"), "which") or ""
    recorded = {each.invocation_id for each in artifacts.records.commands}
    if invocation is None or not found or which not in _RUNNING or invocation in recorded:
        return None
    said = (text(mapping(each, "adapter_response"), "run_id") for each in items(artifacts.results, "results"))
    return LeftResults(invocation, next((each for each in said if each), None) or invocation, which, found)


def node_results(document: Mapping[str, Any]) -> tuple[NodeResult, ...]:
    """Returns the results in a document with the structure of `run_results.json`."""
    return tuple(_result(each) for each in items(document, "results") if text(each, "unique_id"))


def _result(body: Mapping[str, Any]) -> NodeResult:
    response = mapping(body, "adapter_response")
    times = [_times(each) for each in items(body, "timing")]
    starts, ends = ([time[end] for time in times if time[end] is not None] for end in (0, 1))
    return NodeResult(
        str(body["unique_id"]),
        _state(str(body.get("status")), response, text(body, "message") or ""),
        text(body, "thread_id") or "",
        min((each for each in starts if each is not None), default=None),
        max((each for each in ends if each is not None), default=None),
        text(body, "message") or "",
        text(response, "table"),
        number(response, "table_version"),
        number(body, "failures"),
    )


def _state(status: str, response: Mapping[str, Any], message: str) -> str:
    if status in _FAILED:
        return "failed"
    if response.get("skipped") is True and status != "skipped":
        return "reused" if _is_reuse(response, message) else "done earlier"
    return {"success": "built", "pass": "passed", "warn": "warned"}.get(status, status)


def _is_reuse(response: Mapping[str, Any], message: str) -> bool:
    """Returns whether a node without work was reused; kept results of earlier versions show it in the message only."""
    return response.get("reused") is True or message.startswith("reused: ")


def _times(timing: Mapping[str, Any]) -> tuple[int | None, int | None]:
    return milliseconds(timing.get("started_at")), milliseconds(timing.get("completed_at"))
