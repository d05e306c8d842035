"""Writes the newest runs into the page's data: their commands, the commands' results, and skipped units of work.

The commits of a run are among the versions of the tables.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final

from dbt.adapters.silt.records.command_result import KeptResults
from dbt.adapters.silt.records.known_runs import KnownRun, known_runs
from dbt.adapters.silt.records.project_records import ProjectRecords
from dbt.adapters.silt.records.run_registry import RunEntry
from dbt.adapters.silt.report.artifacts import Artifacts, CommandResults, NodeResult, milliseconds, node_results
from dbt.adapters.silt.report.encoding import Texts, present, row
from dbt.adapters.silt.report.tables import TableRead

_TIMELINES: Final = 30
"""The number of runs, newest first, whose nodes are shown by thread."""


def runs_json(
    tables: Iterable[TableRead],
    artifacts: Artifacts,
    results: CommandResults | None,
    most: int,
    texts: Texts,
) -> list[dict[str, Any]]:
    """Returns the newest runs, newest first.

    Args:
        most: the maximum number of runs.
    """
    records = artifacts.records
    ends = _last_moments(tables, records, results)
    newest = sorted(ends, key=lambda run_id: (ends[run_id], run_id), reverse=True)[: max(most, 0)]
    known = {each.run_id: each for each in known_runs((), records)}
    skips = _skips(records, texts)
    timelines = {run_id: _timeline(known.get(run_id), artifacts.kept, texts) for run_id in newest[:_TIMELINES]}
    return [
        {
            "id": run_id,
            "last": ends[run_id],
            **present(**_known_json(known.get(run_id)), skips=skips.get(run_id), nodes=timelines.get(run_id)),
        }
        for run_id in newest
    ]


def results_json(results: CommandResults | None, texts: Texts) -> dict[str, Any] | None:
    """Returns the results of the last command."""
    if results is None:
        return None
    return {
        "invocation": results.invocation_id,
        "run": results.run_id,
        "command": results.command,
        "nodes": [_result(each, texts) for each in results.results],
    }


def _last_moments(
    tables: Iterable[TableRead], records: ProjectRecords, results: CommandResults | None
) -> Mapping[str, int]:
    """Returns the time of each run's last activity, in milliseconds since 1970-01-01 UTC."""
    found: dict[str, int] = defaultdict(int)
    for run_id, moment in _moments(tables, records, results):
        found[run_id] = max(found[run_id], moment or 0)
    return found


def _moments(
    tables: Iterable[TableRead], records: ProjectRecords, results: CommandResults | None
) -> Iterable[tuple[str, int | None]]:
    for table in tables:
        yield from table.runs.items()
    for command in records.commands:
        yield command.run_id, milliseconds(command.ended_at or command.started_at)
    for entry in records.journal:
        if entry.skipped and (entry.run_id or entry.invocation_id):
            yield entry.run_id or entry.invocation_id or "", milliseconds(entry.time)
    if results is not None:
        yield results.run_id, max((each.ended_ms or 0 for each in results.results), default=0)


def _known_json(known: KnownRun | None) -> Mapping[str, Any]:
    """Returns a project's records of a run."""
    if known is None:
        return {}
    return {
        "commands": [_command(each) for each in known.commands],
        "state": known.state,
        "counts": dict(known.counts),
        "failed": list(known.failed),
        "problems": list(known.problems),
    }


def _command(command: RunEntry) -> list[Any]:
    times = (command.started_ms, milliseconds(command.ended_at))
    return [command.invocation_id, _typed(command.command), command.state, command.target, *times]


def _timeline(known: KnownRun | None, kept: KeptResults | None, texts: Texts) -> list[Any] | None:
    """Returns the newest kept results of a run's commands."""
    if known is None or kept is None:
        return None
    documents = (kept.of(each.invocation_id) for each in reversed(known.commands))
    newest = next((each for each in documents if each is not None), {})
    return [_result(each, texts) for each in node_results(newest)]


def _typed(command: str) -> str:
    """Returns a command line without the folder of its program, which depends on the machine."""
    program, space, rest = command.partition(" ")
    return program.rpartition("/")[2] + space + rest


def _skips(records: ProjectRecords, texts: Texts) -> Mapping[str, list[Any]]:
    found: dict[str, list[Any]] = defaultdict(list)
    for each in records.journal:
        run_id = each.run_id or each.invocation_id
        if run_id is not None:
            skips = found[run_id]
            if each.skipped:
                numbers = (texts.number(each.node_id), texts.number(each.table))
                skips.append(row(*numbers, milliseconds(each.time), each.table_version, texts.number(each.batch_id)))
    return {run_id: skips for run_id, skips in found.items() if skips}


def _result(result: NodeResult, texts: Texts) -> list[Any]:
    return row(
        texts.number(result.node),
        texts.number(result.state),
        texts.number(result.thread),
        result.started_ms,
        result.ended_ms,
        result.message or None,
        texts.number(result.table),
        result.version,
        result.failures,
    )
