"""Writes the newest runs into the page's data: their commands, the commands' results, and units of work done earlier.

The commits of a run are among the versions of the tables.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from dbt.adapters.silt.records.known_runs import KnownRun, Unpublished
from dbt.adapters.silt.records.project_records import ProjectRecords
from dbt.adapters.silt.records.run_registry import RunEntry
from dbt.adapters.silt.report.artifacts import Artifacts, LeftResults, NodeResult, left_results, milliseconds
from dbt.adapters.silt.report.encoding import Texts, present, row
from dbt.adapters.silt.report.tables import RunCommit, TableRead

_TIMELINES: Final = 30
"""The number of runs, newest first, whose nodes are shown by thread."""


def runs_json(
    tables: Sequence[TableRead], artifacts: Artifacts, known: Iterable[KnownRun], most: int, texts: Texts
) -> list[dict[str, Any]]:
    """Returns the newest runs, newest first.

    Args:
        known: the runs of the records, and the unpublished runs of the warehouse.
        most: the maximum number of runs.
    """
    left, by_id = left_results(artifacts), {each.run_id: each for each in known}
    ends = _last_moments(tables, artifacts.records, by_id.values(), left)
    newest = sorted(ends, key=lambda run_id: (ends[run_id], run_id), reverse=True)[: max(most, 0)]
    skips, targets = _skips(artifacts.records, texts), _by_run(tables, lambda commit: commit.target)
    clients = _by_run(tables, lambda commit: commit.client)
    found = []
    for at, run_id in enumerate(newest):
        run, own = by_id.get(run_id), left if left is not None and left.run_id == run_id else None
        commands = _commands(run, artifacts if at < _TIMELINES else None, texts)
        found.append(
            {
                "id": run_id,
                "last": ends[run_id],
                **present(
                    **_known_json(run, texts),
                    targets=list(dict.fromkeys([*targets.get(run_id, ()), *(run.targets if run else ())])),
                    clients=list(dict.fromkeys([*clients.get(run_id, ()), *(run.clients if run else ())])),
                    commands=[*commands, *([] if own is None else [_left_json(own, texts)])],
                    skips=skips.get(run_id),
                ),
            }
        )
    return found


def unpublished_json(unpublished: Iterable[Unpublished], texts: Texts) -> list[list[Any]]:
    """Returns the runs of the warehouse whose changes are not published, of all projects."""
    return [
        [each.run_id, each.target, each.began_ms, int(each.is_running), list(map(texts.number, each.failed))]
        for each in unpublished
    ]


def _last_moments(
    tables: Iterable[TableRead], records: ProjectRecords, known: Iterable[KnownRun], left: LeftResults | None
) -> Mapping[str, int]:
    """Returns the time of each run's last activity, in milliseconds since 1970-01-01 UTC."""
    found: dict[str, int] = defaultdict(int)
    for run_id, moment in _moments(tables, records, known, left):
        found[run_id] = max(found[run_id], moment or 0)
    return found


def _moments(
    tables: Iterable[TableRead], records: ProjectRecords, known: Iterable[KnownRun], left: LeftResults | None
) -> Iterable[tuple[str, int | None]]:
    for table in tables:
        yield from ((run_id, commit.ms) for run_id, commit in table.runs.items())
    for run in known:
        yield run.run_id, run.newest_ms
        yield from ((run.run_id, milliseconds(command.ended_at)) for command in run.commands)
    for entry in records.journal:
        if entry.skipped and (entry.run_id or entry.invocation_id):
            yield entry.run_id or entry.invocation_id or "", milliseconds(entry.time)
    if left is not None:
        yield left.run_id, max((each.ended_ms or 0 for each in left.results), default=0)


def _by_run(tables: Iterable[TableRead], value: Callable[[RunCommit], str | None]) -> Mapping[str, Sequence[str]]:
    """Returns the values of the commits of each run, each once."""
    found: dict[str, list[str]] = defaultdict(list)
    for table in tables:
        for run_id, commit in table.runs.items():
            known = value(commit)
            if known is not None and known not in found[run_id]:
                found[run_id].append(known)
    return found


def _known_json(known: KnownRun | None, texts: Texts) -> Mapping[str, Any]:
    """Returns a project's records of a run."""
    if known is None:
        return {}
    return {
        "state": known.state,
        "counts": dict(known.counts),
        "failed": [texts.number(each) for each in known.failed_ids],
        "problems": list(known.problems),
        "upkeep": known.upkeep,
    }


def _commands(known: KnownRun | None, artifacts: Artifacts | None, texts: Texts) -> list[dict[str, Any]]:
    """Returns the commands of a run, oldest first, with their results if `artifacts` is given."""
    found = []
    for each in known.commands if known is not None else ():
        results = () if artifacts is None else artifacts.results_of(each.invocation_id)
        facts = {
            "id": each.invocation_id,
            "line": _typed(each.command),
            "which": each.which or _which(each),
            "state": known.state_of(each) if known is not None else None,
            "target": each.target,
            "started": each.started_ms,
            "ended": milliseconds(each.ended_at),
            "undone": 1 if each.rolled_back else None,
        }
        found.append(present(**facts, nodes=[_result(result, texts) for result in results]))
    return found


def _left_json(left: LeftResults, texts: Texts) -> dict[str, Any]:
    """Returns the command whose results are in `run_results.json` without a record."""
    times = [moment for each in left.results for moment in (each.started_ms, each.ended_ms) if moment is not None]
    failed = any(each.state == "failed" for each in left.results)
    return present(
        id=left.invocation_id,
        line=f"dbt {left.which}",
        which=left.which,
        state="failed" if failed else "succeeded",
        started=min(times, default=None),
        ended=max(times, default=None),
        nodes=[_result(each, texts) for each in left.results],
    )


def _typed(command: str) -> str:
    """Returns a command line without the folder of its program, which depends on the machine."""
    program, space, rest = command.partition(" ")
    return program.rpartition("/")[2] + space + rest


def _which(command: RunEntry) -> str:
    """Returns dbt's name of a command that an earlier version has recorded: the first word after the program."""
    return next((word for word in command.command.split()[1:] if not word.startswith("-")), "")


def _skips(records: ProjectRecords, texts: Texts) -> Mapping[str, list[Any]]:
    """Returns the units of work that were not done, because an earlier commit holds them, of each run."""
    found: dict[str, list[Any]] = defaultdict(list)
    for each in records.journal:
        run_id = each.run_id or each.invocation_id
        if each.skipped and run_id is not None:
            numbers = (texts.number(each.node_id), texts.number(each.table))
            is_reuse = 1 if each.operation == "REUSE" else None
            moment = milliseconds(each.time)
            found[run_id].append(row(*numbers, moment, each.table_version, texts.number(each.batch_id), is_reuse))
    return found


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
