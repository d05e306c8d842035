"""Every statement leaves the same rows in an object store as in a folder; and the number of requests of reads and
writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.catalog.names.locations import Location
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.errors import DataFileMissingError, SiltError
from dbt.adapters.silt.engine.warehouse import Warehouse
from tests.cloud.servers import ObjectServer
from tests.unit.engine.house import House

TABLE = RelationName("silt", "main", "t")
HISTORIES = {
    "files are rewritten": """
        create table t (id bigint not null, name string, amount decimal(20, 2)) comment 'sold'
        insert into t select id, concat('n ', id), id * 1.5 from range(0, 100, 1, 4)
        delete from t where id % 10 = 3
        update t set amount = amount + 1, name = null where id > 90
        merge into t using (select id + 50 as id, 'merged' as name from range(60)) s on t.id = s.id
            when matched and t.id < 60 then delete when matched then update set name = s.name
            when not matched then insert (id, name) values (s.id, s.name)
        optimize t
        insert into t replace where id > 100 select id, 'new', 0 from range(101, 110)
        alter table t add column more array<string>
        insert into t (id, more) values (1000, array('a', 'b'))
        alter table t set tblproperties ('delta.checkpointInterval' = '3')
        insert into t (id) values (1001)
        insert into t (id) values (1002)
        insert into t (id) values (1003)
    """,
    "files are marked": """
        create table t (id bigint, p int, v string) partitioned by (p)
            tblproperties ('delta.enableDeletionVectors' = 'true', 'delta.enableChangeDataFeed' = 'true')
        insert into t select id, id % 3, concat('v', id) from range(0, 60, 1, 3)
        delete from t where id % 7 = 2
        update t set v = 'new' where p = 1 and id > 20
        merge into t using (select 4 as id) s on t.id = s.id when matched then update set v = 'merged'
        insert into t values (100, null, 'x'), (101, 1, 'y %é')
        delete from t where p = 2
        insert overwrite t partition (p) select id, 0, 'over' from range(5)
        optimize t
        restore table t to version as of 5
    """,
    "columns are made and mapped": """
        create table t (id bigint generated always as identity, v int, w int generated always as (v * 2))
        insert into t (v) select id from range(0, 20, 1, 2)
        insert into t (v) values (7), (8)
        alter table t set tblproperties ('delta.columnMapping.mode' = 'name')
        alter table t add column extra string
        insert into t (v, extra) values (9, 'x')
        alter table t rename column extra to `a b,c`
        update t set `a b,c` = 'y' where w = 14
    """,
}


@pytest.fixture
def houses(server: ObjectServer, spark: SparkSession, tmp_path: Path) -> list[House]:
    """A warehouse in a folder, and one in the object store."""
    prefix = f"{server.base}/{tmp_path.name}/ware house %é"
    local, stored = tmp_path / "local", Location(prefix, server.settings)
    return [
        House(Warehouse(spark.newSession(), str(local), databases={"other": stored}), local),
        House(Warehouse(spark.newSession(), prefix, databases={"other": str(local)}, storage=server.settings), local),
    ]


def in_order(table: pa.Table) -> list[tuple[object, ...]]:
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)


def statements(history: str) -> Iterator[str]:
    """Yields the statements: a statement begins in the first column, and indented lines continue it."""
    lines = [line.removeprefix(" " * 8) for line in history.strip("\n").splitlines()]
    found: list[str] = []
    for line in lines:
        if line.startswith(" ") and found:
            found[-1] += line
        elif line.strip():
            found.append(line)
    yield from found


@pytest.mark.parametrize("history", HISTORIES)
def test_a_history_of_statements_leaves_the_same_rows_in_a_bucket_as_in_a_folder(
    houses: list[House], history: str
) -> None:
    for house in houses:
        for statement in statements(HISTORIES[history]):
            house.sql(statement)
    local, stored = houses
    assert stored.rows("select * from t") == local.rows("select * from t")
    versions = [row.version for row in stored.sql("describe history t").collect()]
    assert versions == [row.version for row in local.sql("describe history t").collect()]
    for version in versions[:-1:2]:
        query = f"select count(*), sum(hash(*)) from t version as of {version}"
        assert stored.rows(query) == local.rows(query)
    if history == "files are marked":
        changes = "select id, p, v, _change_type, _commit_version from table_changes('t', 1)"
        assert stored.rows(changes) == local.rows(changes)
    detail = stored.sql("describe detail t").first()
    assert detail is not None and detail.location.startswith(("s3://", "abfs://"))


def test_tables_are_cloned_between_storages_and_read_and_written_by_their_paths(houses: list[House]) -> None:
    for house, base in zip(houses, ("folder", "objects"), strict=True):
        house.sql("create schema if not exists other.main")
        house.sql(
            f"create table {base} tblproperties ('delta.enableDeletionVectors' = 'true') as "
            "select id, id * 2 as v from range(0, 30, 1, 3)"
        )
        house.sql(f"delete from {base} where id = 4")
    for house, own in zip(houses, ("folder", "objects"), strict=True):
        house.sql(f"create table other.main.deep_of_{own} deep clone {own}")
        house.sql(f"create table other.main.shallow_of_{own} shallow clone {own}")
        house.sql(f"insert into other.main.shallow_of_{own} values (100, 1)")
        house.sql(f"delete from other.main.shallow_of_{own} where id = 5")
        expected = house.rows(f"select * from {own}")
        assert house.rows(f"select * from other.main.deep_of_{own}") == expected
        remaining = [row for row in expected if row[0] != 5]
        assert house.rows(f"select * from other.main.shallow_of_{own}") == sorted([*remaining, (100, 1)], key=repr)
        detail = house.sql(f"describe detail other.main.deep_of_{own}").first()
        assert detail is not None
        assert house.rows(f"select * from delta.`{detail.location}`") == expected
        house.sql(f"insert into delta.`{detail.location}` values (200, 2)")
        assert len(house.rows(f"select * from other.main.deep_of_{own}")) == len(expected) + 1
        house.sql(f"vacuum other.main.deep_of_{own}")


def test_delta_rs_and_this_engine_read_and_write_the_same_table_by_its_url(
    houses: list[House], server: ObjectServer
) -> None:
    stored, options = houses[1], dict(server.delta_rs)
    stored.sql("create table ours as select id, concat('n ', id) as v from range(0, 6, 1, 2)")
    stored.sql("delete from ours where id = 2")
    detail = stored.sql("describe detail ours").first()
    assert detail is not None
    ours = deltalake.DeltaTable(detail.location, storage_options=options)
    assert in_order(ours.to_pyarrow_table()) == stored.rows("select * from ours")
    if server.name == "s3":  # Azurite does not support `startFrom` in a listing, which delta-rs relies on
        deltalake.write_deltalake(ours, pa.table({"id": [100], "v": ["theirs"]}), mode="append")
        assert (100, "theirs") in stored.rows("select * from ours")
    theirs = f"{server.base}/{houses[0].root.parent.name}/of delta-rs"
    rows = pa.table({"id": [1, 2], "p": ["a", "b c"]})
    deltalake.write_deltalake(theirs, rows, partition_by="p", storage_options=options)
    stored.sql(f"insert into delta.`{theirs}` values (3, 'b c')")
    stored.sql(f"update delta.`{theirs}` set id = 20 where id = 2")
    found = deltalake.DeltaTable(theirs, storage_options=options).to_pyarrow_table().select(["id", "p"])
    assert in_order(found) == stored.rows(f"select * from delta.`{theirs}`") == [(1, "a"), (20, "b c"), (3, "b c")]


def test_a_folder_of_parquet_files_in_a_bucket_is_converted_in_place(houses: list[House], server: ObjectServer) -> None:
    stored, url = houses[1], f"{server.base}/{houses[0].root.parent.name}/raw é"
    rows = stored.warehouse.spark.range(0, 10, 1, 2).selectExpr("id", "cast(id % 2 as int) as p")
    rows.write.option("mapreduce.fileoutputcommitter.algorithm.version", "2").partitionBy("p").parquet(url)
    stored.sql(f"convert to delta parquet.`{url}` partitioned by (p int)")
    stored.sql(f"delete from delta.`{url}` where id = 4")
    expected = sorted(((id_, id_ % 2) for id_ in range(10) if id_ != 4), key=repr)
    assert stored.rows(f"select id, p from delta.`{url}`") == expected


def test_planning_a_query_reads_no_data_file_and_running_it_opens_each_file_once(
    houses: list[House], server: ObjectServer
) -> None:
    stored = houses[1]
    stored.sql("create table t as select id, cast(id as string) as v from range(0, 200, 1, 20)")
    stored.rows("select max(length(v)) from t")
    with server.counted() as planned:
        frame = stored.sql("select sum(id + length(v)) from t where id > 3")
        frame.explain()
    assert [each for each in planned.requests if each.path.endswith(".parquet")] == [], planned.listed()
    with server.counted() as read:
        assert frame.collect()[0][0] is not None
    of_files = [each for each in read.requests if ".parquet" in each.path]
    assert {each.kind for each in of_files} <= {"get", "head"} and 0 < len(of_files) <= 2 * 20, read.listed()


def test_an_append_to_an_open_table_sends_at_most_eight_requests_apart_from_spark(
    houses: list[House], server: ObjectServer
) -> None:
    if server.name != "s3":
        pytest.skip("only the S3 says which requests are Spark's")
    stored = houses[1]
    stored.sql("create table t (id bigint)")
    for number in range(2):
        stored.sql(f"insert into t values ({number})")
    with server.counted() as counted:
        stored.sql("insert into t values (9)")
    assert len(counted.of_kernel()) <= 8, counted.of_kernel().listed()


def test_a_missing_data_file_is_named_in_the_error(houses: list[House], server: ObjectServer) -> None:
    stored = houses[1]
    stored.sql("create table t as select id from range(10)")
    log = stored.warehouse.catalog.table(TABLE)
    for path in log.snapshot().files["path"].to_pylist():
        log.store.delete(path)
    with pytest.raises(DataFileMissingError, match="part-"):
        stored.sql("create table u as select id + 1 as id from t")


def test_the_files_of_a_failed_insert_are_deleted(houses: list[House], server: ObjectServer) -> None:
    stored = houses[1]
    stored.sql("create table t (id int not null, check_me int)")
    with pytest.raises(SiltError):
        stored.sql("insert into t select if(id < 5, cast(id as int), null), 1 from range(0, 10, 1, 4)")
    log = stored.warehouse.catalog.table(TABLE)
    assert [file.path for file in log.store.files_below("") if "_delta_log" not in file.path] == []
