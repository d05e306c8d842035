"""`silt runs`: the logical runs that left commits in a warehouse, the newest first."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from dbt.adapters.silt.cli.commits import counts, rows_json
from dbt.adapters.silt.cli.options import Subparsers, subcommand
from dbt.adapters.silt.cli.places import place_of
from dbt.adapters.silt.cli.rendering import UTC, Answer, Rows, count, iso, show, utc
from dbt.adapters.silt.records.project_records import ProjectRecords
from dbt.adapters.silt.records.run_history import Run, TableHistory, histories, runs

_COLUMNS = (
    "run",
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
Shows the runs that changed tables, as the tables' logs tell of them: commits of dropped tables are gone with them.
Conflicts are commits and statements that were tried again because another writer came first. Skipped work is known
from the dbt project's target/silt_commits.jsonl only; where that says nothing of a run, it is shown as -."""


def add(subparsers: Subparsers) -> None:
    """Declares the subcommand."""
    parser = subcommand(subparsers, "runs", "the runs that changed the warehouse, the newest first", _DESCRIPTION)
    parser.add_argument("-n", "--limit", type=int, metavar="N", help="only the newest N runs")


def run(arguments: Namespace) -> int:
    """Prints the runs."""
    place = place_of(arguments)
    found = histories(place.catalog)
    made = runs(found)
    shown = made if arguments.limit is None else made[: max(arguments.limit, 0)]
    code = show(answer(shown, found, ProjectRecords.of(place.target_path)), arguments.json)
    return max(code, complain(found))


def complain(found: Sequence[TableHistory]) -> int:
    """Says which tables could not be read; the exit code of that."""
    problems = [history.problem for history in found if history.problem is not None]
    for problem in problems:
        print(f"silt: {problem}", file=sys.stderr)
    return 1 if problems else 0


def answer(shown: Sequence[Run], found: Sequence[TableHistory], records: ProjectRecords) -> Answer:
    """The runs, in the order given."""
    document = {
        "runs": [_json(each, records) for each in shown],
        "problems": [str(history.problem) for history in found if history.problem is not None],
    }
    rows = [_row(each, records) for each in shown]
    return Answer(document, [Rows(_COLUMNS, rows, empty="no run has changed a table of this warehouse")])


def _row(each: Run, records: ProjectRecords) -> list[str]:
    skipped = records.skipped(each.run_id)
    return [
        each.run_id,
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
        "started_at": records.started_at(each.run_id),
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
