"""Statements about the versions of a table, and the fate of recorded transactions, in SQL."""

from __future__ import annotations

import re
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.kernel import errors
from tests.unit.engine.house import House, opened, other_rows
from tests.unit.engine.place import Place


@pytest.fixture
def orders(house: House) -> House:
    """Version 1 has the rows 1 and 2, version 2 also 3."""
    house.sql("create table orders (id bigint, name string)")
    house.sql("insert into orders values (1, 'a'), (2, 'b')")
    house.sql("insert into orders values (3, 'c')", txn=("load", 1))
    return house


@pytest.fixture
def batches(spark: SparkSession, place: Place) -> House:
    """A table that the batches b1 and b2, and the unit `main`, have written."""
    house = opened(spark, place)
    forgotten = replace(house.warehouse.settings, is_forgotten_on_replace=lambda app_id: app_id.startswith("batch"))
    house.warehouse.settings = forgotten
    house.sql("create table t as select 0 as id", txn=("main", 1))
    for number in (1, 2):
        house.sql(f"insert into t values ({number})", txn=(f"batch {number}", 1))
    return house


def times(house: House) -> dict[int, str]:
    """Returns the time of each version, as text in the session's time zone."""
    rows = house.sql("describe history orders").selectExpr("version", "cast(timestamp as string) as text").collect()
    return {row.version: row.text for row in rows}


def is_skipped(house: House, app_id: str, table: str = "t") -> bool:
    return bool(house.sql(f"insert into {table} values (9)", txn=(app_id, 1)).collect()[0].skipped)


# RESTORE


def test_a_restored_table_has_its_earlier_rows_and_forgets_later_work(orders: House) -> None:
    row = orders.sql("restore table orders to version as of 1").collect()[0]
    assert (row.operation, row.version, row.skipped) == ("RESTORE", 3, False)
    assert orders.rows("select id from orders") == [(1,), (2,)] == other_rows(orders, "orders", "id")
    assert not orders.sql("insert into orders values (3, 'c')", txn=("load", 1)).collect()[0].skipped
    assert orders.rows("select id from orders") == [(1,), (2,), (3,)]


def test_a_table_is_restored_to_a_time_by_its_path_and_by_a_quoted_name(orders: House) -> None:
    orders.sql(f"restore `silt`.`main`.`orders` to timestamp as of timestamp'{times(orders)[1]}'")
    assert len(orders.rows("select * from orders")) == 2
    orders.sql(f"restore table delta.`{orders.location('orders')}` to version as of 2")
    assert len(orders.rows("select * from orders")) == 3
    orders.sql("restore orders to timestamp as of current_timestamp() + interval 1 day")
    assert len(orders.rows("select * from orders")) == 3
    with pytest.raises(errors.VersionNotFoundError):
        orders.sql("restore orders to timestamp as of '1999-12-31'")


def test_a_restore_with_a_transaction_is_applied_once(orders: House) -> None:
    assert not orders.sql("restore orders to version as of 1", txn=("fix", 1)).collect()[0].skipped
    orders.sql("insert into orders values (4, 'd')")
    assert orders.sql("restore orders to version as of 1", txn=("fix", 1)).collect()[0].skipped
    assert len(orders.rows("select * from orders")) == 3


def test_a_restore_restores_schema_partitioning_and_properties(house: House) -> None:
    house.sql("create table t (id int, day string) partitioned by (day) tblproperties ('a' = '1')")
    house.sql("insert into t values (1, 'x'), (2, 'y')")
    house.sql("create or replace table t as select 'other' as word")
    house.sql("restore t to version as of 1")
    assert house.rows("select id, day from t where day = 'y'") == [(2, "y")] == other_rows(house, "t")[1:]
    assert ("a", "1") in house.rows("show tblproperties t")


def test_a_view_and_a_missing_table_cannot_be_restored(orders: House) -> None:
    orders.sql("create view v as select * from orders")
    with pytest.raises(errors.UnsupportedStatementError, match="it is a view"):
        orders.sql("restore v to version as of 0")
    with pytest.raises(errors.RelationNotFoundError):
        orders.sql("restore main.nothing to version as of 0")


# Recorded transactions


@pytest.mark.parametrize("replace_it", ["create or replace table t as select 7 as id", "insert overwrite t select 7"])
def test_replacing_the_whole_table_forgets_batches_and_keeps_the_unit_main(batches: House, replace_it: str) -> None:
    batches.sql(replace_it, txn=("batch 1", 2))
    assert is_skipped(batches, "batch 1") and is_skipped(batches, "main")
    assert not is_skipped(batches, "batch 2")
    assert batches.rows("select id from t") == [(7,), (9,)]


@pytest.mark.parametrize("empty_it", ["truncate table t", "delete from t"])
def test_truncate_and_delete_keep_the_transactions_and_a_skip_reports_the_emptying(
    batches: House, empty_it: str
) -> None:
    batches.sql(empty_it)
    assert is_skipped(batches, "batch 2") and is_skipped(batches, "main")
    assert batches.warehouse.execute("insert into t values (2)", ("batch 2", 1)).outcome.emptied_at == 3  # type: ignore[union-attr]


