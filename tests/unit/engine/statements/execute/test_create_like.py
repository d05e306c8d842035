"""CREATE TABLE ... LIKE: an empty table with the definition of another relation."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.table.actions import DomainMetadata
from dbt.adapters.silt.engine.kernel.table.clustering import CLUSTERING_DOMAIN, clustering_columns
from dbt.adapters.silt.engine.kernel.table.identity import identities
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit
from tests.unit.engine.house import House

DEFINITION = """
create table s (
  k int not null comment 'the key', c char(3), n array<varchar(2)>, v string default 'd',
  g int generated always as (k * 2), i bigint generated always as identity (start with 5), check (k < 100)
) partitioned by (k) comment 'of sales'
tblproperties ('delta.feature.allowColumnDefaults' = 'supported', 'delta.appendOnly' = 'true', 'owner' = 'ann')
"""


@pytest.fixture
def source(house: House) -> House:
    house.sql(DEFINITION)
    house.sql("insert into s (k, c) values (1, 'a')")
    return house


def check_is_like(house: House, table: str = "l") -> None:
    """Checks that the table has the rules, the layout and the properties of `s`, and numbers of its own."""
    house.sql(f"insert into {table} (k, c) values (3, 'b  ')")
    assert house.rows(f"select * from {table}") == [(3, "b  ", None, "d", 6, 5)]
    for rejected in ("(k, c) values (1, 'abcdef')", "(c) values ('x')", "(k) values (100)"):
        with pytest.raises(errors.DataRejectedError):
            house.sql(f"insert into {table} {rejected}")
    with pytest.raises(errors.DataRejectedError):
        house.sql(f"insert into {table} (k, n) values (1, array('abc'))")
    with pytest.raises(errors.SiltError, match="appendOnly"):
        house.sql(f"delete from {table} where k = 3")
    found, wanted = house.log(table).snapshot(), house.log("s").snapshot()
    assert found.partition_columns == ("k",)
    assert found.metadata.description == "of sales"
    assert found.metadata.configuration == wanted.metadata.configuration
    assert found.metadata.id != wanted.metadata.id
    assert found.schema.require("k").comment == "the key"


@pytest.mark.connect
def test_it_has_the_rules_the_partitions_and_the_properties_of_the_table(source: House) -> None:
    source.sql("create table l like s")
    assert source.rows("select * from l") == []
    check_is_like(source)


def test_it_is_like_a_table_that_is_named_by_its_path(source: House) -> None:
    source.sql(f"create table l like delta.`{source.location('s')}`")
    check_is_like(source)


def test_it_can_be_created_in_a_transaction_like_a_table_of_the_transaction(house: House) -> None:
    with house.warehouse.transaction() as together:
        together.sql(DEFINITION)
        together.sql("create table l like s")
        house.another().sql("create table other (k int)")
    check_is_like(house)


def test_in_a_transaction_it_reads_no_row_of_the_table(source: House) -> None:
    with source.warehouse.transaction() as together:
        together.sql("create table l like s")
        source.another().sql("create table other like s")
        source.another().sql("insert into s (k) values (2)")
    check_is_like(source)


def test_its_own_properties_precede_those_of_the_table(source: House) -> None:
    source.sql("create table l like s tblproperties ('owner' = 'bob', 'delta.appendOnly' = 'false')")
    configuration = source.log("l").snapshot().metadata.configuration
    assert (configuration["owner"], configuration["delta.appendOnly"]) == ("bob", "false")


def test_if_it_exists_it_is_left(source: House) -> None:
    source.sql("create table l (x int)")
    source.sql("create table if not exists l like s")
    assert source.log("l").snapshot().schema.names == ("x",)
    with pytest.raises(errors.RelationExistsError):
        source.sql("create table l like s")


@pytest.mark.parametrize("mode", ["name", "id"])
def test_it_maps_its_columns_and_tracks_its_rows_by_itself(house: House, mode: str) -> None:
    house.sql(
        "create table s (k int, at struct<x: int>) partitioned by (k) tblproperties "
        f"('delta.columnMapping.mode' = '{mode}', 'delta.enableRowTracking' = 'true', "
        "'delta.enableDeletionVectors' = 'true', 'delta.enableInCommitTimestamps' = 'true', "
        "'delta.enableChangeDataFeed' = 'true')"
    )
    house.sql("insert into s values (1, named_struct('x', 1)), (2, null)")
    house.sql("alter table s rename column k to key")
    house.sql("create table l like s")
    house.sql("insert into l select * from s")
    house.sql("update l set at.x = 2 where key = 1")
    house.sql("alter table l add column more int")
    assert [row[:2] for row in house.rows("select key, at.x, more from l")] == [(1, 2), (2, None)]
    assert len(house.rows("select * from table_changes('l', 1)")) == 4
    one, other = (house.log(name).snapshot().metadata.configuration for name in ("s", "l"))
    for key in (
        "delta.rowTracking.materializedRowIdColumnName",
        "delta.rowTracking.materializedRowCommitVersionColumnName",
    ):
        assert one[key] != other[key]


def test_the_columns_by_which_another_engine_clusters_stay(house: House) -> None:
    house.sql("create table s (k int)")
    log = house.log("s")
    domain = DomainMetadata(CLUSTERING_DOMAIN, '{"clusteringColumns":[["k"]]}', removed=False)
    from_other = Changes(Operation("ALTER TABLE"), domains=(domain,))
    house.sql("alter table s set tblproperties ('delta.feature.clustering' = 'supported')")
    commit(log, log.snapshot(), from_other, ReadSet(), CommitSettings())
    house.sql("create table l like s")
    assert clustering_columns(house.log("l").snapshot().domains) == (("k",),)


def test_it_has_the_columns_of_a_view_with_their_lengths_and_comments(source: House) -> None:
    source.sql("create view w as select c, n, v, k + 1 as more from s")
    source.sql("create table l like w")
    assert [each.sql_type for each in source.log("l").snapshot().schema] == [
        "char(3)",
        "array<varchar(2)>",
        "string",
        "int",
    ]
    with pytest.raises(errors.DataRejectedError):
        source.sql("insert into l (c) values ('abcdef')")
    source.sql("create temporary view passing as select c from s")
    source.sql("create table m like passing")
    assert source.log("m").snapshot().schema.require("c").sql_type == "char(3)"


def test_it_has_the_columns_of_files(house: House, tmp_path: Path) -> None:
    house.warehouse.spark.sql("select 1 as id, 'a' as name").write.parquet(str(tmp_path / "files"))
    house.sql(f"create table l like parquet.`{tmp_path / 'files'}`")
    assert house.log("l").snapshot().schema.names == ("id", "name")


def test_the_first_number_of_each_identity_column_is_its_start(source: House) -> None:
    source.sql("create table l like s")
    assert identities(source.log("l").snapshot().schema)["i"].mark is None
    assert identities(source.log("s").snapshot().schema)["i"].mark == 5


NUMBERED = "create table {} (id bigint generated always as identity{}, v int)"


@pytest.mark.parametrize("kind", ["shallow", "deep"])
@pytest.mark.parametrize("step", ["", " (start with 1 increment by -2)"])
def test_a_clone_that_is_replaced_gives_no_number_twice(house: House, kind: str, step: str) -> None:
    house.sql(NUMBERED.format("a", step))
    house.sql("insert into a (v) values (1), (2)")
    house.sql(f"create table c {kind} clone a")
    house.sql("insert into c (v) values (3), (4)")
    given = {row[0] for row in house.rows("select id from c")}
    house.sql(f"create or replace table c {kind} clone a")
    house.sql("insert into c (v) values (5)")
    assert not {row[0] for row in house.rows("select id from c where v = 5")} & given
    house.sql("restore table c to version as of 0")
    house.sql("insert into c (v) values (6)")
    (number,) = (row[0] for row in house.rows("select id from c where v = 6"))
    assert abs(number - 1) == 5 * (2 if step else 1)  # type: ignore[operator]


def test_a_clone_of_a_table_with_a_lower_or_no_mark_goes_on(house: House) -> None:
    for table, rows in (("a", "(1)"), ("b", "(1), (2), (3)"), ("fresh", "")):
        house.sql(NUMBERED.format(table, ""))
        if rows:
            house.sql(f"insert into {table} (v) values {rows}")
    for number, source in ((4, "a"), (5, "fresh")):
        with house.warehouse.transaction() as together:
            together.sql(f"create or replace table b deep clone {source}")
            together.sql("insert into b (v) values (9)")
        assert house.rows("select id from b where v = 9") == [(number,)]


def test_a_table_that_another_definition_replaces_begins_with_its_start(house: House) -> None:
    house.sql(NUMBERED.format("t", ""))
    house.sql("insert into t (v) values (1), (2)")
    house.sql(NUMBERED.replace("create", "create or replace").format("t", ""))
    house.sql("insert into t (v) values (3)")
    assert house.rows("select id from t") == [(1,)]
    house.sql("restore table t to version as of 1")
    house.sql("insert into t (v) values (4)")
    assert house.rows("select id from t where v = 4") == [(3,)]
