"""`spark.read.format("silt")` returns the same rows as the warehouse."""

from __future__ import annotations

from datetime import timezone

import pytest
from pyspark.sql import datasource as api
from pyspark.sql import functions as F

from dbt.adapters.silt import engine as silt
from dbt.adapters.silt.engine.catalog.branches.run_branches import BranchedRun
from tests.unit.engine.datasource.tables import FEED, VECTORS, Tables, in_order, raises, texts

EVERY_TYPE = (
    "select id, cast(id as tinyint) as t, cast(id as smallint) as s, cast(id as int) as i, cast(id as float) / 3 as f,"
    " if(id = 4, double('NaN'), id / 7) as d, cast(id as decimal(5, 2)) as n, cast(id as decimal(38, 4)) as m,"
    " concat('é', id) as x, cast(concat('b', id) as binary) as b, id = 1 as y, date '2024-02-28' + 1 as e,"
    " timestamp_micros(id * 1234567) as z, timestamp_ntz '2024-03-10 02:30:00' as w, if(id = 2, null, id) as o,"
    " array(named_struct('q', id), null) as a, map(concat('k', id), array(id, null), 'n', null) as k,"
    " named_struct('x', cast(id as int), 'y z', array(map(1, id))) as r from range(5)"
)


@pytest.mark.connect(gate=True)
def test_a_table_with_columns_of_every_type_is_read_by_its_name_and_by_its_path(tables: Tables) -> None:
    tables.house.sql(f"create table main.t using delta as {EVERY_TYPE}")
    found, expected = tables.read("t"), tables.house.warehouse.table("main.t")
    assert found.schema == expected.schema
    assert texts(found) == texts(expected)
    by_path = tables.house.warehouse.spark.read.format("silt").options(**tables.options())
    assert texts(by_path.load(tables.house.location("t"))) == texts(expected)


def test_the_rows_of_a_run_that_is_not_published_are_read_on_its_branch(tables: Tables) -> None:
    tables.house.sql("create table main.t as select 1 as id")
    other = tables.house.another().warehouse
    _, branch = other.catalog.run_branches("silt").open(BranchedRun("shop", "dev", "monday"))
    other.for_session(other.spark, branch=branch).sql("insert into main.t values (2)")
    assert in_order(tables.read("t", branch="monday")) == [(1,), (2,)]
    assert in_order(tables.read("t")) == [(1,)]
    with raises("SILT_RUN_NOT_FOUND", "tuesday"):
        tables.read("t", branch="tuesday").collect()


@pytest.mark.parametrize("mode", ["name", "id"])
def test_deleted_rows_renamed_and_widened_columns_and_partitions_are_read_correctly(tables: Tables, mode: str) -> None:
    sql = tables.house.sql
    properties = (
        f"'delta.columnMapping.mode' = '{mode}', 'delta.enableDeletionVectors' = 'true', "
        "'delta.enableTypeWidening' = 'true'"
    )
    sql(
        f"create table main.t (id int, `a b` string, day date, x int) partitioned by (day) tblproperties ({properties})"
    )
    sql(
        "insert into main.t"
        " select cast(id as int), concat('v', id), date '2024-01-01' + cast(id % 3 as int), 1 from range(30)"
    )
    sql("delete from main.t where id % 5 = 0")
    sql("alter table main.t alter column id type bigint")
    sql("alter table main.t rename column `a b` to label")
    sql("alter table main.t drop column x")
    sql("insert into main.t values (10000000000, null, null)")
    assert in_order(tables.read("t")) == in_order(tables.house.warehouse.table("main.t"))


@pytest.mark.skipif("config.getoption('--connect')", reason="over Spark Connect it is the newest when it is computed")
def test_a_dataframe_reads_the_version_that_was_newest_at_its_creation(tables: Tables) -> None:
    tables.house.sql("create table main.t as select 1 as id")
    rows = tables.read("t")
    tables.house.sql("insert into main.t values (2)")
    tables.house.sql("alter table main.t add column more int")
    assert in_order(rows) == [(1,)]
    assert in_order(tables.read("t")) == [(1, None), (2, None)]


def test_versions_and_timestamps_are_read_as_they_were(tables: Tables) -> None:
    tables.house.sql("create table main.t as select 1 as id")
    made = tables.house.sql("describe history main.t").collect()[0].timestamp
    at = made.astimezone(timezone.utc)
    tables.house.sql("insert into main.t values (2)")
    assert in_order(tables.read("t", versionAsOf=0)) == [(1,)]
    assert in_order(tables.read("t", versionAsOf=1)) == [(1,), (2,)]
    assert in_order(tables.read("t", timestampAsOf=at.isoformat())) == [(1,)]
    local = at.replace(tzinfo=None).isoformat(sep=" ")
    assert in_order(tables.read("t", timestampAsOf=local, timeZone="UTC")) == [(1,)]
    with raises("SILT_VERSION_NOT_FOUND"):
        tables.read("t", versionAsOf=7)
    with raises("SILT_INVALID_ARGUMENT", "cannot be combined"):
        tables.read("t", versionAsOf=0, timestampAsOf=at.isoformat())


def test_the_options_select_columns_and_a_condition(tables: Tables) -> None:
    tables.house.sql("create table main.t as select id, concat('v', id) as label, id * 2 as twice from range(10)")
    assert in_order(tables.read("t", columns="twice, id", where="id > 7")) == [(16, 8), (18, 9)]
    reader = tables.house.warehouse.spark.read.format("silt").options(**tables.options())
    assert in_order(reader.schema("label string, id long").load("main.t").filter("id = 3")) == [("v3", 3)]
    with raises("SILT_TYPE_MISMATCH", "`id`"):
        reader.schema("id int").load("main.t").collect()
    with raises("SILT_UNSUPPORTED_STATEMENT"):
        tables.read("t", where="id % 2 = 0").collect()


