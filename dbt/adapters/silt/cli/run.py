"""`silt run ID`: shows the commits of one logical run, and which of them were rolled back."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from dbt.adapters.silt.cli.answers import UNKNOWN, UTC, Answer, Block, Facts, Rows, count, iso, utc
from dbt.adapters.silt.cli.commits import commit_json, counts, rows_json
from dbt.adapters.silt.cli.options import Subparsers, subcommand
from dbt.adapters.silt.cli.rendering import show
from dbt.adapters.silt.cli.runs import report_problems
from dbt.adapters.silt.cli.warehouses import open_warehouse
from dbt.adapters.silt.engine.kernel.errors import RunNotFoundError
from dbt.adapters.silt.records.journal import JournalEntry
from dbt.adapters.silt.records.project_records import ProjectRecords
from dbt.adapters.silt.records.run_history import LoggedCommit, Run, TableHistory, histories, runs

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
_SKIPS = (f"skipped {UTC}", "node", "batch", "table", "done by")
_DESCRIPTION = """\
Shows the commits of a run, in the order of time. The id may be shortened to its beginning, or be dbt's id of one of its
commands. Skipped units of work are known from the dbt project's target/silt_commits.jsonl only."""


def add(subparsers: Subparsers) -> None:
    """Declares the subcommand."""
    parser = subcommand(subparsers, "run", "show the commits of one run", _DESCRIPTION)
    parser.add_argument("run", metavar="ID", help="a run's id, as `silt runs` shows it")


def run(arguments: Namespace) -> int:
    """Prints the run."""
    warehouse = open_warehouse(arguments)
    found = histories(warehouse.catalog)
    chosen = find_run(arguments.run, runs(found))
    code = show(answer(chosen, found, ProjectRecords.of(warehouse.target_path)), arguments.json)
    return max(code, report_problems(found))


def find_run(text: str, made: list[Run]) -> Run:
    """Finds a run by its id, by that of one of its commands, or by the beginning of its id.

    Raises:
        RunNotFoundError: there is none, or there are several.
    """
    exact = [each for each in made if each.run_id == text] or [each for each in made if text in each.invocations]
    found = exact or [each for each in made if each.run_id.startswith(text)]
    if len(found) == 1:
        return found[0]
    if found:
        ids = ", ".join(each.run_id for each in found[:5])
        raise RunNotFoundError(f"{len(found)} runs begin with `{text}`: {ids}", remedy="Give more of the id")
    raise RunNotFoundError(f"no commit of a run `{text}` is in a table of this warehouse")


def answer(chosen: Run, found: list[TableHistory], records: ProjectRecords) -> Answer:
    """Renders the run's commits, which of them were rolled back, and the skipped units of work."""
    undone = {(str(each.table), version): restore for each in found for version, restore in each.undone_by().items()}
    skipped = records.skipped(chosen.run_id)
    document = {
        "run_id": chosen.run_id,
        "started_at": records.started_at(chosen.run_id),
        "first_commit_at": iso(chosen.first_ms),
        "last_commit_at": iso(chosen.last_ms),
        "invocations": chosen.invocations,
        "targets": chosen.targets,
        **rows_json(chosen.rows),
        "commits": [_json(each, undone.get((each.table, each.version))) for each in chosen.commits],
        "skipped": None if skipped is None else [_skip_json(each) for each in skipped],
    }
    rows = [_row(each, undone.get((each.table, each.version))) for each in chosen.commits]
    blocks: list[Block] = [_facts(chosen, records, rows), Rows(_COMMITS, rows)]
    if skipped:
        blocks.append(Rows(_SKIPS, [_skip_row(each) for each in skipped], "skipped, because it had been done"))
    return Answer(document, blocks)


def _facts(chosen: Run, records: ProjectRecords, rows: list[list[str]]) -> Facts:
    changed = zip(counts(chosen.rows), ("inserted", "updated", "deleted"), strict=True)
    skipped = records.skipped(chosen.run_id)
    undone = sum(row[-1] != UNKNOWN for row in rows)
    facts = {
        "run": chosen.run_id,
        "committed": f"{utc(chosen.first_ms)} to {utc(chosen.last_ms)} UTC",
        "commands": " ".join(chosen.invocations) or UNKNOWN,
        "target": " ".join(chosen.targets) or UNKNOWN,
        "commits": f"{len(chosen.commits)}, tables: {len(chosen.tables)}",
        "rows": ", ".join(f"{number} {verb}" for number, verb in changed if number != UNKNOWN) or UNKNOWN,
        "skipped": count(None if skipped is None else len(skipped)),
        "rolled back": f"{undone} of {len(rows)} commits" if undone else "nothing",
    }
    return Facts({name: value for name, value in facts.items() if value != UNKNOWN})


def _row(commit: LoggedCommit, undone: LoggedCommit | None) -> list[str]:
    facts = commit.facts
    return [
        utc(commit.timestamp_ms),
        (facts and facts.node_id) or UNKNOWN,
        (facts and facts.batch_id) or UNKNOWN,
        f"{commit.table}@v{commit.version}",
        commit.operation or UNKNOWN,
        *counts(commit.rows),
        count(commit.commit_attempts),
        count(commit.statement_attempts),
        UNKNOWN if undone is None else f"rolled back by v{undone.version}",
    ]


def _json(commit: LoggedCommit, undone: LoggedCommit | None) -> dict[str, Any]:
    return {
        "table": commit.table,
        **commit_json(commit),
        "attempts": commit.commit_attempts,
        "statement_attempts": commit.statement_attempts,
        "read_versions": {table: list(versions) for table, versions in commit.read_versions.items()},
        "rolled_back_by": undone and undone.version,
    }


def _skip_row(entry: JournalEntry) -> list[str]:
    done = UNKNOWN if entry.table_version is None else f"v{entry.table_version}"
    time = entry.time[:19].replace("T", " ")
    return [time, entry.node_id or UNKNOWN, entry.batch_id or UNKNOWN, entry.table, done]


def _skip_json(entry: JournalEntry) -> dict[str, Any]:
    return {
        "time": entry.time,
        "node_id": entry.node_id,
        "batch_id": entry.batch_id,
        "table": entry.table,
        "done_by_version": entry.table_version,
        "app_id": entry.app_id,
    }
