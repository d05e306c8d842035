"""`silt check`: finds damage in tables: in their logs, and in files that differ from their logs."""

from __future__ import annotations

import logging
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dbt.adapters.silt.cli.output.answers import Answer, Block, Rows, size
from dbt.adapters.silt.cli.output.rendering import show
from dbt.adapters.silt.cli.warehouses import Subparsers, open_warehouse, path_of, subcommand, table_of
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.errors import (
    NotATableError,
    RelationNotFoundError,
    SchemaNotFoundError,
    StorageError,
    TableDamagedError,
    UnsupportedFeatureError,
)
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.maintenance.file_check import check_files
from dbt.adapters.silt.engine.kernel.maintenance.log_check import check_log
from dbt.adapters.silt.engine.kernel.maintenance.problems import Problem, ProblemKind
from dbt.adapters.silt.engine.kernel.maintenance.vacuum import named_files
from dbt.adapters.silt.engine.kernel.printable import number_of
from dbt.adapters.silt.engine.kernel.table.paths import is_absolute
from dbt.adapters.silt.lazy import lazy_module
from dbt.adapters.silt.records.run_history import problem_of

if TYPE_CHECKING:
    from dbt.adapters.silt.cli.output import terminal
else:
    terminal = lazy_module("dbt.adapters.silt.cli.output.terminal")

_logger = logging.getLogger(__name__)

_COLUMNS = ("table", "problem", "what")
_DESCRIPTION = """\
Replays each table's log from its beginning and compares every checkpoint and version checksum with it; checks that each
file of the newest version exists and has the right size; compares its columns and statistics with the file's footer,
and reads the column if they differ; reads every deletion vector; and names the branches of which files are missing, as
after a VACUUM by a program that does not know branches. With --data it also reads every page of every file.
Nothing is changed. The exit code is 1 if a problem is found.
A table that needs a feature which this version does not support is named, but not checked."""
_CHECKS = 3

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Checked:
    """The result of the check of a table.

    Attributes:
        problems: the problems that were found.
        snapshot: the version that was checked, if it can be read.
        refused: the reason why the table was not checked, if so.
        note: a surprise that is not damage, if any.
    """

    table: str
    problems: tuple[Problem, ...] = ()
    snapshot: Snapshot | None = None
    refused: str | None = None
    note: str | None = None


def add(subparsers: Subparsers) -> None:
    """Declares the subcommand."""
    parser = subcommand(subparsers, "check", "find damaged tables", _DESCRIPTION)
    parser.add_argument("table", metavar="TABLE", nargs="?", help="one table, by name or path; by default all of them")
    parser.add_argument("--data", action="store_true", help="also read every page of every file, which may take long")


def run(arguments: Namespace) -> int:
    """Prints the problems."""
    with terminal.bars(sys.stderr) as bars:
        if arguments.table is not None:
            checked = [_of_table(arguments, bars)]
        else:
            checked = list(_all(open_warehouse(arguments, on_branch=False).catalog, bars, arguments.data))
    return show(answer(checked, arguments.data), arguments.json)


def _of_table(arguments: Namespace, bars: Any) -> Checked:
    if path_of(arguments.table) is not None:
        log = table_of(arguments.table, arguments)
        return check(log, bars.of_table(log.name), arguments.data)
    warehouse = open_warehouse(arguments, on_branch=False)
    name, catalog = warehouse.existing(arguments.table), warehouse.catalog
    checked = check(catalog.table(name), bars.of_table(str(name)), arguments.data)
    return _with_branches(catalog, name, checked, _branches(catalog))


def check(log: DeltaLog, report: Progress, data: bool = False) -> Checked:
    """Checks a table, and checks it again if it changed meanwhile: a VACUUM or a clean-up may have deleted files.

    Args:
        report: called with the number of files checked since the last call, and the number of all files.
        data: whether every page of every file is read.

    Raises:
        NotATableError: if the table does not exist.
        StorageError: if the storage failed.
    """
    found = _check_once(log, report, data)
    for _ in range(_CHECKS - 1):
        if not found.problems or found.snapshot is None or found.snapshot.version == _version(log):
            break
        found = _check_once(log, report, data)
    return found


def answer(checked: list[Checked], data: bool = False) -> Answer:
    """Returns the problems of all tables, and a summary of the checks."""
    document = {
        "tables": [_json(each) for each in checked],
        "problems": sum(len(each.problems) for each in checked),
        "not_checked": sum(each.refused is not None for each in checked),
        "data_read": data,
    }
    rows = [[each.table, problem.kind.value, problem.what] for each in checked for problem in each.problems]
    blocks: list[Block] = [Rows(_COLUMNS, rows)] if rows else []
    refused = [[each.table, each.refused] for each in checked if each.refused is not None]
    if refused:
        blocks.append(Rows(("table", "not checked"), refused))
    notes = [[each.table, each.note] for each in checked if each.note is not None]
    if notes:
        blocks.append(Rows(("table", "note"), notes))
    return Answer(document, [*blocks, _summary(checked, len(rows), data)], 1 if rows else 0)


