"""`df.write.format("silt")` writes the same as `Warehouse.write`, in one commit, or raises the reason."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame

from dbt.adapters.silt.engine.datasource import part_files
from dbt.adapters.silt.engine.datasource.options import Options
from dbt.adapters.silt.engine.datasource.write_plan import Asked
from dbt.adapters.silt.engine.datasource.writers import Finished, abort
from dbt.adapters.silt.engine.kernel.errors import ConcurrentModificationError, KeyViolationError, MetadataChangedError
from dbt.adapters.silt.engine.kernel.storage.store import ObjectMissing
from dbt.adapters.silt.engine.kernel.table.paths import decode_path
from tests.unit.engine.datasource.tables import FEED, Tables, in_order, raises, texts
from tests.unit.engine.datasource.test_read import EVERY_TYPE


def data_files(tables: Tables, table: str) -> set[str]:
    """Returns all Parquet files in the table's folder."""
    found = tables.house.log(table).store.files_below("")
    return {status.path for status in found if status.path.endswith(".parquet")}


def paths(tables: Tables, table: str) -> set[str]:
    """Returns the files of the newest version."""
    return {add.path for add in tables.house.log(table).snapshot().add_files()}


@pytest.mark.connect
def test_rows_of_every_type_are_written_and_read_back_by_spark_and_by_arrow(tables: Tables) -> None:
    rows = tables.query(EVERY_TYPE)
    tables.write(rows, "t")
    tables.write(rows, "t")
    expected = texts(rows.unionAll(rows))
    assert texts(tables.house.warehouse.table("main.t")) == expected
    assert texts(tables.read("t")) == expected
    assert [info["operation"] for info in history(tables, "t")] == ["WRITE", "CREATE TABLE AS SELECT"]
    assert len(tables.house.delta_rs("t").to_pyarrow_table()) == 10


def history(tables: Tables, table: str) -> list[dict[str, object]]:
    return [row.asDict() for row in tables.house.sql(f"describe history main.{table}").collect()]


def test_a_table_is_created_at_a_path(tables: Tables, tmp_path: Path) -> None:
    path = str(tmp_path / "made here")
    rows = tables.query("select id, id % 2 as part from range(10)")
    rows.write.format("silt").mode("overwrite").option("partitionBy", "part").save(path)
    assert in_order(tables.house.sql(f"select * from delta.`{path}`")) == in_order(rows)
    assert [row.part for row in tables.house.sql(f"select distinct part from delta.`{path}` order by 1").collect()] == [
        0,
        1,
    ]


@pytest.mark.parametrize("mode", ["none", "name", "id"])
def test_partitions_and_nested_columns_of_mapped_tables_are_written(tables: Tables, mode: str) -> None:
    sql = tables.house.sql
    sql(
        "create table main.t (id bigint, s struct<`a b`: int, q: array<struct<z: string>>>,"
        " m map<string, struct<w: int>>, day date, at timestamp, x double, n decimal(9, 2))"
        " partitioned by (day, at, x, n)"
        f" tblproperties ('delta.columnMapping.mode' = '{mode}')"
    )
    if mode != "none":
        sql("alter table main.t rename column id to key")
        sql("alter table main.t rename column s.q to r")
    key, inner = ("id", "q") if mode == "none" else ("key", "r")
    rows = tables.query(
        f"select id as {key},"
        f" named_struct('a b', cast(id as int), '{inner}', array(named_struct('z', concat('v', id)))) as s,"
        " map('k', named_struct('w', cast(id as int))) as m,"
        " if(id = 0, null, date '2024-01-01' + cast(id % 2 as int)) as day,"
        " timestamp '2024-03-10 01:30:00.123456' + make_interval(0, 0, 0, 0, cast(id % 2 as int)) as at,"
        " if(id % 3 = 0, double('NaN'), -0.5) as x, cast(id % 2 / 4 as decimal(9, 2)) as n from range(12)"
    )
    tables.write(rows, "t")
    sql(f"insert into main.t select * from (select * from main.t) where {key} = 1")
    expected = texts(rows.unionAll(rows.filter(f"{key} = 1")))
    assert texts(tables.house.warehouse.table("main.t")) == expected
    assert texts(tables.read("t")) == expected
    assert tables.house.sql("select count(*) from main.t where day is null").collect()[0][0] == 1


