"""Moves quarantined rows that pass audits by now into their table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from dbt.adapters.silt.engine.audits import verdicts
from dbt.adapters.silt.engine.audits.audit import QUARANTINE_SUFFIX, Audit, Audits, OnFailure
from dbt.adapters.silt.engine.audits.row_tests import RowTest, expectation, row_test
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName, completed
from dbt.adapters.silt.engine.commands.spark.session_settings import quotes_for
from dbt.adapters.silt.engine.kernel.errors import InternalError, InvalidArgumentError
from dbt.adapters.silt.engine.kernel.identifiers import quote, quoted_list
from dbt.adapters.silt.engine.sql.query.quotes import as_read
from dbt.adapters.silt.engine.warehouse import Warehouse

_CHOSEN: Final = "chosen"


@dataclass(frozen=True)
class Released:
    """The rows of a quarantine table that were released, and the rows that were not.

    Attributes:
        released: the number of rows that were moved into the table.
        kept: the number of chosen rows that stay.
        failing: how many of these rows fail each test, by its name.
    """

    released: int = 0
    kept: int = 0
    failing: dict[str, int] = field(default_factory=dict)


def release(warehouse: Warehouse, table: RelationName, audits: Audits, where: str | None = None) -> Released:
    """Moves the rows that pass into the table: two statements in a transaction, so both tables change or neither.

    A row test whose value does not change chooses the rows; the other audits judge the table with these rows, and
    refuse the release if they fail.

    Args:
        audits: the tests of today.
        where: SQL for the rows to look at, about the columns of the quarantine table; by default all.

    Raises:
        AuditFailedError: if an audit refuses; nothing was changed.
        InvalidArgumentError: if the condition may choose other rows when it is evaluated again.
        ConcurrentModificationError: if another writer has changed these rows meanwhile; nothing was changed.
    """
    source = table.sibling(f"{table.identifier}{QUARANTINE_SUFFIX}")
    tests = _expected(warehouse, table)
    tests += [] if audits.on_failure is OnFailure.WARN else _row_tests(warehouse, table, audits)
    chosen = _condition(warehouse, source, where)
    passing = " and ".join([chosen, *(f"not {each.failing}" for each in tests)])
    kept = audits if audits.on_failure is OnFailure.WARN else replace(audits, on_failure=OnFailure.REFUSE)
    with warehouse.transaction() as together:
        _add_later_columns(together, source, table)
        number, of_tests = _counts(together, source, chosen, passing, tests)
        left = {each.name: failing for each, failing in zip(tests, of_tests, strict=True) if failing}
        passed = number[0]
        if passed:
            _move(together, (source, table), passing, kept, passed)
    return Released(passed, number[1] - passed, left)


def _expected(warehouse: Warehouse, table: RelationName) -> list[RowTest]:
    """Returns the tests of the table's own rules that leave rows out."""
    snapshot, zone = warehouse.snapshot(table), warehouse.spark.conf.get("spark.sql.session.timeZone") or "UTC"
    name = (table.database, table.schema, table.identifier)
    found = (expectation(each, rule, name, zone) for each, rule in snapshot.properties.expectations.items())
    return [each for each in found if each is not None and each.fits(snapshot.schema)]


def _row_tests(warehouse: Warehouse, table: RelationName, audits: Audits) -> list[RowTest]:
    """Returns the tests that say of each row by itself whether it may be in the table, and always say the same."""
    schema = warehouse.snapshot(table).schema
    found = [_row_test(warehouse, each, table) for each in audits.audits if _refuses(each, audits)]
    return [each for each in found if each is not None and each.is_repeatable and each.fits(schema)]


def _refuses(audit: Audit, audits: Audits) -> bool:
    return verdicts.is_refused_by_a_row(audit, audits.refuse_warnings)


def _row_test(warehouse: Warehouse, audit: Audit, table: RelationName) -> RowTest | None:
    zone = warehouse.spark.conf.get("spark.sql.session.timeZone") or "UTC"
    query = as_read(audit.query, quotes_for(warehouse.spark, audit.query))
    test = row_test(replace(audit, query=query), (table.database, table.schema, table.identifier), zone)
    return test if test is not None and completed(test.table, *warehouse.current) == table else None


def _condition(warehouse: Warehouse, source: RelationName, where: str | None) -> str:
    if where is None:
        return "true"
    test = _row_test(warehouse, Audit(_CHOSEN, f"select * from {source.quoted} where ({where}\n)"), source)
    if test is None or not test.is_repeatable:
        raise InvalidArgumentError(
            f"the condition may choose other rows when it is evaluated again: {where}",
            remedy="Compare columns of the quarantine table with constants, without subqueries, `now()` and the like",
            table=str(source),
        )
    return test.failing


def _add_later_columns(together: Warehouse, source: RelationName, table: RelationName) -> None:
    """Adds the columns that the table has got after the rows were quarantined, which the tests may name: as in older
    rows of the table, they are null.
    """
    there = {each.lower() for each in together.snapshot(source).schema.names}
    later = [each for each in together.snapshot(table).schema if each.name.lower() not in there]
    if later:
        columns = ", ".join(f"{quote(each.name)} {each.type.sql_name}" for each in later)
        together.execute(f"alter table {source.quoted} add columns ({columns})")


def _counts(
    together: Warehouse, source: RelationName, chosen: str, passing: str, tests: Sequence[RowTest]
) -> tuple[tuple[int, int], tuple[int, ...]]:
    """Returns the numbers of rows that pass and that are chosen, and of the chosen rows that fail each test."""
    conditions = [passing, chosen, *(f"{chosen} and {each.failing}" for each in tests)]
    listed = ", ".join(f"count_if({each}) as n{at}" for at, each in enumerate(conditions))
    passed, number, *failing = together.sql(f"select {listed} from {source.quoted}").collect()[0]
    return (passed, number), tuple(failing)


def _move(
    together: Warehouse, names: tuple[RelationName, RelationName], passing: str, audits: Audits, number: int
) -> None:
    """Inserts the rows that pass into the table, and deletes them from the quarantine table."""
    source, table = names
    columns = quoted_list(each.name for each in together.snapshot(table).schema if not each.is_computed)
    inserted = together.execute(
        f"insert into {table.quoted} ({columns}) select {columns} from {source.quoted} where {passing}", audits=audits
    ).outcome
    deleted = together.execute(f"delete from {source.quoted} where {passing}").outcome
    moved = [None if each is None else each.rows for each in (inserted, deleted)]
    if inserted is None or deleted is None or not inserted.rows_inserted == deleted.rows_deleted == number:
        raise InternalError(f"{number} rows were to be released, not {moved}; nothing was changed", table=str(table))
