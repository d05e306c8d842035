"""WRITE DIFFERENCES BY leaves the rows of a full build, and writes only the rows that differ."""

from __future__ import annotations

import random

import pytest

from dbt.adapters.silt.engine.commands.target import Outcome
from dbt.adapters.silt.engine.kernel.errors import (
    ColumnNotFoundError,
    InvalidStatementError,
    NotNullViolationError,
    UnsupportedStatementError,
)
from tests.unit.engine.house import House

MARKED = "tblproperties('delta.enableDeletionVectors' = 'true')"
RECORDED = "tblproperties('delta.enableChangeDataFeed' = 'true')"
MAPPED = "tblproperties('delta.columnMapping.mode' = 'name', 'delta.enableChangeDataFeed' = 'true')"
TRACKED = "tblproperties('delta.enableRowTracking' = 'true')"
LAYOUTS = ["", MARKED, RECORDED, MAPPED, TRACKED, "partitioned by (name)"]
HOWEVER_WRITTEN = pytest.mark.parametrize("properties", LAYOUTS)
ROWS = "select * from values (1, 'a'), (2, 'b'), (null, null) as x(id, name)"


def replaced(house: House, query: str, properties: str = "", key: str = "id", columns: str = "") -> Outcome:
    text = f"create or replace table t {columns} {properties} write differences by ({key}) as {query}"
    outcome = house.warehouse.execute(text).outcome
    assert outcome is not None
    return outcome


@HOWEVER_WRITTEN
def test_only_the_rows_that_differ_are_written(house: House, properties: str) -> None:
    first = replaced(house, ROWS, properties)
    assert (first.version, first.rows_inserted, first.rebuilt) == (0, 3, None)
    outcome = replaced(house, "select * from values (2, 'B'), (3, 'c'), (null, null) as x(id, name)", properties)
    assert (outcome.rows_inserted, outcome.rows_updated, outcome.rows_deleted) == (1, 1, 1)
    assert (outcome.version, outcome.rebuilt) == (1, None)
    assert house.rows("select * from t") == [(2, "B"), (3, "c"), (None, None)]
    changed = house.rows("select id, name, _change_type from silt_changes('main.t', after => 0)")
    assert {row[2] for row in changed} <= {"insert", "delete", "update_preimage", "update_postimage"}
    assert len(changed) == 4
    assert {row[0] for row in changed} == {1, 2, 3}


@HOWEVER_WRITTEN
def test_equal_rows_change_no_data(house: House, properties: str) -> None:
    replaced(house, ROWS, properties)
    files = {add.path for add in house.log("t").snapshot().add_files()}
    outcome = replaced(house, ROWS, properties)
    assert outcome.unchanged
    assert {add.path for add in house.log("t").snapshot().add_files()} == files
    assert house.rows("select * from silt_changes('main.t', after => 0)") == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("values (1, 'a'), (1, 'a')", "values (1, 'a')"),
        ("values (1, 'a')", "values (1, 'a'), (1, 'a')"),
        ("values (1, 'a')", "values (1, 'a'), (1, 'b')"),
        ("values (1, 'a'), (1, 'b')", "values (1, 'a'), (1, 'b')"),
    ],
)
def test_all_rows_are_replaced_if_the_key_is_not_unique(house: House, before: str, after: str) -> None:
    replaced(house, f"select * from {before} as x(id, name)")
    outcome = replaced(house, f"select * from {after} as x(id, name)")
    assert outcome.rebuilt == "the key (id) is not unique"
    assert house.rows("select * from t") == house.rows(f"select * from {after} as x(id, name)")
    assert len(list(house.log("t").snapshot().add_files())) == outcome.files_added


def test_two_new_rows_with_the_same_new_key_are_both_inserted(house: House) -> None:
    replaced(house, "select 1 id, 'a' name")
    outcome = replaced(house, "select * from values (1, 'a'), (2, 'b'), (2, 'c') as x(id, name)")
    assert (outcome.rebuilt, outcome.rows_inserted) == (None, 2)
    assert house.rows("select * from t") == [(1, "a"), (2, "b"), (2, "c")]