def test_files_have_statistics_that_let_later_reads_skip_them(tables: Tables) -> None:
    tables.house.sql("create table main.t (id bigint, x double, label string)")
    tables.write(
        tables.query("select id, if(id = 3, double('NaN'), 1.5) as x, 'a' as label from range(5)").coalesce(1), "t"
    )
    (add,) = tables.house.log("t").snapshot().add_files()
    stats = json.loads(add.stats or "")
    assert stats["numRecords"] == 5
    assert (stats["minValues"]["id"], stats["maxValues"]["id"]) == (0, 4)
    assert "x" not in stats["maxValues"]
    assert tables.house.sql("select count(*), max(id) from main.t").collect()[0][:] == (5, 4)


def test_overwrite_replaces_all_rows_the_partitions_of_the_rows_or_the_rows_of_a_condition(tables: Tables) -> None:
    tables.house.sql("create table main.t (id bigint, part int) partitioned by (part)")
    tables.write(tables.query("select id, cast(id % 3 as int) as part from range(6)").coalesce(1), "t")
    tables.write(tables.query("select 10L as id, 1 as part"), "t", "overwrite", partitionOverwriteMode="dynamic")
    assert in_order(tables.read("t")) == [(0, 0), (10, 1), (2, 2), (3, 0), (5, 2)]
    tables.write(tables.query("select 20L as id, 2 as part"), "t", "overwrite", replaceWhere="part >= 1")
    assert in_order(tables.read("t")) == [(0, 0), (20, 2), (3, 0)]
    with raises("SILT_REPLACE_WHERE_MISMATCH"):
        tables.write(tables.query("select 20L as id, 0 as part"), "t", "overwrite", replaceWhere="part >= 1")
    with raises("SILT_UNSUPPORTED_STATEMENT", "replaces whole files"):
        tables.write(tables.query("select 0L as id, 0 as part"), "t", "overwrite", replaceWhere="id = 0")
    tables.write(tables.query("select 30L as id, cast(null as int) as part"), "t", "overwrite")
    assert in_order(tables.read("t")) == [(30, None)]
    with raises("SILT_INVALID_ARGUMENT", "only for the mode overwrite"):
        tables.write(tables.query("select 1L as id, 0 as part"), "t", replaceWhere="part = 0")


def test_an_overwrite_is_recorded_in_the_change_feed(tables: Tables) -> None:
    tables.house.sql(f"create table main.t (id bigint) {FEED}")
    tables.write(tables.query("select 1L as id"), "t")
    tables.write(tables.query("select 2L as id"), "t", "overwrite")
    found = tables.house.sql("select id, _change_type, _commit_version from table_changes('main.t', 1)")
    assert in_order(found) == [(1, "delete", 2), (1, "insert", 1), (2, "insert", 2)]


def test_columns_are_matched_by_name_and_widened_and_omitted_columns_are_null(tables: Tables) -> None:
    tables.house.sql("create table main.t (id bigint, x double, n decimal(20, 2), label string)")
    tables.write(tables.query("select cast(3 as int) as N, cast(2 as float) as x, cast(1 as int) as Id"), "t")
    assert tables.house.rows("select * from main.t")[0][:2] == (1, 2.0)
    with raises("SILT_TYPE_MISMATCH", "`id` is bigint"):
        tables.write(tables.query("select '1' as id"), "t")
    with raises("SILT_COLUMN_NOT_FOUND"):
        tables.write(tables.query("select 1L as id, 2 as more"), "t")


@pytest.mark.parametrize(
    ("definition", "feature"),
    [
        ("(id bigint, twice bigint generated always as (id * 2))", "generated columns"),
        ("(id bigint, n bigint generated always as identity)", "identity columns"),
        ("(id bigint, s struct<a: int not null>)", "NOT NULL inside of a column"),
        ("(id bigint, constraint positive check (id > 0))", "CHECK constraints"),
    ],
)
def test_a_table_with_features_that_need_sparks_expressions_is_refused_by_the_feature(
    tables: Tables, definition: str, feature: str
) -> None:
    tables.house.sql(f"create table main.t {definition}")
    with raises("SILT_UNSUPPORTED_FEATURE", feature):
        tables.write(tables.query("select 1L as id"), "t")
    assert tables.house.log("t").snapshot().version == 0


def test_rules_without_expressions_are_enforced(tables: Tables) -> None:
    tables.house.sql(
        "create table main.t (id bigint not null, x int default 3)"
        " tblproperties ('delta.feature.allowColumnDefaults' = 'supported', 'delta.enableRowTracking' = 'true')"
    )
    with raises("SILT_NOT_NULL_VIOLATION", "`id`"):
        tables.write(tables.query("select if(id = 2, null, id) as id, 1 as x from range(4)"), "t")
    with raises("SILT_NOT_NULL_VIOLATION", "`id`"):
        tables.write(tables.query("select 1 as x"), "t")
    with raises("SILT_UNSUPPORTED_FEATURE", "default"):
        tables.write(tables.query("select 1L as id"), "t")
    tables.write(tables.query("select id, 1 as x from range(4)"), "t")
    assert data_files(tables, "t") == paths(tables, "t")
    adds = tables.house.log("t").snapshot().add_files()
    assert sorted(add.base_row_id for add in adds if add.base_row_id is not None)[0] == 0


