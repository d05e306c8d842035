"""`silt runs`: shows the logical runs that committed to a warehouse, the newest first."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from dbt.adapters.silt.cli.answers import UNKNOWN, UTC, Answer, Rows, count, duration, iso, utc
from dbt.adapters.silt.cli.commits import counts, rows_json
from dbt.adapters.silt.cli.options import Subparsers, subcommand
from dbt.adapters.silt.cli.rendering import complain, show
from dbt.adapters.silt.cli.warehouses import open_warehouse
from dbt.adapters.silt.records.project_records import ProjectRecords
from dbt.adapters.silt.records.run_history import Run, TableHistory, histories, runs

_COLUMNS = (
    "run",
    "command",
    "target",
    "took",
    f"first commit {UTC}",
    f"last commit {UTC}",
    "#commands",
    "#nodes",
    "#tables",
    "#commits",
    "#inserted",
    "#updated",
    "#deleted",
    "#conflicts",
    "#skipped",
)
_DESCRIPTION = """\
Shows the runs that changed tables, from the tables' logs: commits of dropped tables are gone with them.
Command (the last one of the run) and duration are known from the dbt project's target/silt_runs.json only.
Conflicts are commits and statements that were tried again because another writer committed first. Skipped units of
work are known from the dbt project's target/silt_commits.jsonl only; where that has no line of a run, - is shown."""


def add(subparsers: Subparsers) -> None:
    """Declares the subcommand."""
    parser = subcommand(subparsers, "runs", "show the runs that changed the warehouse, the newest first", _DESCRIPTION)
    parser.add_argument("-n", "--limit", type=int, metavar="N", help="only the newest N runs")


def run(arguments: Namespace) -> int:
    """Prints the runs."""
    warehouse = open_warehouse(arguments)
    found = histories(warehouse.catalog)
    made = runs(found)
    shown = made if arguments.limit is None else made[: max(arguments.limit, 0)]
    code = show(answer(shown, found, ProjectRecords.of(warehouse.target_path)), arguments.json)
    return max(code, report_problems(found))


def report_problems(found: Sequence[TableHistory]) -> int:
    """Prints which tables could not be read; returns the exit code for that."""
    problems = [history.problem for history in found if history.problem is not None]
    for problem in problems:
        complain(problem)
    return 1 if problems else 0


def answer(shown: Sequence[Run], found: Sequence[TableHistory], records: ProjectRecords) -> Answer:
    """Renders the runs, in the order given."""
    document = {
        "runs": [_json(each, records) for each in shown],
        "problems": [str(history.problem) for history in found if history.problem is not None],
    }
    rows = [_row(each, records) for each in shown]
    return Answer(document, [Rows(_COLUMNS, rows, empty="no run has changed a table of this warehouse")])


def _row(each: Run, records: ProjectRecords) -> list[str]:
    skipped, commands = records.skipped(each.run_id), records.commands_of(each.run_id)
    return [
        each.run_id,
        commands[-1].command if commands else UNKNOWN,
        ", ".join(each.targets) or UNKNOWN,
        duration(records.seconds(each.run_id)),
        utc(each.first_ms),
        utc(each.last_ms),
        count(len(each.invocations)),
        count(len(each.nodes)),
        count(len(each.tables)),
        count(len(each.commits)),
        *counts(each.rows),
        count(each.commit_retries + each.statement_reruns),
        count(None if skipped is None else len(skipped)),
    ]


def _json(each: Run, records: ProjectRecords) -> dict[str, Any]:
    skipped = records.skipped(each.run_id)
    return {
        "run_id": each.run_id,
        "commands": [command.command for command in records.commands_of(each.run_id)],
        "started_at": records.started_at(each.run_id),
        "seconds": records.seconds(each.run_id),
        "first_commit_at": iso(each.first_ms),
        "last_commit_at": iso(each.last_ms),
        "invocations": each.invocations,
        "targets": each.targets,
        "nodes": each.nodes,
        "tables": each.tables,
        "commits": len(each.commits),
        **rows_json(each.rows),
        "commit_retries": each.commit_retries,
        "statement_reruns": each.statement_reruns,
        "skipped": None if skipped is None else len(skipped),
    }
