"""`silt check`: whether tables are whole: their logs, and their files against what the logs say of them."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from dbt.adapters.silt.cli.options import Subparsers, subcommand
from dbt.adapters.silt.cli.places import place_of, table_of
from dbt.adapters.silt.cli.rendering import Answer, Block, Rows, number_of, show, size
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.kernel.errors import NotATableError, SiltError, TableDamagedError, UnsupportedFeatureError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.maintenance.file_check import check_files
from dbt.adapters.silt.engine.kernel.maintenance.log_check import check_log
from dbt.adapters.silt.engine.kernel.maintenance.problems import Problem, ProblemKind
from dbt.adapters.silt.records.lazily import lazily

progress = lazily("dbt.adapters.silt.cli.progress")

_COLUMNS = ("table", "problem", "what")
_DESCRIPTION = """\
Replays each table's log from its beginning and compares every checkpoint with it; looks whether each file of the newest
version is there and of its size; holds its statistics against the file's footer, and reads the column where they
differ; reads every deletion vector. Nothing is changed. The exit code is 1 where something is wrong.
A table that needs a feature which this version does not have is named, and not checked."""
_LOOKS = 3

Tell = Callable[[int, int], None]


@dataclass(frozen=True)
class Checked:
    """What came of looking at a table.

    Attributes:
        problems: what is wrong with it.
        snapshot: the version that was looked at; None where it cannot be read.
        refused: why it was not checked; None where it was.
    """

    table: str
    problems: tuple[Problem, ...] = ()
    snapshot: Snapshot | None = None
    refused: str | None = None


def add(subparsers: Subparsers) -> None:
    """Declares the subcommand."""
    parser = subcommand(subparsers, "check", "whether tables are whole and as their logs say", _DESCRIPTION)
    parser.add_argument("table", metavar="TABLE", nargs="?", help="one table, by name or path; by default all of them")


def run(arguments: Namespace) -> int:
    """Prints what is wrong."""
    with progress.bars(sys.stderr) as bars:
        if arguments.table is not None:
            log = table_of(arguments.table, arguments)
            checked = [check(log, bars.of_table(log.name))]
        else:
            checked = list(_all(place_of(arguments).catalog, bars))
    return show(answer(checked), arguments.json)


def check(log: DeltaLog, tell: Tell) -> Checked:
    """Looks at a table; once more where it was changed meanwhile, as a VACUUM or a clean-up may make files go.

    Args:
        tell: told how many files of how many were looked at.

    Raises:
        NotATableError: there is no table.
        StorageError: the storage failed.
    """
    found = _look(log, tell)
    for _ in range(_LOOKS - 1):
        if not found.problems or found.snapshot is None or found.snapshot.version == _version(log):
            break
        found = _look(log, tell)
    return found


def answer(checked: list[Checked]) -> Answer:
    """The problems of all tables, and what was looked at."""
    document = {
        "tables": [_json(each) for each in checked],
        "problems": sum(len(each.problems) for each in checked),
    }
    rows = [[each.table, problem.kind.value, problem.what] for each in checked for problem in each.problems]
    blocks: list[Block] = [Rows(_COLUMNS, rows)] if rows else []
    refused = [[each.table, each.refused] for each in checked if each.refused is not None]
    if refused:
        blocks.append(Rows(("table", "not checked"), refused))
    return Answer(document, [*blocks, _summary(checked, len(rows))], 1 if rows else 0)


def _all(catalog: Catalog, bars: Any) -> Iterator[Checked]:
    for name in bars.over(list(catalog.all_tables())):
        try:
            yield check(catalog.table(name), bars.of_table(str(name)))
        except SiltError as error:
            if catalog.find(name) is not None:
                yield Checked(str(name), (Problem(ProblemKind.LOG_UNREADABLE, error.problem),))


def _look(log: DeltaLog, tell: Tell) -> Checked:
    problems: list[Problem] = []
    try:
        problems += check_log(log.store, log.name)
        snapshot = log.snapshot()
        problems += check_files(log.store, snapshot, lambda done: tell(done, snapshot.num_files))
    except UnsupportedFeatureError as error:
        return Checked(log.name, tuple(problems), refused=error.problem)
    except NotATableError:
        raise
    except TableDamagedError as error:
        # Why the newest version cannot be had is mostly told by its log's problems.
        more = () if problems else (Problem(ProblemKind.LOG_UNREADABLE, error.problem, error.version),)
        return Checked(log.name, (*problems, *more))
    return Checked(log.name, tuple(problems), snapshot)


def _version(log: DeltaLog) -> int | None:
    try:
        return log.snapshot().version
    except TableDamagedError:
        return None


def _summary(checked: list[Checked], problems: int) -> str:
    looked_at = [each.snapshot for each in checked if each.snapshot is not None]
    files, held = sum(each.num_files for each in looked_at), sum(each.size_in_bytes for each in looked_at)
    found = number_of(problems, "problem") if problems else "nothing is wrong"
    return f"{number_of(len(looked_at), 'table')} checked, {number_of(files, 'file')}, {size(held)}: {found}"


def _json(each: Checked) -> dict[str, Any]:
    return {
        "table": each.table,
        "version": None if each.snapshot is None else each.snapshot.version,
        "files": None if each.snapshot is None else each.snapshot.num_files,
        "size_in_bytes": None if each.snapshot is None else each.snapshot.size_in_bytes,
        "not_checked": each.refused,
        "problems": [
            {"kind": problem.kind.name.lower(), "what": problem.what, "version": problem.version, "path": problem.path}
            for problem in each.problems
        ],
    }
