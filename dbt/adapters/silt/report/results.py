"""Reads the results of the last dbt command by node, from `run_results.json`, with threads and times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from dbt.adapters.silt.report.artifacts import Artifacts, items, mapping, milliseconds, number, text

_FAILED: Final = ("error", "fail", "runtime error", "partial success")


@dataclass(frozen=True)
class NodeResult:
    """The result of a node.

    Attributes:
        state: `built`, `skipped` (its work is in an earlier commit), `blocked` (not run, because another node failed),
            `failed`; for a test `passed` or `warned`; or dbt's own status.
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
class CommandResults:
    """The results of a dbt command.

    Attributes:
        run_id: its logical run; without a record, the invocation id.
        command: such as `build`.
    """

    invocation_id: str
    run_id: str
    command: str
    results: tuple[NodeResult, ...]


def results_of(artifacts: Artifacts) -> CommandResults | None:
    """Returns the results of the command that wrote `run_results.json`, if it has results."""
    invocation = text(mapping(artifacts.results, "metadata"), "invocation_id")
    found = node_results(artifacts.results)
    if invocation is None or not found:
        return None
    recorded = (each.run_id for each in artifacts.records.commands if each.invocation_id == invocation)
    said = (text(mapping(each, "adapter_response"), "run_id") for each in items(artifacts.results, "results"))
    run_id = next(recorded, None) or next((each for each in said if each), None) or invocation
    return CommandResults(invocation, run_id, text(mapping(artifacts.results, "args"), "which") or "", found)


def node_results(document: Mapping[str, Any]) -> tuple[NodeResult, ...]:
    """Returns the results in a document with the structure of `run_results.json`."""
    return tuple(_result(each) for each in items(document, "results") if text(each, "unique_id"))


def _result(body: Mapping[str, Any]) -> NodeResult:
    response = mapping(body, "adapter_response")
    times = [_times(each) for each in items(body, "timing")]
    starts, ends = ([time[end] for time in times if time[end] is not None] for end in (0, 1))
    return NodeResult(
        str(body["unique_id"]),
        _state(str(body.get("status")), response),
        text(body, "thread_id") or "",
        min((each for each in starts if each is not None), default=None),
        max((each for each in ends if each is not None), default=None),
        text(body, "message") or "",
        text(response, "table"),
        number(response, "table_version"),
        number(body, "failures"),
    )


def _state(status: str, response: Mapping[str, Any]) -> str:
    if status in _FAILED:
        return "failed"
    if status == "skipped":
        return "blocked"
    if response.get("skipped") is True:
        return "skipped"
    return {"success": "built", "pass": "passed", "warn": "warned"}.get(status, status)


def _times(timing: Mapping[str, Any]) -> tuple[int | None, int | None]:
    return milliseconds(timing.get("started_at")), milliseconds(timing.get("completed_at"))