def _branches(catalog: Catalog) -> dict[str, str]:
    """Returns the named branches and the runs that are not published, by the ids of their branches, for messages."""
    found: dict[str, str] = {}
    for database in catalog.databases():
        found |= {each.branch: f"run {each.run_id}" for each in catalog.run_branches(database).all()}
        try:
            found |= {each.branch: f"branch {each.name}" for each in catalog.named_branches(database).all()}
        except StorageError as error:
            _logger.warning("%s: files that only named branches need are not looked for: %s", database, error)
    return found


def _with_branches(catalog: Catalog, name: RelationName, checked: Checked, branches: Mapping[str, str]) -> Checked:
    """Adds the files of the table that branches need and that are missing; of the newest version, they are known."""
    if checked.snapshot is None or not branches:
        return checked
    log = catalog.table(name)
    present = set(named_files(checked.snapshot.files))
    problems = [
        Problem(ProblemKind.FILE_MISSING, f"{path} is missing, and {branches[branch]} needs it", path=path)
        for branch, files in sorted(catalog.held_files(log).items())
        for path in sorted(files - present)
        if branch in branches and not is_absolute(path) and log.store.status(path) is None
    ]
    return replace(checked, problems=(*checked.problems, *problems))


def _all(catalog: Catalog, bars: Any, data: bool) -> Iterator[Checked]:
    branches = _branches(catalog)
    for name in bars.over(list(catalog.all_tables())):
        try:
            checked = check(catalog.table(name), bars.of_table(str(name)), data)
            yield _with_branches(catalog, name, checked, branches)
        except (RelationNotFoundError, SchemaNotFoundError):  # dropped meanwhile
            continue
        except Exception as error:
            if not isinstance(error, NotATableError) or catalog.find(name) is not None:
                problem = problem_of(error, str(name)).problem
                yield Checked(str(name), (Problem(ProblemKind.LOG_UNREADABLE, problem),))


def _check_once(log: DeltaLog, report: Progress, data: bool) -> Checked:
    problems: list[Problem] = []
    try:
        problems += check_log(log.store, log.name)
        snapshot = log.snapshot()
        problems += check_files(log.store, snapshot, lambda done: report(done, snapshot.num_files), data)
        future = log.in_future()
    except UnsupportedFeatureError as error:
        return Checked(log.name, tuple(problems), refused=error.problem)
    except NotATableError:
        raise
    except TableDamagedError as error:
        # The log's problems mostly explain why the newest version cannot be read.
        more = () if problems else (Problem(ProblemKind.LOG_UNREADABLE, error.problem, error.version),)
        return Checked(log.name, (*problems, *more))
    outside = [problem for problem in problems if problem.kind is ProblemKind.FILE_OUTSIDE]
    notes = [_not_looked_at(outside)] if outside else []
    notes += [] if future is None else [future.note]
    wrong = tuple(problem for problem in problems if problem not in outside)
    return Checked(log.name, wrong, snapshot, note="; ".join(notes) or None)


def _not_looked_at(outside: list[Problem]) -> str:
    """Reports files in locations that no statement reads, such as a shallow clone's files in a copied warehouse."""
    files = "file in its log is" if len(outside) == 1 else "files in its log are"
    return f"{len(outside)} {files} outside of the warehouse, and not checked: {outside[0].path}"


def _version(log: DeltaLog) -> int | None:
    try:
        return log.snapshot().version
    except TableDamagedError:
        return None


def _summary(checked: list[Checked], problems: int, data: bool) -> str:
    """Summarises the check and its result, without claiming more than was checked."""
    read = [each.snapshot for each in checked if each.snapshot is not None]
    files, held = sum(each.num_files for each in read), sum(each.size_in_bytes for each in read)
    sound = "no problem" if data else "no problem in logs and footers (--data also reads the rows)"
    found = number_of(problems, "problem") if problems else sound if read else "nothing was checked"
    refused = sum(each.refused is not None for each in checked)
    left_out = f"; {number_of(refused, 'table')} not checked" if refused else ""
    return f"{number_of(len(read), 'table')} checked, {number_of(files, 'file')}, {size(held)}: {found}{left_out}"


def _json(each: Checked) -> dict[str, Any]:
    return {
        "table": each.table,
        "version": None if each.snapshot is None else each.snapshot.version,
        "files": None if each.snapshot is None else each.snapshot.num_files,
        "size_in_bytes": None if each.snapshot is None else each.snapshot.size_in_bytes,
        "not_checked": each.refused,
        "note": each.note,
        "problems": [
            {"kind": problem.kind.name.lower(), "what": problem.what, "version": problem.version, "path": problem.path}
            for problem in each.problems
        ],
    }
