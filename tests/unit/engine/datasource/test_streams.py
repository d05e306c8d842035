"""Streams read a table from an offset, and write each batch once."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from dbt.adapters.silt.engine.commands.spark.types import kernel_schema
from dbt.adapters.silt.engine.datasource import stream_reader
from dbt.adapters.silt.engine.datasource.options import Options
from dbt.adapters.silt.engine.datasource.reader import shown
from dbt.adapters.silt.engine.datasource.stream_reader import StreamPart, StreamReader, has_limits
from dbt.adapters.silt.engine.datasource.writers import batches_of
from dbt.adapters.silt.engine.kernel.errors import (
    ConcurrentDropError,
    InvalidArgumentError,
    UnsupportedStatementError,
    VersionNotFoundError,
)
from tests.unit.engine.datasource.tables import FEED, Tables, in_order, texts
from tests.unit.engine.datasource.test_read import EVERY_TYPE
from tests.unit.engine.datasource.test_write import data_files, paths

needs_limits = pytest.mark.skipif(not has_limits(), reason="this PySpark has no limits for streams in Python")
Json = dict[str, Any]


def stream(tables: Tables, table: str, **options: Any) -> DataFrame:
    reader = tables.house.warehouse.spark.readStream.format("silt")
    return reader.options(**tables.options(**options)).load(f"main.{table}")


def run(tables: Tables, rows: DataFrame, table: str, checkpoint: Path | str, **options: Any) -> None:
    """Writes the new rows into a table, and stops."""
    writer = rows.writeStream.format("silt").options(**tables.options(**options))
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start(f"main.{table}")
    try:
        query.awaitTermination()
    finally:
        query.stop()


@pytest.mark.long  # Spark allows a stream's Python ten seconds to start, which a busy machine may exceed
@pytest.mark.in_folders("the checkpoint is a folder")
def test_a_stream_between_tables_delivers_each_row_once_even_after_a_crash_behind_the_commit(
    tables: Tables, tmp_path: Path
) -> None:
    sql, checkpoint = tables.house.sql, tmp_path / "checkpoint"
    sql("create table main.source as select id from range(5)")
    run(tables, stream(tables, "source"), "target", checkpoint)
    assert in_order(tables.house.sql("select * from main.target")) == [(number,) for number in range(5)]
    sql("insert into main.source values (100)")
    run(tables, stream(tables, "source"), "target", checkpoint)
    shutil.rmtree(checkpoint / "commits")  # as if Spark had died before it recorded the batches as done
    run(tables, stream(tables, "source"), "target", checkpoint)
    assert in_order(tables.house.sql("select * from main.target")) == [(0,), (1,), (100,), (2,), (3,), (4,)]
    assert data_files(tables, "target") == paths(tables, "target")
    history = tables.house.sql("describe history main.target").collect()
    assert [row.operation for row in history] == ["STREAMING UPDATE", "CREATE TABLE AS SELECT"]


@pytest.mark.long  # as above
def test_a_stream_may_keep_its_checkpoint_next_to_its_tables(tables: Tables) -> None:
    checkpoint = f"{tables.house.place.location}-checkpoint"
    tables.house.sql("create table main.source as select id from range(5)")
    for number in (5, 6):
        run(tables, stream(tables, "source"), "target", checkpoint)
        tables.house.sql(f"insert into main.source values ({number})")
    run(tables, stream(tables, "source"), "target", checkpoint)
    assert in_order(tables.read("target")) == [(number,) for number in range(7)]
    assert [row.operation for row in tables.house.sql("describe history main.target").collect()] == [
        "STREAMING UPDATE",
        "STREAMING UPDATE",
        "CREATE TABLE AS SELECT",
    ]


@pytest.mark.long  # Spark allows a stream's Python ten seconds to start, which a busy machine may exceed
@pytest.mark.in_folders("the checkpoint is a folder")
def test_a_stream_without_a_name_is_refused(tables: Tables, tmp_path: Path) -> None:
    tables.house.sql("create table main.source as select 1 as id")
    spark = tables.house.warehouse.spark
    spark.conf.set("spark.sql.streaming.checkpointLocation", str(tmp_path))
    rows = stream(tables, "source").writeStream.format("silt").options(**tables.options())
    query = rows.trigger(availableNow=True).start("main.target")
    try:
        with pytest.raises(StreamingQueryException, match="txnAppId"):
            query.awaitTermination()
        named = rows.option("txnAppId", "mine").trigger(availableNow=True).start("main.target")
        named.awaitTermination()
    finally:
        spark.conf.unset("spark.sql.streaming.checkpointLocation")
    assert tables.house.warehouse.transaction_version("main.target", "mine") == 0


class Planned:
    """A stream reader, called step by step as Spark calls it."""

    def __init__(self, tables: Tables, columns: str = "id bigint", **options: Any) -> None:
        parsed = Options.of(tables.options(path="main.t", **options))
        self.reader = StreamReader(parsed, StructType.fromDDL(columns))  # type: ignore[arg-type]
        self.at = self.reader.initialOffset()

    def batch(self) -> list[Any] | None:
        """Returns the rows of the next batch; None if nothing is new."""
        start, self.at = self.at, self.reader.latestOffset(self.at, self.reader.getDefaultReadLimit())
        return None if self.at == start else self.between(start, self.at)

    def between(self, start: Json, end: Json) -> list[Any]:
        parts = self.reader.partitions(start, end)
        assert all(isinstance(part, StreamPart) for part in parts)
        batches = [batch for part in parts for batch in self.reader.read(part)]
        return sorted(tuple(row.values()) for batch in batches for row in batch.to_pylist())


@pytest.mark.in_folders("it opens the warehouse in this process")
class TestSteps:
    def test_a_stream_starts_with_the_tables_rows_and_continues_with_each_commit(self, tables: Tables) -> None:
        tables.house.sql("create table main.t as select id from range(3)")
        planned = Planned(tables)
        assert planned.batch() == [(0,), (1,), (2,)]
        assert planned.batch() is None
        tables.house.sql("insert into main.t values (7)")
        tables.house.sql("insert into main.t values (8)")
        tables.house.sql("optimize main.t")
        assert planned.batch() == [(7,), (8,)]
        assert planned.batch() is None

    def test_a_repeated_batch_has_the_same_rows(self, tables: Tables) -> None:
        tables.house.sql("create table main.t as select id from range(3)")
        first = Planned(tables)
        start = first.at
        rows = first.batch()
        tables.house.sql("insert into main.t values (7)")
        again = Planned(tables)
        assert again.between(again.at, first.at) == rows == first.between(start, first.at)
        assert again.between(first.at, Planned(tables).reader.latestOffset()) == [(7,)]

    def test_a_stream_may_start_at_a_version_or_at_the_next_version(self, tables: Tables) -> None:
        tables.house.sql("create table main.t as select id from range(3)")
        tables.house.sql("insert into main.t values (7)")
        latest = Planned(tables, startingVersion="latest")
        assert latest.batch() is None
        tables.house.sql("insert into main.t values (8)")
        assert latest.batch() == [(8,)]
        assert Planned(tables, startingVersion=1).batch() == [(7,), (8,)]
        assert Planned(tables, startingVersion=9).batch() is None

    def test_versions_that_change_rows_are_refused_skipped_or_read_as_changes_by_option(self, tables: Tables) -> None:
        tables.house.sql(f"create table main.t (id bigint, p int) partitioned by (p) {FEED}")
        tables.house.sql("insert into main.t values (1, 1), (2, 2)")
        tables.house.sql("delete from main.t where p = 2")
        columns = "id bigint, p int"
        with pytest.raises(UnsupportedStatementError, match="ignoreDeletes"):
            Planned(tables, columns, startingVersion=1).batch()
        assert Planned(tables, columns, startingVersion=1, ignoreDeletes=True).batch() == [(1, 1), (2, 2)]
        tables.house.sql("update main.t set id = 5")
        with pytest.raises(UnsupportedStatementError, match="skipChangeCommits"):
            Planned(tables, columns, startingVersion=1, ignoreDeletes=True).batch()
        assert Planned(tables, columns, startingVersion=1, skipChangeCommits=True).batch() == [(1, 1), (2, 2)]
        feed = "_change_type string, _commit_version bigint, _commit_timestamp timestamp"
        changes = Planned(tables, f"{columns}, {feed}", startingVersion=2, readChangeFeed=True).batch() or []
        assert [row[:4] for row in changes] == [
            (1, 1, "update_preimage", 3),
            (2, 2, "delete", 2),
            (5, 1, "update_postimage", 3),
        ]
        whole = Planned(tables, f"{columns}, {feed}", readChangeFeed=True).batch() or []
        assert [row[:4] for row in whole] == [(5, 1, "insert", 3)]

    @needs_limits
    def test_batches_have_at_most_the_requested_number_of_files(self, tables: Tables) -> None:
        tables.house.sql("create table main.t (id bigint)")
        for number in range(3):
            tables.house.sql(f"insert into main.t values ({number})")
        planned = Planned(tables, maxFilesPerTrigger=2)
        assert planned.batch() == [(0,), (1,)]
        tables.house.sql("insert into main.t values (3)")
        assert planned.batch() == [(2,), (3,)]
        assert planned.batch() is None
        tables.house.sql("insert into main.t values (4)")
        planned.reader.prepareForTriggerAvailableNow()
        tables.house.sql("insert into main.t values (5)")
        assert planned.batch() == [(4,)]
        assert planned.batch() is None
        small = Planned(tables, maxBytesPerTrigger=1)
        assert [len(small.batch() or []) for _ in range(6)] == [1] * 6

    def test_added_columns_are_omitted_and_a_re_created_table_is_refused(self, tables: Tables) -> None:
        tables.house.sql("create table main.t as select id from range(1)")
        planned = Planned(tables)
        planned.batch()
        tables.house.sql("alter table main.t add column more int")
        tables.house.sql("insert into main.t values (1, 2)")
        assert planned.batch() == [(1,)]
        old, planned = planned.at, Planned(tables)
        tables.house.sql("drop table main.t")
        tables.house.sql("create table main.t as select id from range(1)")
        again = Planned(tables)
        with pytest.raises(ConcurrentDropError):
            again.between(old, old | {"version": 9})

    def test_commits_that_were_cleaned_up_are_reported_as_missing(self, tables: Tables) -> None:
        tables.house.sql("create table main.t (id bigint)")
        for number in range(3):
            tables.house.sql(f"insert into main.t values ({number})")
        log = tables.house.log("t")
        log.checkpoint(log.snapshot_at(3))
        for version in (0, 1):
            log.store.delete(f"_delta_log/{version:020}.json")
        with pytest.raises(VersionNotFoundError, match="version 1"):
            Planned(tables, startingVersion=1).batch()

    def test_limits_that_this_pyspark_does_not_support_are_refused(self, tables: Tables, monkeypatch: Any) -> None:
        monkeypatch.setattr(stream_reader, "has_limits", lambda: False)
        with pytest.raises(InvalidArgumentError, match=r"PySpark 4\.2"):
            stream_reader.check(Options.of({"maxFilesPerTrigger": "1"}))


def test_rows_read_one_by_one_equal_rows_read_in_batches(tables: Tables) -> None:
    rows = tables.query(EVERY_TYPE)
    nullable = shown(kernel_schema(rows.schema))
    found = pa.Table.from_batches(batches_of(rows.collect(), nullable))
    again = tables.house.warehouse.spark.createDataFrame(found, nullable)
    assert texts(again) == texts(rows)
