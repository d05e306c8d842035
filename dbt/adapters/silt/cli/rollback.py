"""`silt rollback ID`: restores every table that a run changed to the version before it."""

from __future__ import annotations

import shlex
import sys
from argparse import Namespace
from dataclasses import replace
from typing import Any

from dbt.adapters.silt.cli.output.answers import UNKNOWN, Answer, Block, Rows, count, iso
from dbt.adapters.silt.cli.output.rendering import complain, show
from dbt.adapters.silt.cli.warehouses import OpenWarehouse, Subparsers, open_warehouse, subcommand
from dbt.adapters.silt.engine.catalog.names.relation_names import names_text
from dbt.adapters.silt.engine.catalog.rollback import PutBack, Rollback
from dbt.adapters.silt.engine.kernel.errors import RollbackRefusedError
from dbt.adapters.silt.engine.kernel.log.history import Commit
from dbt.adapters.silt.engine.kernel.printable import short_id
from dbt.adapters.silt.records.project_records import ProjectRecords
from dbt.adapters.silt.records.rollback import (
    RollbackRequest,
    RunRollback,
    author,
    note_rolled_back,
    roll_back_run,
    with_full_id,
)
from dbt.adapters.silt.records.run_registry import RUN_ID_VARIABLE

_COLUMNS = ("table", "#from version", "#to version", "#new version", "#rows", "#discarded commits")
_DESCRIPTION = """\
Restores every table that a run changed to the version before the run's first commit in it, by a new commit in which
its units of work are forgotten: the same run id can be run again and writes again. All tables are checked first.
If another writer has changed one of them since, the rollback is refused and nothing is changed. An interrupted rollback
is finished by running it again. Views, functions, files outside of tables, and tables that the run dropped, renamed or
replaced by a view are not restored. With `branch` in the profile, the run is undone on the branch."""


def add(subparsers: Subparsers) -> None:
    """Declares the subcommand."""
    parser = subcommand(subparsers, "rollback", "undo a run", _DESCRIPTION)
    parser.add_argument(
        "run", metavar="ID", help="a run's id, as `silt runs` shows it, or at least 4 characters of its beginning"
    )
    parser.add_argument("--dry-run", action="store_true", help="show the changes, and make none")
    parser.add_argument(
        "--discard-later-commits",
        action="store_true",
        help="also undo the later changes of other writers in these tables",
    )
    parser.add_argument("--drop-created", action="store_true", help="drop the tables that the run created")
    parser.add_argument(
        "--exclude", metavar="TABLE", action="append", default=[], help="leave out this table; may be repeated"
    )
    parser.add_argument(
        "-y", "--yes", action="store_true", help="do not ask; without a terminal, and with --json, nothing is asked"
    )


def run(arguments: Namespace) -> int:
    """Undoes the run; the exit code is 1 if the rules or the user refuse that."""
    warehouse = open_warehouse(arguments, joins=not arguments.dry_run)
    request = RollbackRequest(
        arguments.run,
        arguments.dry_run,
        arguments.discard_later_commits,
        arguments.drop_created,
        frozenset(map(warehouse.name, arguments.exclude)),
    )
    records = ProjectRecords.of(warehouse.target_path)
    request = with_full_id(warehouse.catalog, request, records)
    try:
        if _asks(arguments) and not _confirmed(warehouse, request, records):
            complain("nothing was changed")
            return 1
        found = roll_back_run(warehouse.catalog, request, records)
        if warehouse.joined is not None:
            warehouse.joined.attempts.check_done()
        note_rolled_back(warehouse.target_path, request, found)
    except RollbackRefusedError as error:
        complain(error)
        return show(Answer(_refused_json(request, error), (), 1), arguments.json)
    return show(answer(request, found), arguments.json)


def _asks(arguments: Namespace) -> bool:
    """Returns whether there is a terminal on which the user can be asked."""
    return not (arguments.yes or arguments.dry_run or arguments.json) and sys.stdin.isatty()