def test_an_enforced_key_refuses_the_rows_of_a_program_and_leaves_no_file(tables: Tables) -> None:
    tables.house.sql("create table main.t (id bigint, primary key (id) enforced)")
    tables.write(tables.query("select id from range(3)"), "t")
    with raises("SILT_KEY_VIOLATION", "`primary_key_1`"):
        tables.write(tables.query("select id from range(2, 5)"), "t")
    with pytest.raises(KeyViolationError):
        tables.house.warehouse.write(tables.query("select id from range(2, 5)"), "main.t")
    assert data_files(tables, "t") == paths(tables, "t")
    assert tables.house.log("t").snapshot().version == 1


def test_strings_are_checked_against_the_lengths_of_their_columns(tables: Tables) -> None:
    tables.house.sql(
        "create table main.t (c char(3), v varchar(2), a array<char(2)>, m map<varchar(2), struct<x: char(2)>>)"
        " partitioned by (c)"
    )
    nested = "array('a', null) as a, map('k ', named_struct('x', 'a')) as m"
    tables.write(tables.query(f"select 'a' as c, 'v   ' as v, {nested}"), "t")
    tables.write(
        tables.query(f"select 'a ' as c, cast(null as string) as v, {nested}"),
        "t",
        "overwrite",
        partitionOverwriteMode="dynamic",
    )
    found = tables.read("t").where("c = 'a'").collect()
    assert [tuple(row) for row in found] == [("a  ", None, ["a ", None], {"k ": ("a ",)})]
    for column, place in (("v", "v"), ("a", "a.element")):
        value = "'long' as v" if column == "v" else "array('abc') as a"
        with raises("SILT_VALUE_NOT_CASTABLE", f"`{place}`"):
            tables.write(tables.query(f"select 'a' as c, {value}"), "t")


def test_a_string_that_no_partition_can_have_is_refused(tables: Tables) -> None:
    tables.house.sql("create table main.t (id bigint, p string) partitioned by (p)")
    with raises("SILT_PARTITION_VALUE", "`p`"):
        tables.write(tables.query("select 1L as id, '' as p"), "t")


def test_a_write_with_a_transaction_takes_place_once(tables: Tables) -> None:
    for _ in range(2):
        tables.write(tables.query("select 1L as id"), "t", txnAppId="load", txnVersion=4)
    tables.write(tables.query("select 2L as id"), "t", txnAppId="load", txnVersion=3)
    assert in_order(tables.read("t")) == [(1,)]
    assert tables.house.warehouse.transaction_version("main.t", "load") == 4
    assert data_files(tables, "t") == paths(tables, "t")
    with raises("SILT_INVALID_ARGUMENT", "Give both"):
        tables.write(tables.query("select 2L as id"), "t", txnAppId="load")


def test_options_of_other_writers_are_refused(tables: Tables) -> None:
    with raises("SILT_INVALID_ARGUMENT", "`Warehouse.write`"):
        tables.write(tables.query("select 1L as id"), "t", mergeSchema=True)
    tables.write(tables.query("select 1L as id"), "t")
    with raises("SILT_INVALID_ARGUMENT", "partitioned by nothing"):
        tables.write(tables.query("select 1L as id"), "t", partitionBy="id")


def test_a_job_with_a_failed_task_leaves_no_rows_and_no_files(tables: Tables) -> None:
    tables.house.sql("create table main.t (id bigint)")
    rows = tables.query("select if(id = 90, raise_error('broken'), id) as id from range(0, 100, 1, 4)")
    with pytest.raises(Exception, match="broken"):
        tables.write(rows.select(rows.id.cast("bigint").alias("id")), "t")
    assert tables.house.log("t").snapshot().version == 0
    assert data_files(tables, "t") == set()


class Job:
    """A write of one task, called step by step as Spark calls it."""

    def __init__(self, tables: Tables, rows: DataFrame, overwrite: bool = False) -> None:
        options = Options.of(tables.options(path="main.t"))
        self.asked = Asked(options, overwrite)
        self.plan = self.asked.plan(rows.schema)
        self.rows = rows.toArrow().to_batches()
        part_files.begin(self.plan)

    def task(self) -> part_files.Written:
        return part_files.write(self.plan, self.rows)

    def commit(self, *messages: part_files.Written) -> None:
        Finished(self.asked, self.plan, messages, ("WRITE", {})).commit()