def test_deleting_some_rows_does_not_count_as_emptying(batches: House) -> None:
    batches.sql("delete from t where id = 1")
    assert batches.warehouse.execute("insert into t values (2)", ("batch 2", 1)).outcome.emptied_at is None  # type: ignore[union-attr]


def test_a_renamed_table_keeps_its_transactions(batches: House) -> None:
    batches.sql("alter table t rename to u")
    assert is_skipped(batches, "batch 1", "u") and is_skipped(batches, "main", "u")


def test_a_dropped_table_loses_its_transactions(batches: House) -> None:
    batches.sql("drop table t")
    batches.sql("create table t (id int)")
    assert not is_skipped(batches, "batch 1") and not is_skipped(batches, "main")


# userMetadata and DESCRIBE


def test_the_user_metadata_of_a_commit_is_shown_in_the_history(orders: House) -> None:
    orders.warehouse.sql("delete from orders where id = 3", user_metadata="cleared")
    orders.sql("set spark.databricks.delta.commitInfo.userMetadata = by the session")
    orders.sql("insert into orders values (5, 'e')")
    orders.warehouse.sql("insert into orders values (6, 'f')", user_metadata="by the call")
    orders.sql("reset spark.databricks.delta.commitInfo.userMetadata")
    orders.sql("insert into orders values (7, 'g')")
    notes = [row.userMetadata for row in orders.sql("describe history orders limit 5").collect()]
    assert notes == [None, "by the call", "by the session", "cleared", None]


def test_the_history_and_the_detail_have_the_columns_of_delta_spark(orders: House) -> None:
    history = orders.sql("describe history orders limit 2")
    assert history.columns == [
        "version",
        "timestamp",
        "userId",
        "userName",
        "operation",
        "operationParameters",
        "job",
        "notebook",
        "clusterId",
        "readVersion",
        "isolationLevel",
        "isBlindAppend",
        "operationMetrics",
        "userMetadata",
        "engineInfo",
    ]
    newest, before = history.collect()
    assert (newest.version, newest.readVersion, newest.isBlindAppend, before.version) == (2, 1, True, 1)
    assert newest.operationMetrics["numOutputRows"] == "1" and newest.engineInfo.startswith("dbt-silt/")
    detail = orders.sql("describe detail orders")
    assert detail.columns[:9] == [
        "format",
        "id",
        "name",
        "description",
        "location",
        "createdAt",
        "lastModified",
        "partitionColumns",
        "clusteringColumns",
    ]
    assert detail.collect()[0].numFiles == 2


# Time travel in queries


def test_a_version_or_a_time_follows_a_name_or_an_at_sign(orders: House) -> None:
    at = times(orders)[1]
    stamp = re.sub("[^0-9]", "", at).ljust(17, "0")
    path = orders.location("orders")
    for reference in (
        "orders version as of 1",
        "orders for version as of 2 - 1",
        "orders@v1",
        "`orders@v1`",
        f"`orders@{stamp}`",
        f"orders@{stamp}",
        f"orders timestamp as of '{at}'",
        f"orders timestamp as of cast('{at}' as timestamp)",
        f"delta.`{path}@v1`",
        f"delta.`{path}` version as of 1",
    ):
        assert len(orders.rows(f"select * from {reference}")) == 2, reference


# CLONE


@pytest.mark.parametrize("kind", ["shallow", "deep"])
def test_a_clone_is_independent_of_its_source(orders: House, kind: str) -> None:
    orders.sql("alter table orders set tblproperties ('a' = '1')")
    row = orders.sql(f"create table copy {kind} clone orders version as of 1").collect()[0]
    assert (row.operation, row.version) == ("CLONE", 0)
    assert orders.rows("select id from copy") == [(1,), (2,)]
    orders.sql("update copy set name = 'z' where id = 1")
    orders.sql("delete from copy where id = 2")
    assert orders.rows("select * from copy") == [(1, "z")]
    assert len(orders.rows("select * from orders")) == 3
    orders.sql(f"create or replace table `copy` {kind} clone delta.`{orders.location('orders')}`")
    assert len(orders.rows("select * from copy")) == 3
    assert not is_skipped(orders, "load", "copy(id)")
    if kind == "deep":
        assert len(other_rows(orders, "copy")) == 4


def test_files_of_a_partitioned_clone_are_skipped_and_changed_like_those_of_its_source(house: House) -> None:
    house.sql("create table t (id int, day string, at timestamp) partitioned by (day, at)")
    house.sql("insert into t values (1, 'a b/c%', timestamp'2024-01-01 00:00:00'), (2, null, null)")
    expected = house.rows("select * from t")
    for kind in ("shallow", "deep"):
        house.sql(f"create table {kind}_copy {kind} clone t")
        assert house.rows(f"select * from {kind}_copy") == expected
        assert house.rows(f"select id from {kind}_copy where day = 'a b/c%'") == [(1,)]
        house.sql(f"delete from {kind}_copy where day is null")
        assert house.rows(f"select id from {kind}_copy") == [(1,)]
    assert [row[:2] for row in other_rows(house, "deep_copy")] == [(1, "a b/c%")]


