"""UPDATE: the changed rows, their values and their files."""

from __future__ import annotations

import pytest

from dbt.adapters.silt.engine.commands.rows import update as command
from dbt.adapters.silt.engine.commands.rows.file_rows import Limits, Rows
from dbt.adapters.silt.engine.commands.target import Outcome, Target, WriteSettings
from dbt.adapters.silt.engine.kernel.errors import (
    CheckViolationError,
    ColumnNotFoundError,
    ConcurrentAppendError,
    InvalidStatementError,
    NotNullViolationError,
    TypeMismatchError,
    ValueNotCastableError,
)
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.table.expressions import TRUE, UNKNOWN, Column, Comparison, Expression
from dbt.adapters.silt.engine.sql.ast import Assignment, ColumnDefinition
from tests.unit.engine.commands.spark_tables import PLAIN, Tables

ROWS = "select * from values (1, 'a'), (2, 'b'), (null, 'n') as x(id, name)"
SEARCH_FIRST = Limits(at_once=-1)


def update(
    tables: Tables,
    target: DeltaLog | Target,
    condition: str | None,
    *pairs: tuple[tuple[str, ...], str],
    predicate: Expression = UNKNOWN,
    settings: WriteSettings = PLAIN,
    limits: Limits | None = None,
) -> Outcome:
    pinned = tables.target(target) if isinstance(target, DeltaLog) else target
    rows = Rows("t", condition, TRUE if condition is None else predicate)
    assignments = [Assignment(column, value) for column, value in pairs]
    return command.update(tables.spark, pinned, assignments, rows, settings, limits)


@pytest.mark.parametrize("limits", [None, SEARCH_FIRST])
def test_only_rows_whose_condition_is_true_change_and_expressions_read_the_old_values(
    tables: Tables, limits: Limits | None
) -> None:
    log = tables.made("select * from values (1, 10), (2, 20), (null, 30) as x(a, b)")
    outcome = update(tables, log, "t.a < 2", (("a",), "b"), (("t", "B"), "t.a"), limits=limits)
    assert tables.rows(log) == [(10, 1), (2, 20), (None, 30)]
    assert outcome.rows_updated == 1
    info = tables.last_commit(log)
    assert info.operation == "UPDATE"
    assert info.operation_parameters == {"predicate": '["t.a < 2"]'}
    assert info.operation_metrics is not None
    assert (info.operation_metrics["numUpdatedRows"], info.operation_metrics["numCopiedRows"]) >= ("1", "0")


def test_an_update_without_a_condition_changes_all_rows(tables: Tables) -> None:
    log = tables.made(ROWS)
    assert update(tables, log, None, (("name",), "concat(name, '!')")).rows_updated == 3
    assert tables.rows(log) == [(1, "a!"), (2, "b!"), (None, "n!")]


def test_a_field_of_a_struct_is_set_and_its_other_fields_are_kept(tables: Tables) -> None:
    log = tables.made("select 1 id, named_struct('a', 1, 'b', named_struct('c', 'x', 'd', 2)) s")
    update(tables, log, "id = 1", (("s", "b", "c"), "upper(s.b.c)"), (("t", "s", "a"), "s.a + 1"))
    assert tables.rows(log) == [(1, {"a": 2, "b": {"c": "X", "d": 2}})]


def test_setting_a_partition_column_moves_the_row(tables: Tables) -> None:
    log = tables.made("select id, id % 2 part from range(4)", partition_columns=("part",))
    update(tables, log, "id = 1", (("part",), "7"))
    assert tables.rows(log) == [(0, 0), (1, 7), (2, 0), (3, 1)]


def test_names_are_found_in_any_case_and_with_any_characters(tables: Tables) -> None:
    log = tables.made("select 1 `select`, 2 `größe [m]`, 3 `a``b`")
    update(tables, log, "`SELECT` = 1", (("GRÖSSE [M]".replace("SS", "ß"),), "`a``b` + 1"), (("A`b",), "9"))
    assert tables.rows(log) == [(1, 4, 9)]


def test_invalid_assignments_are_refused_before_anything_is_written(tables: Tables) -> None:
    log = tables.made("select 1 id, array(1) xs, named_struct('a', 1) s")
    files = tables.data_files(log)
    with pytest.raises(ColumnNotFoundError, match="`nmae`"):
        update(tables, log, None, (("nmae",), "1"))
    with pytest.raises(TypeMismatchError, match="`xs`"):
        update(tables, log, None, (("xs",), "1"))
    with pytest.raises(InvalidStatementError, match="more than once"):
        update(tables, log, None, (("s",), "null"), (("S", "A"), "1"))
    assert tables.data_files(log) == files


def test_a_value_that_the_column_cannot_hold_is_refused_only_in_rows_that_change(tables: Tables) -> None:
    log = tables.made("select * from values (1, 'x'), (2, '3') as v(id, text)")
    files = tables.data_files(log)
    with pytest.raises(ValueNotCastableError, match="x"):
        update(tables, log, None, (("id",), "text"))
    assert tables.data_files(log) == files
    assert update(tables, log, "id = 2", (("id",), "text")).rows_updated == 1
    assert tables.rows(log) == [(1, "x"), (3, "3")]


def test_constraints_are_enforced_on_changed_rows(tables: Tables) -> None:
    log = tables.made(
        "select * from values (1, 'a'), (2, 'b') as x(id, name)",
        columns=(ColumnDefinition("id"), ColumnDefinition("name", nullable=False)),
        constraints={"positive": "id > 0"},
    )
    with pytest.raises(NotNullViolationError, match="`name`"):
        update(tables, log, "id = 1", (("name",), "null"))
    with pytest.raises(CheckViolationError, match="positive"):
        update(tables, log, "id = 1", (("id",), "-1"))
    with pytest.raises(CheckViolationError, match="positive"):
        update(tables, log, "id = 1", (("id",), "null"))
    assert tables.rows(log) == [(1, "a"), (2, "b")]


def test_an_update_without_changes_commits_only_with_a_transaction(tables: Tables) -> None:
    log = tables.made(ROWS)
    files = tables.data_files(log)
    assert update(tables, log, "id = 99", (("name",), "'z'")).version == 0
    never = Comparison("=", Column.of("id"), 99)
    outcome = update(tables, log, "id = 99", (("name",), "'z'"), predicate=never, settings=WriteSettings(txn=("a", 1)))
    assert (outcome.version, outcome.rows_updated) == (1, 0)
    assert tables.data_files(log) == files


def test_a_matching_row_that_another_writer_adds_is_a_conflict(tables: Tables) -> None:
    log = tables.made("select id, 'a' name from range(0, 3, 1, 1)")
    pinned, again = tables.target(log), tables.target(log)
    tables.append(log, "values (50L, 'far away')")
    below = Comparison("<", Column.of("id"), 10)
    assert update(tables, pinned, "id < 10", (("name",), "'b'"), predicate=below).rows_updated == 3
    tables.append(log, "values (5L, 'near')")
    with pytest.raises(ConcurrentAppendError):
        update(tables, again, "id < 10", (("name",), "'c'"), predicate=below)


def test_subqueries_work_in_conditions_and_values(tables: Tables) -> None:
    log = tables.made(ROWS)
    tables.spark.sql("select 1 id, 'one' word").createOrReplaceTempView("`main.words@v1`")
    value = "coalesce((select max(w.word) from `main.words@v1` w where w.id = t.id), 'none')"
    update(tables, log, "t.id in (select id from `main.words@v1`) or t.id = 2", (("name",), value))
    assert tables.rows(log) == [(1, "one"), (2, "none"), (None, "n")]
