"""INSERT REPLACE WHERE, USING and ON: the rows and files that they replace."""

from __future__ import annotations

import dataclasses
from typing import Any

import pyarrow as pa
import pytest

from dbt.adapters.silt.engine.commands.insert import insertion, replace
from dbt.adapters.silt.engine.commands.insert.placement import Placement
from dbt.adapters.silt.engine.commands.merge.plan import KeyEquality, MergePlan
from dbt.adapters.silt.engine.commands.rows.file_rows import Limits, Rows
from dbt.adapters.silt.engine.commands.target import Outcome, Target
from dbt.adapters.silt.engine.kernel.errors import (
    ColumnNotFoundError,
    ConcurrentAppendError,
    ConcurrentDeleteDeleteError,
    ReplaceWhereMismatchError,
)
from dbt.adapters.silt.engine.kernel.table.expressions import Column, Comparison, Expression
from tests.unit.engine.commands.spark_tables import PLAIN, Tables, in_order

SALES = "select * from values (1L, 'a', 10), (2L, 'a', 20), (3L, 'b', 30), (4L, null, 40) as t(id, shop, price)"
PARTITIONED: dict[str, Any] = {"partition_columns": ("shop",)}


def where(tables: Tables, target: Target, query: str, condition: str, predicate: Expression) -> Outcome:
    rows = Rows("orders", condition, predicate)
    return replace.replace_where(tables.spark, target, tables.spark.sql(query), Placement(), rows, PLAIN)


def using(tables: Tables, target: Target, query: str, *columns: str) -> Outcome:
    return replace.replace_using(target, tables.spark.sql(query), Placement(), columns, PLAIN)


def partitions(tables: Tables, target: Target, query: str) -> Outcome:
    return replace.overwrite_partitions(target, tables.spark.sql(query), Placement(), PLAIN)


def test_replace_where_deletes_the_matching_rows_and_inserts_the_new(tables: Tables) -> None:
    log = tables.made(SALES)
    predicate = Comparison("<", Column.of("price"), 25)
    outcome = where(tables, tables.target(log), "values (9L, 'z', 5)", "orders.price < 25", predicate)
    assert tables.rows(log) == [(3, "b", 30), (4, None, 40), (9, "z", 5)]
    assert (outcome.rows_inserted, outcome.rows_deleted, outcome.version) == (1, 2, 1)
    assert tables.last_commit(log).operation_parameters["predicate"] == "orders.price < 25"


def test_rows_for_which_the_condition_is_null_are_kept(tables: Tables) -> None:
    log = tables.made(SALES)
    where(tables, tables.target(log), "values (9L, 'a', 5)", "shop = 'a'", Comparison("=", Column.of("shop"), "a"))
    assert tables.rows(log) == [(3, "b", 30), (4, None, 40), (9, "a", 5)]


def test_replace_where_refuses_rows_outside_of_its_condition(tables: Tables) -> None:
    log = tables.made(SALES)
    before = tables.data_files(log)
    with pytest.raises(ReplaceWhereMismatchError, match="2 rows of the query do not match"):
        predicate = Comparison("<", Column.of("price"), 25)
        where(
            tables, tables.target(log), "values (9L, 'z', 25), (8L, 'z', null), (7L, 'z', 1)", "price < 25", predicate
        )
    assert tables.data_files(log) == before
    assert log.snapshot().version == 0


def test_replace_where_opens_only_files_that_may_hold_matching_rows(tables: Tables) -> None:
    log = tables.made(SALES, **PARTITIONED)
    target = tables.target(log)
    # Whole partitions are replaced: no file of the table is read, so the files may be missing.
    for name in tables.data_files(log):
        log.store.delete(name)
    predicate = Comparison("=", Column.of("shop"), "a")
    outcome = where(tables, target, "values (9L, 'a', 5)", "shop = 'a'", predicate)
    assert (outcome.files_added, outcome.files_removed, outcome.files_skipped) == (1, 1, 3)
    assert outcome.rows_deleted == 2


