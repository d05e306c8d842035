"""The information schema describes tables and views, and reads only what a query needs."""

from __future__ import annotations

import json

import pytest

from dbt.adapters.silt.engine.kernel.storage.store import Store
from dbt.adapters.silt.engine.kernel.table.paths import checksum_path, commit_path
from tests.unit.engine.house import House

COLUMNS = "select column_name, ordinal_position, is_nullable, data_type from information_schema.columns"


def test_columns_of_tables_and_views_are_listed(house: House) -> None:
    house.sql("create table t (id bigint not null comment 'key', name varchar(5) default 'it', price decimal(12, 2))")
    house.sql("create view v (a, b comment 'text') as select id, upper(name) from t")
    rows = house.sql("select * from information_schema.columns order by table_name, ordinal_position").collect()
    found = [row.asDict() for row in rows]
    assert [(row["table_name"], row["column_name"], row["data_type"]) for row in found] == [
        ("t", "id", "bigint"),
        ("t", "name", "varchar(5)"),
        ("t", "price", "decimal(12,2)"),
        ("v", "a", "bigint"),
        ("v", "b", "string"),
    ]
    assert found[-1]["comment"] == "text"
    key, name, price = found[:3]
    assert (key["is_nullable"], key["comment"], key["numeric_precision"]) == ("NO", "key", 19)
    assert (name["is_nullable"], name["column_default"], name["character_maximum_length"]) == ("YES", "'it'", 5)
    assert (price["numeric_precision"], price["numeric_scale"], price["ordinal_position"]) == (12, 2, 3)
    assert (price["table_catalog"], price["table_schema"], price["is_generated"]) == ("silt", "main", "NEVER")


def test_a_generated_column_has_its_expression(house: House) -> None:
    house.sql("create table t (id int, twice int generated always as (id * 2))")
    query = "select is_generated, generation_expression from information_schema.columns where column_name = 'twice'"
    assert house.rows(query) == [("ALWAYS", "id * 2")]


def test_row_counts_are_shown_if_the_log_has_them(house: House) -> None:
    house.sql("create table t as select id from range(5)")
    house.sql("delete from t where id = 2")
    house.sql("create table unknown as select 1 as id")
    house.sql("create view v as select * from t")
    _without_statistics(house.log("unknown").store)
    house = house.another()
    query = "select table_name, row_count from information_schema.tables"
    assert house.rows(query) == [("t", 4), ("unknown", None), ("v", None)]
    assert house.rows("select row_count from (table information_schema.tables) where table_name = 't'") == [(4,)]
    assert house.rows("from information_schema.tables |> where table_name = 't' |> select row_count") == [(4,)]


def test_only_tables_that_the_query_needs_are_read(house: House, caplog: pytest.LogCaptureFixture) -> None:
    house.sql("create table good as select 1 as id")
    house.sql("create table bad as select 1 as id")
    house.log("bad").store.put(commit_path(0), b"{")
    house = house.another()
    by_name = f"{COLUMNS} where table_schema = 'main' and table_name = 'good'"
    assert house.rows(by_name) == [("id", 1, "YES", "int")]
    assert house.rows(f"{COLUMNS} c where lower(c.table_name) = 'good' and c.table_name in ('good', 'x')") == [
        ("id", 1, "YES", "int")
    ]
    assert caplog.text == ""
    assert house.rows(COLUMNS) == [("id", 1, "YES", "int")]
    assert "information_schema has no columns of silt.main.bad: [SILT_CORRUPT_LOG]" in caplog.text
    assert house.rows("select table_name from information_schema.tables") == [("bad",), ("good",)]
    assert house.rows("select table_name, row_count from information_schema.tables") == [("bad", None), ("good", 1)]


def test_conditions_keep_all_matching_rows(house: House) -> None:
    house.sql("create table a (x int, y int)")
    house.sql("create table b (x int)")
    names = "select table_name, column_name from information_schema.columns"
    assert house.rows(f"{names} where column_name = 'x' or table_name = 'a'") == [("a", "x"), ("a", "y"), ("b", "x")]
    assert house.rows(f"{names} where not (table_name = 'a') and column_name <> 'y'") == [("b", "x")]
    joined = (
        "select t.table_name, count(c.column_name) from information_schema.tables t left join "
        "information_schema.columns c on t.table_name = c.table_name and c.column_name = 'y' group by all"
    )
    assert house.rows(joined) == [("a", 1), ("b", 0)]


@pytest.mark.connect(gate=True)
def test_an_empty_result_has_its_columns(house: House) -> None:
    tables = house.sql("select table_name from information_schema.tables")
    assert (tables.collect(), tables.columns) == ([], ["table_name"])


def test_a_view_that_cannot_be_read_has_no_columns(house: House, caplog: pytest.LogCaptureFixture) -> None:
    house.sql("create table t (id int)")
    house.sql("create view broken as select id from t")
    house.sql("create view by_type as select id + 1 as n from t")
    house.sql("create view meta as select table_name as n from information_schema.columns")
    house.sql("create or replace table t (key array<int>, id array<int>)")
    query = "select table_name, column_name from information_schema.columns"
    assert house.rows(query) == [("broken", "id"), ("meta", "n"), ("t", "id"), ("t", "key")]
    house.sql("drop table t")
    assert house.rows(query) == [("meta", "n")]
    assert "main.broken" in caplog.text


def _without_statistics(store: Store) -> None:
    actions = [json.loads(line) for line in store.read(commit_path(0)).splitlines()]
    for action in actions:
        action.get("add", {}).pop("stats", None)
    store.put(commit_path(0), ("\n".join(map(json.dumps, actions)) + "\n").encode())
    store.delete(checksum_path(0))
