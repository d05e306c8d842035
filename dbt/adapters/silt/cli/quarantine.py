"""`silt quarantine MODEL`: shows, releases or deletes the rows that were not written because they fail audits."""

from __future__ import annotations

import time
from argparse import ArgumentTypeError, Namespace
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dbt.adapters.silt.cli import sql, why
from dbt.adapters.silt.cli.output.answers import UNKNOWN, UTC, Answer, Block, Facts, Rows, count, iso, utc
from dbt.adapters.silt.cli.output.rendering import complain, show
from dbt.adapters.silt.cli.warehouses import OpenWarehouse, Subparsers, open_warehouse, subcommand
from dbt.adapters.silt.engine.audits.audit import AT, FAILED, NODE, QUARANTINE_SUFFIX, RUN_ID
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.clock import utc_moment
from dbt.adapters.silt.engine.kernel.errors import InvalidArgumentError, InvalidSettingError
from dbt.adapters.silt.engine.kernel.lengths_of_time import length_of_time
from dbt.adapters.silt.engine.kernel.printable import number_of, short_id
from dbt.adapters.silt.lazy import lazy_module

if TYPE_CHECKING:
    from dbt.adapters.silt.cli.shell import output, statements
    from dbt.adapters.silt.cli.tables import rows as table_rows
else:
    output = lazy_module("dbt.adapters.silt.cli.shell.output")
    statements = lazy_module("dbt.adapters.silt.cli.shell.statements")
    table_rows = lazy_module("dbt.adapters.silt.cli.tables.rows")

MODULE: Final = "dbt.adapters.silt.materializations.released_quarantine"
"""The program of a separate process that compiles the tests with dbt and releases the rows."""

_FAILED: Final = 2
_SAMPLE: Final = 10
_UNITS: Final = {"minute": 60, "hour": 3_600, "day": 86_400, "week": 604_800}
_TESTS = ("test", "#rows")
_WRITES = (f"quarantined {UTC}", "age", "run", "node", "#rows")
_DESCRIPTION = """\
Shows the rows in the quarantine table of a model: how many fail each test, which run has quarantined them and when, and
some of the rows. With --release, dbt compiles the tests of the model, and the rows that pass the row tests of today
are moved into the table, in one transaction; the others stay, and are counted by test. If a test that looks at the
whole table, such as `unique`, fails with the released rows, nothing is moved: choose fewer rows with --where.
With --delete, rows are deleted. A condition compares columns of the quarantine table with constants."""


def add(subparsers: Subparsers) -> None:
    """Declares the subcommand."""
    parser = subcommand(subparsers, "quarantine", "show, release or delete the rows that failed audits", _DESCRIPTION)
    parser.add_argument("model", metavar="MODEL", help="a model, seed or snapshot, by its table, as in main.orders")
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--release", action="store_true", help="move the rows that pass today's tests into the table")
    action.add_argument("--delete", action="store_true", help="delete the rows that --where and --older-than choose")
    parser.add_argument("--where", metavar="CONDITION", help='only rows for which it is true, as in "id > 3"')
    parser.add_argument("--older-than", metavar="AGE", type=_age, help='only rows of that age, as in "30 days"')
    parser.add_argument(
        "-n", "--limit", metavar="N", type=int, default=_SAMPLE, help=f"show N of the rows, {_SAMPLE} by default"
    )
    parser.add_argument("--vars", metavar="YAML", help="dbt's variables, for --release")


def run(arguments: Namespace) -> int:
    """Shows, releases or deletes the rows."""
    warehouse = open_warehouse(arguments)
    table = warehouse.existing(arguments.model.removesuffix(QUARANTINE_SUFFIX))
    warehouse.catalog.table(table)
    condition = _condition(arguments)
    if arguments.delete and condition is None:
        raise InvalidArgumentError(
            "all rows of the quarantine would be deleted",
            remedy="Choose rows with `--older-than` or `--where`, or drop the table",
        )
    name = table.sibling(f"{table.identifier}{QUARANTINE_SUFFIX}")
    if warehouse.catalog.find(name) is None:
        return show(_nothing(table), arguments.json)
    if arguments.release:
        return show(_released(table, condition, arguments), arguments.json)
    if arguments.delete:
        return _delete(warehouse, name, str(condition), arguments)
    return show(answer(warehouse, table, name, condition, arguments.limit), arguments.json)


def _age(text: str) -> float:
    """Returns the seconds of an age such as `30 days`."""
    try:
        return length_of_time(text).total_seconds()
    except ValueError as error:
        raise ArgumentTypeError(f"{error}: write a number of minutes, hours, days or weeks") from error