@pytest.mark.skipif(not hasattr(api.DataSourceReader, "pushFilters"), reason="this PySpark pushes no filters down")
def test_pushed_down_filters_skip_files_and_change_no_result(tables: Tables) -> None:
    house = tables.house
    house.sql("create table main.t (id bigint, label string, x double, at timestamp, amount decimal(9, 2))")
    for start in (0, 100):
        house.sql(
            "insert into main.t select id, concat('v', id), if(id % 10 = 0, double('NaN'), id / 4), "
            f"timestamp_seconds(id * 3600), id from range({start}, {start + 100})"
        )
    spark = house.warehouse.spark
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        for condition in (
            "id = 150",
            "id > 20 and x > 40",
            "label like 'v1%' and id in (5, 105, null)",
            "not (id > 30)",
            "x is not null and x <=> double('NaN')",
            "at >= timestamp '1970-01-05 00:00:00' and amount < 120.5",
            "id % 2 = 0 or label is null",
        ):
            expected = house.warehouse.table("main.t").filter(condition)
            assert texts(tables.read("t").filter(condition)) == texts(expected), condition
        tables_of_old = tables.read("t")
        first = min(house.log("t").snapshot().add_files(), key=lambda add: add.stats or "")
        house.log("t").store.delete(first.path)
        assert tables_of_old.filter("id = 150").count() == 1
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_an_empty_table_has_its_columns_and_no_rows(tables: Tables) -> None:
    tables.house.sql("create table main.t (id bigint, label string)")
    assert tables.read("t").schema.simpleString() == "struct<id:bigint,label:string>"
    assert tables.read("t").count() == 0


def test_a_missing_data_file_is_named_in_the_error(tables: Tables) -> None:
    tables.house.sql("create table main.t as select 1 as id")
    log = tables.house.log("t")
    (add,) = log.snapshot().add_files()
    log.store.delete(add.path)
    with raises("SILT_DATA_FILE_MISSING"):
        tables.read("t").collect()


def test_an_unknown_option_and_a_missing_table_are_named(tables: Tables) -> None:
    tables.house.sql("create table main.t as select 1 as id")
    with raises("SILT_INVALID_ARGUMENT", "Did you mean `versionAsOf`?"):
        tables.read("t", versionAsOff=1)
    with raises("SILT_INVALID_ARGUMENT", "not a whole number"):
        tables.read("t", versionAsOf="one")
    with raises("SILT_RELATION_NOT_FOUND"):
        tables.read("missing")
    with raises("SILT_INVALID_ARGUMENT", "no warehouse is given"):
        tables.house.warehouse.spark.read.format("silt").load("main.t")


def test_sql_reads_a_table_through_a_view_of_the_data_source(tables: Tables) -> None:
    tables.house.sql("create table main.t as select 1 as id")
    spark = tables.house.warehouse.spark
    options = ", ".join(f"'{name}' '{value}'" for name, value in tables.options(path="main.t").items())
    spark.sql(f"create or replace temporary view of_source using silt options ({options})")
    try:
        assert in_order(spark.sql("select * from of_source")) == [(1,)]
    finally:
        spark.catalog.dropTempView("of_source")


def test_the_change_feed_has_the_same_rows_as_in_sql(tables: Tables) -> None:
    sql = tables.house.sql
    sql(f"create table main.t (id bigint, day int) partitioned by (day) {FEED}")
    sql("alter table main.t set tblproperties ('delta.enableDeletionVectors' = 'true')")
    sql("insert into main.t select id, id % 2 from range(20)")
    sql("update main.t set id = id + 100 where id < 3")
    sql("delete from main.t where id = 5")
    sql("insert overwrite main.t values (1, 1)")
    newest = tables.house.log("t").snapshot().version
    for first in (0, 3, newest):
        found = tables.read("t", readChangeFeed=True, startingVersion=first)
        assert in_order(found) == in_order(sql(f"select * from table_changes('main.t', {first})"))
    found = tables.read("t", readChangeFeed=True, startingVersion=2, endingVersion=3)
    assert in_order(found) == in_order(sql("select * from table_changes('main.t', 2, 3)"))
    with raises("SILT_INVALID_ARGUMENT", "no start is given"):
        tables.read("t", readChangeFeed=True).collect()


def test_rows_deleted_and_restored_by_vectors_alone_are_in_the_change_feed(tables: Tables) -> None:
    sql = tables.house.sql
    sql(f"create table main.t {VECTORS} as select id from range(50)")
    sql("alter table main.t set tblproperties ('delta.enableChangeDataFeed' = 'true')")
    sql("delete from main.t where id in (3, 7)")
    sql("restore table main.t to version as of 0")
    sql("alter table main.t set tblproperties ('delta.enableChangeDataFeed' = 'true')")
    found = tables.read("t", readChangeFeed=True, startingVersion=2, endingVersion=2)
    assert in_order(found.select("id", "_change_type")) == [(3, "delete"), (7, "delete")]


def test_a_table_of_many_files_is_divided_among_few_tasks(tables: Tables) -> None:
    tables.house.sql("create table main.t (id bigint)")
    for number in range(4):
        tables.house.sql(f"insert into main.t values ({number})")
    rows = tables.read("t")
    assert rows.withColumn("task", F.spark_partition_id()).select("task").distinct().count() <= 4
    assert rows.agg(F.sum("id")).collect()[0][0] == 6


def test_the_name_of_the_data_source_is_public(tables: Tables) -> None:
    assert silt.DataSource.name() == "silt"
