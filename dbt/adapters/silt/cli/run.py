"""`silt run ID`: shows the commits of a logical run, and which of them were rolled back."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from dbt.adapters.silt.cli.history import commit_json, counts, rows_json
from dbt.adapters.silt.cli.output.answers import (
    RESULT,
    UNKNOWN,
    UTC,
    Answer,
    Block,
    Facts,
    Rows,
    count,
    duration,
    iso,
    utc,
)
from dbt.adapters.silt.cli.output.rendering import show
from dbt.adapters.silt.cli.runs import add_check, failed_check, report_problems, result_json, result_text
from dbt.adapters.silt.cli.warehouses import Subparsers, open_warehouse, subcommand
from dbt.adapters.silt.engine.kernel.errors import RunNotFoundError
from dbt.adapters.silt.engine.kernel.printable import short_id
from dbt.adapters.silt.records.command_result import COUNTED, KeptResults
from dbt.adapters.silt.records.journal import JournalEntry
from dbt.adapters.silt.records.known_runs import KnownRun, find_run, known_runs, similar_run, unpublished_runs
from dbt.adapters.silt.records.project_records import ProjectRecords
from dbt.adapters.silt.records.run_history import LoggedCommit, Run, TableHistory, histories, runs
from dbt.adapters.silt.records.run_registry import RunEntry
from dbt.adapters.silt.report.artifacts import NodeResult, node_results

_COMMITS = (
    f"committed {UTC}",
    "node",
    "batch",
    "table",
    "operation",
    "#inserted",
    "#updated",
    "#deleted",
    "#attempts",
    "#statement runs",
    "now",
)
_COMMANDS = (f"started {UTC}", "command", RESULT, "took", *(f"#{name}" for name in COUNTED))
_RESULTS = (f"node started {UTC}", "took", "thread", "node", RESULT, "message")
_MESSAGE = 120
"""In characters."""
_SKIPS = (f"skipped {UTC}", "node", "batch", "table", "done by")
_DESCRIPTION = """\
Shows the result and the commands of a run, its nodes in the order of time, and its commits. The id may be a prefix of
the run's id, or dbt's id of one of its commands. Results and nodes are known for the last commands of the dbt project
only, from target/silt_runs.json and target/silt_results, and skipped units of work only from the dbt project's
target/silt_commits.jsonl."""


def add(subparsers: Subparsers) -> None:
    """Declares the subcommand."""
    parser = subcommand(subparsers, "run", "show the commits of one run", _DESCRIPTION)
    parser.add_argument("run", metavar="ID", help="a run's id, as `silt runs` shows it")
    add_check(parser)


def run(arguments: Namespace) -> int:
    """Prints the run."""
    warehouse = open_warehouse(arguments)
    found = histories(warehouse.catalog)
    records = ProjectRecords.of(warehouse.target_path)
    unpublished = unpublished_runs(warehouse.catalog.run_branches(warehouse.database))
    known = known_runs(runs(found), records, unpublished=unpublished)
    chosen = find_run(arguments.run, known)
    if chosen is None:
        problem = f"no table of this warehouse has a commit of a run `{arguments.run}`, and it is not recorded here"
        raise RunNotFoundError(problem, remedy=similar_run(arguments.run, known))
    kept = [] if warehouse.target_path is None else _kept(chosen, KeptResults(warehouse.target_path))
    code = show(answer(chosen, found, records, kept), arguments.json)
    return max(code, report_problems(found), failed_check([chosen]) if arguments.check else 0)


def _kept(chosen: KnownRun, results: KeptResults) -> list[NodeResult]:
    """Returns the kept results of the nodes of a run's commands, in the order of their times."""
    documents = [results.of(each.invocation_id) for each in chosen.commands]
    found = [each for document in documents if document is not None for each in node_results(document)]
    return sorted(found, key=lambda each: (each.started_ms is None, each.started_ms or 0))


def answer(
    chosen: KnownRun, found: list[TableHistory], records: ProjectRecords, kept: Sequence[NodeResult] = ()
) -> Answer:
    """Renders the run's result, its nodes and commits, which of these were rolled back, and the skipped units of work.

    Args:
        kept: the kept results of its nodes.
    """
    made = chosen.commits or Run(chosen.run_id, ())
    undone = {(str(each.table), version): restore for each in found for version, restore in each.undone_by().items()}
    skipped = records.skipped(chosen.run_id)
    document = {
        "run_id": chosen.run_id,
        **result_json(chosen),
        "started_at": records.started_at(chosen.run_id),
        "first_commit_at": iso(made.first_ms if made.commits else None),
        "last_commit_at": iso(made.last_ms if made.commits else None),
        "invocations": chosen.invocations,
        "targets": chosen.targets,
        "clients": chosen.clients,
        **rows_json(made.counts),
        "commands": [_command_json(each) for each in chosen.commands],
        "results": [_result_json(each) for each in kept],
        "commits": [_json(each, undone.get((each.table, each.version))) for each in made.commits],
        "skipped": None if skipped is None else [_skip_json(each) for each in skipped],
    }
    rows = [_row(each, undone.get((each.table, each.version))) for each in made.commits]
    blocks: list[Block] = [_facts(chosen, made, records, rows)]
    if chosen.commands:
        blocks.append(Rows(_COMMANDS, [_command_row(each) for each in chosen.commands]))
    if kept:
        blocks.append(Rows(_RESULTS, [_result_row(each) for each in kept]))
    blocks.append(Rows(_COMMITS, rows, empty="it committed nothing"))
    if skipped:
        blocks.append(Rows(_SKIPS, [_skip_row(each) for each in skipped], "skipped, because it was already done"))
    return Answer(document, blocks)