def _condition(arguments: Namespace) -> str | None:
    """Returns the condition on the rows of the quarantine table, if any."""
    chosen = [] if arguments.where is None else [f"({arguments.where}\n)"]
    if arguments.older_than is not None:
        before = utc_moment(int((time.time() - arguments.older_than) * 1000))
        if before is None:
            raise InvalidArgumentError("no row can be so old", remedy="Give a shorter `--older-than`")
        chosen.append(f"{AT} < timestamp '{before:%Y-%m-%d %H:%M:%S}Z'")
    return " and ".join(chosen) or None


def _nothing(table: RelationName) -> Answer:
    document = {"table": str(table), "rows": 0, "tests": [], "writes": [], "sample": []}
    return Answer(document, [f"no row of {table} was quarantined"])


@dataclass(frozen=True)
class _Written:
    """The rows that a statement has quarantined."""

    at_ms: int
    run_id: str | None
    node: str | None
    rows: int

    @property
    def row(self) -> list[str]:
        run_id = UNKNOWN if self.run_id is None else short_id(self.run_id)
        return [
            utc(self.at_ms),
            _since(time.time() - self.at_ms / 1000),
            run_id,
            self.node or UNKNOWN,
            count(self.rows),
        ]

    @property
    def document(self) -> dict[str, Any]:
        return {"at": iso(self.at_ms), "run_id": self.run_id, "node": self.node, "rows": self.rows}


def answer(
    warehouse: OpenWarehouse, table: RelationName, name: RelationName, condition: str | None, limit: int
) -> Answer:
    """Renders the rows in the quarantine table of a table.

    Args:
        name: the name of the quarantine table.
        condition: SQL for the rows to show; by default all.
        limit: the maximum number of rows to show.
    """
    log = warehouse.catalog.table(name)
    snapshot = log.snapshot()
    labels = table_rows.chosen_rows(log, snapshot, (AT, RUN_ID, NODE, FAILED), condition).to_pylist()
    tests = Counter(test for each in labels for test in each[FAILED] or ())
    writes = sorted(_writes(labels), key=lambda each: each.at_ms, reverse=True)
    sample = table_rows.first_rows(log, snapshot, max(limit, 0), None, condition)
    document = {
        "table": str(table),
        "quarantine": str(name),
        "rows": len(labels),
        "tests": [{"name": test, "rows": number} for test, number in tests.most_common()],
        "writes": [each.document for each in writes],
        "sample": sample.documents(),
    }
    blocks: list[Block] = [Facts({"table": str(table), "quarantine": str(name), "rows": count(len(labels))})]
    if labels:
        blocks.append(Rows(_TESTS, [[test, count(number)] for test, number in tests.most_common()]))
        blocks.append(Rows(_WRITES, [each.row for each in writes]))
        headings = [f"#{each}" if number else each for each, number in zip(sample.names, sample.numbers, strict=True)]
        blocks.append(Rows(headings, sample.cells()))
    return Answer(document, blocks)


def _writes(labels: Sequence[dict[str, Any]]) -> Iterator[_Written]:
    found = Counter((each[AT], each[RUN_ID], each[NODE]) for each in labels)
    for (at, run_id, node), number in found.items():
        yield _Written(0 if at is None else int(at.timestamp() * 1000), run_id, node, number)


def _since(seconds: float) -> str:
    """Returns a length of time in its largest unit."""
    unit, length = max(((name, each) for name, each in _UNITS.items() if each <= max(seconds, 60)), key=lambda x: x[1])
    return number_of(int(max(seconds, 0) // length), unit)


def _released(table: RelationName, condition: str | None, arguments: Namespace) -> Answer:
    if arguments.warehouse is not None:
        raise InvalidSettingError(
            "only a dbt project has the tests that the rows must pass",
            remedy="Leave `--warehouse` out, or move the rows by SQL: the page on audits in SQL shows how",
        )
    given = ["--table", str(table), *([] if condition is None else ["--where", condition])]
    found = why.compiled(MODULE, [arguments.model.rpartition(".")[2]], arguments, given)
    if found is None:
        raise InvalidSettingError("nothing was released", remedy="Correct the error that is reported above")
    blocks: list[Block] = [f"{table}: {number_of(found['released'], 'row')} released, {count(found['kept'])} kept"]
    if found["failing"]:
        blocks.append(Rows(_TESTS, [[name, count(number)] for name, number in found["failing"].items()], "still fail"))
    return Answer({"table": str(table), **found}, blocks)


def _delete(warehouse: OpenWarehouse, name: RelationName, condition: str, arguments: Namespace) -> int:
    opened = statements.Statements(sql.shell_context(warehouse))
    try:
        done = opened.run(f"delete from {name.quoted} where {condition}")
    except output.StatementFailedError as error:
        complain(error)
        return _FAILED
    finally:
        opened.close()
    assert isinstance(done, output.Change)
    return show(Answer(done.document, [done.text]), arguments.json)
