"""INSERT INTO and INSERT OVERWRITE: rows, outcome, history and conflicts."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from dbt.adapters.silt.engine.commands.insert import insertion
from dbt.adapters.silt.engine.commands.insert.placement import Placement
from dbt.adapters.silt.engine.commands.target import WriteSettings
from dbt.adapters.silt.engine.kernel.errors import (
    CheckViolationError,
    ColumnNotFoundError,
    ConcurrentAppendError,
    MetadataChangedError,
    NotNullViolationError,
    TypeMismatchError,
    UnsupportedStatementError,
    ValueNotCastableError,
)
from dbt.adapters.silt.engine.kernel.transaction.changes import ReadSet
from dbt.adapters.silt.engine.sql.ast import ColumnDefinition
from tests.unit.engine.commands.spark_tables import PLAIN, Tables

TWO_ROWS = "select * from values (1L, 'a'), (2L, null) as t(id, name)"


def test_append_adds_the_rows_and_reports_them_in_outcome_and_history(tables: Tables) -> None:
    log = tables.made(TWO_ROWS)
    outcome = tables.append(log, "values (3L, 'c')")
    assert tables.rows(log) == [(1, "a"), (2, None), (3, "c")]
    assert (outcome.version, outcome.rows_inserted, outcome.files_added, outcome.files_removed) == (1, 1, 1, 0)
    info = tables.last_commit(log)
    assert info.operation == "WRITE"
    assert info.operation_parameters == {"mode": "Append", "partitionBy": "[]"}
    assert info.operation_metrics is not None
    assert (info.operation_metrics["numFiles"], info.operation_metrics["numOutputRows"]) == ("1", "1")
    assert info.is_blind_append is True


def test_an_append_whose_query_reads_the_table_is_not_a_blind_append(tables: Tables) -> None:
    log = tables.made(TWO_ROWS)
    tables.append(log, "values (3L, 'c')", WriteSettings(reads=ReadSet(whole_table=True)))
    assert tables.last_commit(log).is_blind_append is False


def test_the_transaction_identifier_is_in_the_commit_of_the_data(tables: Tables) -> None:
    log = tables.made(TWO_ROWS)
    tables.append(log, "select 3L, 'c' where false", WriteSettings(txn=("silt/shop/orders", 7)))
    assert log.snapshot().transaction_version("silt/shop/orders") == 7
    assert log.snapshot().version == 1
    assert tables.rows(log) == [(1, "a"), (2, None)]


def test_appends_of_two_writers_do_not_conflict(tables: Tables) -> None:
    log = tables.made(TWO_ROWS)
    first, second = tables.target(log), tables.target(log)
    insertion.append(first, tables.spark.sql("values (3L, 'c')"), Placement(), PLAIN)
    outcome = insertion.append(second, tables.spark.sql("values (4L, 'd')"), Placement(), PLAIN)
    assert outcome.attempts == 2
    assert [row[0] for row in tables.rows(log)] == [1, 2, 3, 4]


def test_overwrite_replaces_all_rows(tables: Tables) -> None:
    log = tables.made(TWO_ROWS)
    query = tables.spark.sql("values (9L, 'z')")
    outcome = insertion.overwrite(tables.target(log), query, Placement(), PLAIN)
    assert tables.rows(log) == [(9, "z")]
    assert (outcome.rows_inserted, outcome.rows_deleted) == (1, 2)
    info = tables.last_commit(log)
    assert info.operation_parameters["mode"] == "Overwrite"
    assert info.operation_metrics is not None and info.operation_metrics["numDeletedRows"] == "2"


def test_overwrite_conflicts_with_rows_that_were_committed_while_it_ran_and_leaves_no_file(tables: Tables) -> None:
    log = tables.made(TWO_ROWS)
    target = tables.target(log)
    tables.append(log, "values (3L, 'c')")
    before = tables.data_files(log)
    with pytest.raises(ConcurrentAppendError):
        insertion.overwrite(target, tables.spark.sql("values (9L, 'z')"), Placement(), PLAIN)
    assert tables.data_files(log) == before
    assert [row[0] for row in tables.rows(log)] == [1, 2, 3]


def test_an_overwrite_may_read_the_table_that_it_overwrites(tables: Tables) -> None:
    log = tables.made(TWO_ROWS)
    query = tables.read(log).selectExpr("id + 10", "name")
    insertion.overwrite(tables.target(log), query, Placement(), PLAIN)
    assert tables.rows(log) == [(11, "a"), (12, None)]


def test_named_columns_get_the_querys_columns_by_position_and_other_columns_become_null(tables: Tables) -> None:
    log = tables.made("select 1L id, 'a' name, 1.5D price")
    tables.append(log, "select 'b', 2", columns=("NAME", "id"))
    assert tables.rows(log) == [(1, "a", 1.5), (2, "b", None)]


def test_insert_by_name_ignores_case_and_order(tables: Tables) -> None:
    log = tables.made(TWO_ROWS)
    tables.append(log, "select 'c' Name, 3 ID", by_name=True)
    assert tables.rows(log)[-1] == (3, "c")


def test_a_constant_in_the_partition_clause_is_the_value_of_its_column(tables: Tables) -> None:
    log = tables.made("select 1 p, 1L id, 'a' name", partition_columns=("p",))
    tables.append(log, "select 2L, 'b'", constants={"p": "7"})
    assert tables.rows(log) == [(1, 1, "a"), (7, 2, "b")]


@pytest.mark.parametrize(
    ("query", "placement", "words"),
    [
        ("select 1L", {}, "too few columns"),
        ("select 1L, 'a', 2", {}, "too many columns"),
        ("select 1L id, 2 extra", {"by_name": True}, "`extra`"),
        ("select 1L, 2L", {"columns": ("id", "ID")}, "named twice"),
        ("select 1L", {"columns": ("nosuch",)}, "`nosuch`"),
    ],
)
def test_mismatching_columns_are_named(tables: Tables, query: str, placement: dict[str, Any], words: str) -> None:
    log = tables.made(TWO_ROWS)
    with pytest.raises(ColumnNotFoundError, match=words):
        tables.append(log, query, **placement)
    assert log.snapshot().version == 0


def test_a_type_that_cannot_be_stored_is_refused_before_anything_is_written(tables: Tables) -> None:
    log = tables.made(TWO_ROWS)
    before = tables.data_files(log)
    with pytest.raises(TypeMismatchError, match=r"array<int>.*`id` of type bigint"):
        tables.append(log, "select array(1), 'a'")
    assert tables.data_files(log) == before


def test_a_string_is_converted_to_any_simple_type(tables: Tables) -> None:
    log = tables.made(
        "select 1 i, date'2024-01-01' d, cast(1.5 as decimal(5,2)) n, true b, timestamp_ntz'2024-01-01 10:00:00' t"
    )
    tables.append(log, "select '7', '2024-02-29', '2.25', 'false', '2024-05-06 07:08:09.123456'")
    assert tables.rows(log) == [
        (1, date(2024, 1, 1), Decimal("1.50"), True, datetime(2024, 1, 1, 10)),
        (7, date(2024, 2, 29), Decimal("2.25"), False, datetime(2024, 5, 6, 7, 8, 9, 123456)),
    ]


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize("value", ["'x'", "5000000000L", "1e30D", "cast(99999999999 as decimal(20,0))"])
def test_a_value_that_the_column_cannot_hold_is_an_error_and_never_a_null(
    tables: Tables, ansi: str, value: str
) -> None:
    log = tables.made("select 1 i")
    before = tables.data_files(log)
    tables.spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        with pytest.raises(ValueNotCastableError, match="2 rows have a value of type"):
            tables.append(log, f"select {value} v union all select {value} union all select null")
    finally:
        tables.spark.conf.unset("spark.sql.ansi.enabled")
    assert tables.data_files(log) == before
    assert log.snapshot().version == 0


def test_not_null_is_enforced_within_structs_too(tables: Tables) -> None:
    columns = (ColumnDefinition("id", "bigint", nullable=False), ColumnDefinition("s", "struct<a: int not null>"))
    made = tables.made("select 5L, named_struct('a', 7)", columns=columns)
    with pytest.raises(NotNullViolationError, match="1 row has a null in the NOT NULL column `id`"):
        tables.append(made, "select cast(null as bigint), named_struct('a', 1)")
    with pytest.raises(NotNullViolationError, match=r"2 rows have a null in the NOT NULL column `s\.a`"):
        tables.append(made, "select id, named_struct('a', cast(null as int)) from range(2)")
    assert tables.rows(made) == [(5, {"a": 7})]


def test_a_check_constraint_must_be_true_and_the_error_shows_a_row(tables: Tables) -> None:
    log = tables.made("select 1 amount, 'a' name", constraints={"positive": "amount > 0 -- and nothing else"})
    before = tables.data_files(log)
    with pytest.raises(CheckViolationError, match=r'2 rows break the check constraint `positive`.*{"amount":') as error:
        tables.append(log, "values (-1, 'b'), (cast(null as int), 'c'), (5, 'd')")
    assert error.value.details["rows"] == 2
    assert tables.data_files(log) == before


def test_schema_evolution_adds_the_querys_new_columns_at_the_end(tables: Tables) -> None:
    log = tables.made("select 1L id, named_struct('a', 1) s")
    tables.append(
        log, "select named_struct('b', 'x', 'a', 2) s, 'new' extra, 2L id", by_name=True, schema_evolution=True
    )
    assert log.snapshot().schema.names == ("id", "s", "extra")
    assert tables.rows(log) == [(1, {"a": 1, "b": None}, None), (2, {"a": 2, "b": "x"}, "new")]
    assert tables.last_commit(log).operation_parameters["canMergeSchema"] is True


def test_schema_evolution_by_position_adds_the_querys_extra_columns(tables: Tables) -> None:
    log = tables.made(TWO_ROWS)
    tables.append(log, "select 3L, 'c', timestamp_ntz'2024-01-01 00:00:00' seen", schema_evolution=True)
    assert tables.rows(log)[-1] == (3, "c", datetime(2024, 1, 1))
    assert log.snapshot().protocol.writer_features is not None
    assert "timestampNtz" in log.snapshot().protocol.writer_features  # type: ignore[operator]


def test_an_append_based_on_an_older_schema_conflicts(tables: Tables) -> None:
    log = tables.made(TWO_ROWS)
    target = tables.target(log)
    tables.append(log, "select 3L id, 'c' name, 1 extra", by_name=True, schema_evolution=True)
    with pytest.raises(MetadataChangedError):
        insertion.append(target, tables.spark.sql("values (4L, 'd')"), Placement(), PLAIN)


def test_an_append_only_table_cannot_be_overwritten(tables: Tables) -> None:
    log = tables.made(TWO_ROWS, properties={"delta.appendOnly": "true"})
    before = tables.data_files(log)
    with pytest.raises(UnsupportedStatementError, match="append-only"):
        insertion.overwrite(tables.target(log), tables.spark.sql("values (9L, 'z')"), Placement(), PLAIN)
    assert tables.data_files(log) == before