@pytest.mark.in_folders("it opens the warehouse in this process")
class TestSteps:
    def test_a_driver_that_dies_between_the_files_and_the_commit_leaves_no_rows(self, tables: Tables) -> None:
        tables.house.sql("create table main.t (id bigint)")
        Job(tables, tables.query("select 1L as id")).task()
        assert in_order(tables.read("t")) == []
        assert len(data_files(tables, "t")) == 1

    def test_a_task_that_still_runs_when_the_write_is_aborted_leaves_no_file(self, tables: Tables) -> None:
        tables.house.sql("create table main.t (id bigint)")
        job = Job(tables, tables.query("select 1L as id"))

        def rows() -> Iterator[pa.RecordBatch]:
            yield from job.rows
            abort([None], job.plan)

        with pytest.raises(ObjectMissing):
            part_files.write(job.plan, rows())
        assert data_files(tables, "t") == set()

    def test_a_write_of_no_rows_leaves_no_folder(self, tables: Tables) -> None:
        tables.house.sql("create table main.t (id bigint)")
        job = Job(tables, tables.query("select 1L as id where false"))
        job.commit(job.task(), job.task())
        assert tables.house.log("t").snapshot().version == 1
        assert job.plan.folder not in tables.house.log("t").store.list_folders("")

    def test_files_of_attempts_that_sent_no_commit_message_are_not_committed(self, tables: Tables) -> None:
        tables.house.sql("create table main.t (id bigint)")
        job = Job(tables, tables.query("select 1L as id"))
        job.task()
        job.commit(job.task())
        assert in_order(tables.read("t")) == [(1,)]
        assert data_files(tables, "t") == paths(tables, "t")

    def test_an_append_is_committed_after_a_concurrent_overwrite(self, tables: Tables) -> None:
        tables.house.sql("create table main.t (id bigint)")
        job = Job(tables, tables.query("select 1L as id"))
        tables.house.sql("insert overwrite main.t values (2)")
        job.commit(job.task())
        assert in_order(tables.read("t")) == [(1,), (2,)]

    def test_an_overwrite_conflicts_with_rows_committed_since_its_start_and_deletes_its_files(
        self, tables: Tables
    ) -> None:
        tables.house.sql("create table main.t (id bigint)")
        job = Job(tables, tables.query("select 1L as id"), overwrite=True)
        done = job.task()
        tables.house.sql("insert into main.t values (2)")
        with pytest.raises(ConcurrentModificationError):
            job.commit(done)
        assert in_order(tables.read("t")) == [(2,)]
        assert data_files(tables, "t") == paths(tables, "t")

    def test_files_written_for_an_earlier_schema_are_not_committed(self, tables: Tables) -> None:
        tables.house.sql("create table main.t (id bigint)")
        job = Job(tables, tables.query("select 1L as id"))
        done = job.task()
        tables.house.sql("alter table main.t add column more int")
        with pytest.raises(MetadataChangedError):
            job.commit(done)
        assert data_files(tables, "t") == set()

    def test_an_abort_deletes_files_only_if_no_commit_was_attempted(self, tables: Tables) -> None:
        tables.house.sql("create table main.t (id bigint)")
        job = Job(tables, tables.query("select 1L as id"))
        done = job.task()
        abort([done], job.plan)
        assert len(data_files(tables, "t")) == 1
        abort([done, None], job.plan)
        assert data_files(tables, "t") == set()

    def test_rows_of_more_partitions_than_can_be_buffered_are_written(
        self, tables: Tables, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(part_files, "_MOST_KEPT", 1000)
        tables.house.sql("create table main.t (id bigint, p int) partitioned by (p)")
        job = Job(tables, tables.query("select id, cast(id % 3 as int) as p from range(500)"))
        job.commit(job.task(), job.task())
        assert tables.house.sql("select count(*), count(distinct id) from main.t").collect()[0][:] == (1000, 500)


def test_rows_for_a_clustered_table_are_sorted_by_its_columns(tables: Tables) -> None:
    tables.house.sql("create table t (`a key` bigint, v string) cluster by (`a key`)")
    tables.write(tables.query("select (id * 37) % 101 as `a key`, cast(id as string) as v from range(101)"), "t")
    log = tables.house.log("t")
    for add in log.snapshot().add_files():
        with log.store.open_input(decode_path(add.path)) as source:
            keys = pq.read_table(source)["a key"].to_pylist()
        assert keys == sorted(keys) and len(keys) > 10