def test_a_shallow_clone_with_a_missing_source_reports_it(orders: House) -> None:
    orders.sql("create table copy shallow clone orders")
    orders.sql("drop table orders")
    with pytest.raises(errors.DataFileMissingError, match="clone the source again"):
        orders.rows("select * from copy")


def test_unsupported_clones_are_refused(orders: House) -> None:
    orders.sql("create view v as select * from orders")
    for text in (
        "create table c shallow clone v",
        "create or replace table orders shallow clone orders version as of 1",
        "create table c shallow clone orders location '/tmp/elsewhere'",
        "create table orders shallow clone orders",
        "create table c shallow clone nothing",
    ):
        with pytest.raises(errors.InvalidStatementError):
            orders.sql(text)


# CONVERT TO DELTA


@pytest.mark.in_folders("in an object store a folder has no name; tests/cloud converts one")
def test_a_folder_of_parquet_files_becomes_a_table_that_is_found_by_its_name(house: House) -> None:
    folder = house.root / "main" / "events"
    rows = house.warehouse.spark.sql("select 1L as id, timestamp'2024-01-01 00:00:00' as at, 'a b' as day, 7 as n")
    more = house.warehouse.spark.sql(
        "select 2L as id, cast(null as timestamp) as at, cast(null as string) as day, 8 as n, 'new' as word"
    )
    for query in (rows, more):
        query.write.mode("append").option("compression", "none").partitionBy("n", "day").parquet(str(folder))
    (folder / "_SUCCESS").touch()
    (folder / ".hidden.parquet").write_text("no file of the table")
    with pytest.raises(errors.InvalidStatementError, match="the partition columns"):
        house.sql(f"convert to delta parquet.`{folder}`")
    with pytest.raises(errors.ValueNotCastableError, match="day=a b"):
        house.sql(f"convert to delta parquet.`{folder}` partitioned by (n int, day date)")
    row = house.sql(f"convert to delta parquet.`{folder}` partitioned by (n int, day string)").collect()[0]
    assert (row.operation, row.version) == ("CONVERT", 0)
    expected = [(1, 7, "a b", None), (2, 8, None, "new")]
    assert (
        house.rows("select id, n, day, word from events")
        == expected
        == other_rows(house, "events", "id", "n", "day", "word")
    )
    assert house.rows("select id from events where day = 'a b' and id < 2") == [(1,)]
    assert house.sql(f"convert to delta parquet.`{folder}`").collect()[0].version == 0
    house.sql("insert into events (id, n, day) values (3, 7, 'c')")
    house.sql("update events set word = 'x' where id = 1")
    assert house.rows("select id, word from events") == [(1, "x"), (2, "new"), (3, None)]


def test_partition_values_of_a_converted_folder_are_spelled_as_in_the_log(house: House) -> None:
    folder = house.root / "elsewhere"
    for name in ("at=2024-01-01 00%3A00%3A00", "at=__HIVE_DEFAULT_PARTITION__"):
        (folder / name).mkdir(parents=True)
        pq.write_table(pa.table({"id": [1]}), folder / name / "x.parquet")
    house.sql("set spark.sql.session.timeZone = America/New_York")
    house.sql(f"convert to delta parquet.`{folder}` partitioned by (at timestamp)")
    found = house.rows(f"select cast(at as string) from delta.`{folder}`")
    assert sorted(found, key=repr) == [("2024-01-01 00:00:00",), (None,)]
    adds = house.warehouse.catalog.table_at(str(folder)).snapshot().add_files()
    assert {add.partition_values["at"] for add in adds} == {"2024-01-01T05:00:00.000000Z", None}


def test_columns_of_different_types_are_an_error_that_names_both_files(house: House) -> None:
    folder = house.root / "elsewhere"
    folder.mkdir()
    pq.write_table(pa.table({"a": [1], "b": ["x"]}), folder / "1.parquet")
    pq.write_table(pa.table({"a": [1], "b": [2]}), folder / "2.parquet")
    with pytest.raises(errors.TypeMismatchError, match=r"`b` is .*: 1\.parquet and 2\.parquet"):
        house.sql(f"convert to delta parquet.`{folder}`")
    (folder / "2.parquet").write_text("no Parquet")
    with pytest.raises(errors.TableDamagedError, match=r"2\.parquet is not a Parquet file"):
        house.sql(f"convert to delta parquet.`{folder}`")
    assert not (folder / "_delta_log").exists()
    for bad in ("parquet.`/no/such/folder`", "delta.`/no/such/folder`", "main.orders"):
        with pytest.raises(errors.SiltError):
            house.sql(f"convert to delta {bad}")