@pytest.mark.parametrize(
    ("query", "properties", "reason"),
    [
        ("select id, name, 1 more from t", "", "the columns have changed"),
        ("select id from t", "", "the columns have changed"),
        ("select bigint(id) id, name from t", "", "the columns have changed"),
        ("select * from t", "partitioned by (name)", "the layout has changed"),
        ("select * from t", RECORDED, "the table properties or constraints have changed"),
    ],
)
def test_all_rows_are_replaced_if_the_definition_changes(
    house: House, query: str, properties: str, reason: str
) -> None:
    replaced(house, ROWS)
    house.sql("create table expected as " + query)
    outcome = replaced(house, query, properties)
    assert outcome.rebuilt == reason
    assert house.rows("select * from t") == house.rows("select * from expected")
    assert house.log("t").snapshot().schema.names == house.log("expected").snapshot().schema.names


def test_a_comment_is_changed_without_rows(house: House) -> None:
    replaced(house, ROWS, "comment 'old'", columns="(id comment 'o', name)")
    outcome = replaced(house, ROWS, "comment 'new'", columns="(id comment 'n', name)")
    assert outcome.unchanged and outcome.rebuilt is None
    metadata = house.log("t").snapshot().metadata
    assert metadata.description == "new" and '"comment":"n"' in metadata.schema_string.replace(" ", "")


def test_declared_columns_are_filled_by_position_and_checked(house: House) -> None:
    columns = "(id int not null, name varchar(2))"
    replaced(house, "select 1, 'a'", columns=columns)
    outcome = replaced(house, "select 1 as a, 'b' as b union all select 2, 'c'", columns=columns)
    assert (outcome.rebuilt, outcome.rows_updated, outcome.rows_inserted) == (None, 1, 1)
    assert house.rows("select * from t") == [(1, "b"), (2, "c")]
    with pytest.raises(NotNullViolationError):
        replaced(house, "select cast(null as int), 'c'", columns=columns)
    assert house.log("t").snapshot().version == 1


def test_structs_with_fields_in_another_order_are_replaced_as_by_create(house: House) -> None:
    columns = "(id int, s struct<a: int, b: int>)"
    replaced(house, "select 1, named_struct('a', 1, 'b', 2)", columns=columns)
    outcome = replaced(house, "select 1, named_struct('b', 1, 'a', 2)", columns=columns)
    assert outcome.rebuilt is not None or outcome.unchanged
    assert [row["s"].asDict() for row in house.fetched("select s from t")] == [{"a": 1, "b": 2}]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("create or replace table t write differences by (nowhere) as select 1 id", ColumnNotFoundError),
        ("create or replace table t write differences by (id, ID) as select 1 id", InvalidStatementError),
        ("create or replace table t write differences by (id) as select map(1, 2) id", InvalidStatementError),
        ("create or replace table t (id int) write differences by (id)", UnsupportedStatementError),
        ("create table t write differences by (id) changed keys (id) as select 1 id", UnsupportedStatementError),
    ],
)
def test_a_key_that_cannot_be_used_is_refused_before_anything_is_written(
    house: House, text: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        house.sql(text)
    assert house.rows("show tables in main") == []


def test_random_rebuilds_leave_the_rows_of_a_full_build(house: House) -> None:
    drawn = random.Random(37)
    values = ("null", "0.0D", "-0.0D", "double('NaN')", "1.5D")
    for properties in ("", MARKED, RECORDED):
        for _ in range(4):
            keys = drawn.sample(range(40), drawn.randint(1, 30))
            keys += drawn.sample(keys, 1) if drawn.random() < 0.2 else []
            rows = [
                f"({key}, {drawn.choice(values)}, map('k', {drawn.randint(0, 1)}), array({drawn.choice(values)}))"
                for key in keys
            ]
            query = f"select * from values {', '.join(rows)} as x(id, d, m, a)"
            outcome = replaced(house, query, properties)
            text = "select id, cast(d as string) d, cast(m as string) m, cast(a as string) a"
            assert house.rows(f"{text} from t") == house.rows(f"{text} from ({query})")
            assert outcome.rebuilt in (
                None,
                "the key (id) is not unique",
                "the table properties or constraints have changed",
            )