def _facts(chosen: KnownRun, made: Run, records: ProjectRecords, rows: list[list[str]]) -> Facts:
    changed = zip(counts(made.counts), ("inserted", "updated", "deleted"), strict=True)
    skipped = records.skipped(chosen.run_id)
    undone = sum(row[-1] != UNKNOWN for row in rows)
    facts = {
        "run": chosen.name,
        "id": chosen.run_id,
        RESULT: result_text(chosen),
        "failed": ", ".join(chosen.failed) or UNKNOWN,
        "problem": "; ".join(chosen.problems) or UNKNOWN,
        "committed": f"{utc(made.first_ms)} to {utc(made.last_ms)} UTC" if made.commits else "nothing",
        "commands": " ".join(map(short_id, chosen.invocations)) or UNKNOWN,
        "target": " ".join(chosen.targets) or UNKNOWN,
        "client": ", ".join(chosen.clients) or UNKNOWN,
        "upkeep": chosen.upkeep or UNKNOWN,
        "commits": f"{len(made.commits)}, tables: {len(made.tables)}",
        "rows": ", ".join(f"{number} {verb}" for number, verb in changed if number != UNKNOWN) or UNKNOWN,
        "skipped": count(None if skipped is None else len(skipped)),
        "rolled back": f"{undone} of {len(rows)} commits" if undone else "nothing",
    }
    return Facts({name: value for name, value in facts.items() if value != UNKNOWN})


def _command_row(command: RunEntry) -> list[str]:
    known = {} if command.result is None else command.result.counts
    cells = [str(known[name]) if name in known else UNKNOWN for name in COUNTED]
    return [utc(command.started_ms), command.command, command.state, duration(command.seconds), *cells]


def _command_json(command: RunEntry) -> dict[str, Any]:
    return {
        "invocation_id": command.invocation_id,
        "command": command.command,
        "state": command.state,
        "started_at": command.started_at,
        "ended_at": command.ended_at,
        "result": command.result and command.result.to_json(),
    }


def _result_row(result: NodeResult) -> list[str]:
    seconds = None if None in (result.started_ms, result.ended_ms) else _seconds(result)
    said = result.message.splitlines()
    return [
        utc(result.started_ms),
        duration(seconds),
        result.thread.partition(" ")[0] or UNKNOWN,
        result.node,
        result.state,
        said[0][:_MESSAGE] if said else UNKNOWN,
    ]


def _seconds(result: NodeResult) -> float:
    return ((result.ended_ms or 0) - (result.started_ms or 0)) / 1000


def _result_json(result: NodeResult) -> dict[str, Any]:
    return asdict(result)


def _row(commit: LoggedCommit, undone: LoggedCommit | None) -> list[str]:
    facts = commit.facts
    return [
        utc(commit.timestamp_ms),
        (facts and facts.node_id) or UNKNOWN,
        (facts and facts.batch_id) or UNKNOWN,
        f"{commit.table}@v{commit.version}",
        commit.operation or UNKNOWN,
        *counts(commit.counts),
        count(commit.counts.attempts),
        count(commit.counts.statement_attempts),
        UNKNOWN if undone is None else f"rolled back by v{undone.version}",
    ]


def _json(commit: LoggedCommit, undone: LoggedCommit | None) -> dict[str, Any]:
    return {
        "table": commit.table,
        **commit_json(commit),
        "attempts": commit.counts.attempts,
        "statement_attempts": commit.counts.statement_attempts,
        "read_versions": {table: list(versions) for table, versions in commit.read_versions.items()},
        "rolled_back_by": undone and undone.version,
    }


def _skip_row(entry: JournalEntry) -> list[str]:
    done = entry.reason or (UNKNOWN if entry.table_version is None else f"v{entry.table_version}")
    time = entry.time[:19].replace("T", " ")
    return [time, entry.node_id or UNKNOWN, entry.batch_id or UNKNOWN, entry.table, done]


def _skip_json(entry: JournalEntry) -> dict[str, Any]:
    return {
        "time": entry.time,
        "node_id": entry.node_id,
        "batch_id": entry.batch_id,
        "table": entry.table,
        "done_by_version": entry.table_version,
        "reason": entry.reason,
        "app_id": entry.app_id,
    }