def test_large_candidates_are_searched_first_and_files_without_a_match_are_kept(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tables.made("select 1L id, 5 price")
    tables.append(log, "values (2L, 1), (3L, 9)")
    tables.append(log, "values (4L, 2), (5L, 8)")
    monkeypatch.setattr(insertion, "LIMITS", Limits(at_once=0))
    # Statistics cannot rule out the last file; a search of its rows can.
    predicate = Comparison("<", Column.of("price"), 6)
    outcome = where(tables, tables.target(log), "values (9L, 1)", "price = 5 or price = 1", predicate)
    assert (outcome.files_removed, outcome.rows_deleted) == (2, 2)
    assert in_order(tables.rows(log)) == [(3, 9), (4, 2), (5, 8), (9, 1)]


def test_replace_where_conflicts_only_with_rows_that_it_would_have_replaced(tables: Tables) -> None:
    log = tables.made(SALES, **PARTITIONED)
    predicate = Comparison("=", Column.of("shop"), "a")
    target = tables.target(log)
    tables.append(log, "values (5L, 'b', 50)")
    where(tables, target, "values (9L, 'a', 5)", "shop = 'a'", predicate)
    target = tables.target(log)
    tables.append(log, "values (6L, 'a', 60)")
    with pytest.raises(ConcurrentAppendError):
        where(tables, target, "values (9L, 'a', 5)", "shop = 'a'", predicate)


def test_replace_using_replaces_rows_with_equal_keys_but_no_rows_with_null_keys(tables: Tables) -> None:
    log = tables.made(SALES)
    outcome = using(tables, tables.target(log), "values (9L, 'a', 1), (10L, cast(null as string), 2)", "SHOP")
    assert tables.rows(log) == in_order([(10, None, 2), (3, "b", 30), (4, None, 40), (9, "a", 1)])
    assert (outcome.rows_inserted, outcome.rows_deleted) == (2, 2)
    assert tables.last_commit(log).operation_parameters["replaceUsingCols"] == "(shop)"


def test_replace_using_several_columns_compares_them_together(tables: Tables) -> None:
    log = tables.made(SALES)
    using(tables, tables.target(log), "values (1L, 'a', 0), (3L, 'a', 0)", "id", "shop")
    assert tables.rows(log) == in_order([(1, "a", 0), (2, "a", 20), (3, "a", 0), (3, "b", 30), (4, None, 40)])


def test_replace_using_an_empty_query_replaces_nothing(tables: Tables) -> None:
    log = tables.made(SALES)
    outcome = using(tables, tables.target(log), SALES + " where false", "shop")
    assert len(tables.rows(log)) == 4
    assert (outcome.rows_inserted, outcome.rows_deleted) == (0, 0)


def test_replace_using_evaluates_a_nondeterministic_query_once(tables: Tables) -> None:
    log = tables.made("select cast(id as double) k, id from range(50)")
    query = "select round(rand() * 50) k, id + 100 as id from range(20)"
    using(tables, tables.target(log), query, "k")
    rows = tables.rows(log)
    new_keys = {k for k, number in rows if number >= 100}
    assert len([number for _, number in rows if number >= 100]) == 20
    assert not any(k in new_keys for k, number in rows if number < 100)
    assert {k for k, number in rows if number < 100} == {float(k) for k in range(50)} - new_keys


def test_replace_using_skips_files_outside_the_range_of_the_keys(tables: Tables) -> None:
    log = tables.made("select id from range(0, 10, 1, 1)")
    tables.append(log, "select id from range(100, 110, 1, 1)")
    outcome = using(tables, tables.target(log), "select 105L", "id")
    assert (outcome.files_skipped, outcome.files_removed, outcome.rows_deleted) == (1, 1, 1)
    assert len(tables.rows(log)) == 20


def test_replace_using_the_partition_columns_replaces_whole_files_without_reading_them(tables: Tables) -> None:
    log = tables.made(SALES, **PARTITIONED)
    target = tables.target(log)
    for name in tables.data_files(log):
        log.store.delete(name)
    outcome = using(tables, target, "values (9L, 'a', 1), (10L, cast(null as string), 2)", "shop")
    assert (outcome.files_added, outcome.files_removed, outcome.rows_deleted) == (2, 1, 2)


def test_overwriting_partitions_treats_null_as_a_value(tables: Tables) -> None:
    log = tables.made(SALES, **PARTITIONED)
    partitions(tables, tables.target(log), "values (9L, 'a', 1), (10L, cast(null as string), 2)")
    assert tables.rows(log) == in_order([(10, None, 2), (3, "b", 30), (9, "a", 1)])
    assert tables.last_commit(log).operation_parameters["isDynamicPartitionOverwrite"] is True


def test_overwriting_partitions_distinguishes_null_from_the_string_null(tables: Tables) -> None:
    query = "select 1 id, '__HIVE_DEFAULT_PARTITION__' shop union all select 2, cast(null as string)"
    log = tables.made(query, **PARTITIONED)
    partitions(tables, tables.target(log), "select 3 id, '__HIVE_DEFAULT_PARTITION__' shop")
    assert in_order([tuple(row) for row in tables.read(log).collect()]) == [
        (2, None),
        (3, "__HIVE_DEFAULT_PARTITION__"),
    ]


def test_overwriting_the_partitions_of_an_unpartitioned_table_replaces_it(tables: Tables) -> None:
    log = tables.made(SALES)
    partitions(tables, tables.target(log), "values (9L, 'z', 1)")
    assert tables.rows(log) == [(9, "z", 1)]


def test_partition_values_of_other_writers_are_compared_as_values(tables: Tables) -> None:
    moments = pa.array([1_704_103_200_000_000, 1_704_106_800_000_000], pa.timestamp("us", "UTC"))
    log = tables.made_by_delta_rs("theirs", pa.table({"at": moments, "id": pa.array([1, 2])}), "at")
    partitions(tables, tables.target(log), "select timestamp'2024-01-01 10:00:00Z', 9L")
    assert sorted(row["id"] for row in tables.read(log).collect()) == [2, 9]


def test_concurrent_replacements_conflict_only_in_the_same_partition(tables: Tables) -> None:
    log = tables.made(SALES, **PARTITIONED)
    target = tables.target(log)
    partitions(tables, target, "values (9L, 'a', 1)")
    partitions(tables, target, "values (8L, 'b', 1)")
    assert tables.rows(log) == in_order([(4, None, 40), (8, "b", 1), (9, "a", 1)])
    with pytest.raises((ConcurrentAppendError, ConcurrentDeleteDeleteError)):
        partitions(tables, target, "values (7L, 'a', 1)")


def test_replace_using_requires_columns_of_the_table(tables: Tables) -> None:
    log = tables.made(SALES)
    with pytest.raises(ColumnNotFoundError, match="nosuch"):
        using(tables, tables.target(log), "values (9L, 'a', 1)", "nosuch")


def test_rows_that_are_kept_keep_their_values_under_schema_evolution(tables: Tables) -> None:
    log = tables.made(SALES)
    query = tables.spark.sql("select 1L id, 'a' shop, 0 price, 'new' note")
    placement = Placement(by_name=True, schema_evolution=True)
    target = dataclasses.replace(tables.target(log))
    replace.replace_using(target, query, placement, ["id"], PLAIN)
    assert tables.rows(log) == in_order(
        [(1, "a", 0, "new"), (2, "a", 20, None), (3, "b", 30, None), (4, None, 40, None)]
    )


def test_the_conflict_check_distinguishes_null_keys_from_other_keys(tables: Tables) -> None:
    log = tables.made("select 1L id, 'a' shop")
    tables.append(log, "values (cast(null as bigint), 'n')")
    target = tables.target(log)
    tables.append(log, "values (2L, 'b')")
    query = tables.spark.sql("select cast(null as bigint) id, 'new' shop")
    keys = (KeyEquality(Column.of("id"), "s.id", null_safe=True),)
    plan = MergePlan("t", "s", "t.id <=> s.id", clauses=(), keys=keys, keys_only=True)
    outcome = replace.replace_on(target, query, Placement(by_name=True), plan, PLAIN)
    assert (outcome.files_skipped, outcome.rows_deleted) == (1, 1)
    assert tables.rows(log) == in_order([(1, "a"), (2, "b"), (None, "new")])
    target = tables.target(log)
    tables.append(log, "values (cast(null as bigint), 'other')")
    with pytest.raises(ConcurrentAppendError):
        replace.replace_on(target, query, Placement(by_name=True), plan, PLAIN)