def _confirmed(warehouse: OpenWarehouse, request: RollbackRequest, records: ProjectRecords) -> bool:
    """Shows what would be undone and asks for confirmation; without changes to undo, does not ask."""
    planned = roll_back_run(warehouse.catalog, replace(request, dry_run=True), records)
    if not (planned.done.put_back or planned.done.dropped):
        return True
    show(answer(replace(request, dry_run=True), planned), as_json=False)
    print("\nRoll back? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def answer(request: RollbackRequest, found: RunRollback) -> Answer:
    """Renders the actual or planned changes, and the next step."""
    done = found.done
    document = {
        "run_id": request.run_id,
        "dry_run": request.dry_run,
        "refused": False,
        "tables": [_json(each) for each in done.put_back],
        "dropped": list(map(str, done.dropped)),
        "kept": list(map(str, done.kept)),
        "excluded": sorted(map(str, request.exclude)),
        "not_found": list(found.not_found),
        "command": found.command,
    }
    return Answer(document, [*_done(request, found.done), *_left(request, found)])


def _done(request: RollbackRequest, done: Rollback) -> list[Block]:
    run_id, would = short_id(request.run_id), "would be " if request.dry_run else ""
    blocks: list[Block] = []
    if done.put_back:
        title = f"run {run_id}: {would}rolled back"
        blocks.append(Rows(_COLUMNS, [_row(each) for each in done.put_back], title))
    if done.dropped:
        blocks.append(f"Created by the run, and {would}dropped: {names_text(done.dropped)}")
    if not (done.put_back or done.dropped):
        blocks.append(f"nothing to roll back: the tables that run {run_id} changed are as they were before it")
    return blocks


def _left(request: RollbackRequest, found: RunRollback) -> list[Block]:
    """Renders the tables that were left unchanged, and the next step."""
    blocks: list[Block] = []
    if found.done.kept:
        blocks.append(
            f"Created by the run, and not dropped: {names_text(found.done.kept)}\n"
            "They keep their units of work, so the same run does not write them again; `--drop-created` drops them."
        )
    if request.exclude:
        blocks.append(f"Left out: {names_text(sorted(request.exclude))}")
    if found.not_found:
        blocks.append(
            f"Written by the run, but not found by that name: {', '.join(found.not_found)}\n"
            "A renamed table is found by its new name; a dropped table cannot be restored."
        )
    if not request.dry_run:
        again = found.command or f"--vars '{RUN_ID_VARIABLE}: {request.run_id}'"
        blocks.append(_next_step(request, found.done, again))
    return blocks


def _next_step(request: RollbackRequest, done: Rollback, again: str) -> str:
    if not done.kept:
        return f"The run can be run again: `{again}`"
    dropping = f"silt rollback {shlex.quote(short_id(request.run_id))} --drop-created"
    return f"To run all of it again, drop the tables that it created, `{dropping}`, then type `{again}`"


def _row(table: PutBack) -> list[str]:
    version = UNKNOWN if table.version is None else str(table.version)
    discarded = len(table.discarded)
    return [str(table.name), str(table.from_version), str(table.to_version), version, count(table.rows), str(discarded)]


def _json(table: PutBack) -> dict[str, Any]:
    return {
        "table": str(table.name),
        "from_version": table.from_version,
        "to_version": table.to_version,
        "version": table.version,
        "rows": table.rows,
        "discarded_commits": [_commit_json(each) for each in table.discarded],
    }


def _commit_json(commit: Commit) -> dict[str, Any]:
    return {
        "version": commit.version,
        "committed_at": iso(commit.timestamp_ms),
        "operation": commit.info.operation,
        "author": author(commit),
    }


def _refused_json(request: RollbackRequest, error: RollbackRefusedError) -> dict[str, Any]:
    later = error.details["later_commits"]
    return {
        "run_id": request.run_id,
        "dry_run": request.dry_run,
        "refused": True,
        "later_commits": [{**each, "committed_at": iso(each["timestamp_ms"])} for each in later],
        "problems": list(error.details["problems"]),
    }
