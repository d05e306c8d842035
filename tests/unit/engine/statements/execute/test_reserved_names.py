"""Columns with names that Spark, Delta or this engine use for columns of their own are refused, or keep values."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from dbt.adapters.silt.engine import read
from dbt.adapters.silt.engine.kernel.errors import InvalidNameError
from tests.unit.engine.house import House

POSITION = "_tmp_metadata_row_index"
RESERVED = [POSITION, POSITION.upper()]
PROPERTIES = {
    "plain": "'a' = 'b'",
    "vectors": "'delta.enableDeletionVectors' = 'true'",
    "ids": "'delta.enableRowTracking' = 'true', 'delta.enableDeletionVectors' = 'true'",
    "mapped": "'delta.columnMapping.mode' = 'name'",
}
KEPT = [
    "_metadata",
    "__metadata",
    "_file",
    "file_path",
    "row_index",
    "_row_id",
    "_corrupt_record",
    "__index_level_0__",
    "_tmp_metadata_file",
    "_partition",
    "base_row_id",
]


@pytest.mark.parametrize("name", RESERVED)
@pytest.mark.parametrize(
    "statement",
    [
        "create table new (k int, {} bigint)",
        "create table new (k int) partitioned by ({} bigint)",
        "create table new as select 1 as k, 100L as {}",
        "create or replace table t as select 1 as k, 100L as {}",
        "create table new (k int, {} string) tblproperties ('delta.columnMapping.mode' = 'name')",
        "alter table t add column {} bigint",
        "alter table t rename column v to {}",
        "insert with schema evolution into t by name select 1 as k, 100L as {}",
        "merge with schema evolution into t using (select 1 k, 5L as {}) s on t.k = s.k when matched then update set *",
    ],
)
@pytest.mark.connect
def test_the_name_of_sparks_positions_is_refused_by_name(house: House, name: str, statement: str) -> None:
    house.sql("create table t (k int, v int)")
    house.sql("insert into t values (1, 1)")
    with pytest.raises(InvalidNameError, match=name):
        house.sql(statement.format(name))
    assert [row[:2] for row in house.rows("select * from t")] == [(1, 1)]
    assert house.log("t").snapshot().version == 1


def test_a_frame_with_it_is_refused(house: House) -> None:
    frame = house.warehouse.spark.sql(f"select 1 as k, 100L as {POSITION}")
    with pytest.raises(InvalidNameError, match=POSITION):
        house.warehouse.write(frame, "new")


def test_files_with_it_are_not_converted(house: House, tmp_path: Path) -> None:
    pq.write_table(pa.table({"k": [1], POSITION: [100]}), tmp_path / "a.parquet")
    with pytest.raises(InvalidNameError, match=POSITION):
        house.sql(f"convert to delta parquet.`{tmp_path}`")
    assert not (tmp_path / "_delta_log").exists()


def test_a_table_of_another_writer_with_it_is_refused_by_spark_and_read_by_arrow(house: House, tmp_path: Path) -> None:
    location = str(tmp_path / "t")
    write_deltalake(location, pa.table({"k": pa.array([1, 2], pa.int32()), POSITION: [100, 200]}))
    for statement in (
        "select * from {}",
        "update {} set k = 11 where k = 1",
        "delete from {} where k = 1",
        "merge into {} t using (select 1 as k) s on t.k = s.k when matched then delete",
        "create table new as select * from {}",
    ):
        with pytest.raises(InvalidNameError, match=rf"`{POSITION}` has a name that Spark reserves"):
            house.sql(statement.format(f"delta.`{location}`")).collect()
    assert read(location).to_pylist() == [{"k": 1, POSITION: 100}, {"k": 2, POSITION: 200}]


@pytest.mark.parametrize("kind", PROPERTIES)
@pytest.mark.parametrize("name", [*KEPT, "_Metadata", f"s.{POSITION}", "s._metadata", "s.__silt_row"])
def test_another_name_keeps_its_values_in_every_statement(house: House, kind: str, name: str) -> None:
    top, _, member = name.partition(".")
    declared = f"`{top}` struct<`{member}`: bigint>" if member else f"`{top}` bigint"
    value = (lambda number: f"named_struct('{member}', {number}L)") if member else (lambda number: f"{number}L")
    found = f"`{top}`.`{member}`" if member else f"`{top}`"
    house.sql(f"create table t (k int, {declared}, v int) tblproperties ({PROPERTIES[kind]})")
    house.sql(f"insert into t values (1, {value(100)}, 1), (2, {value(200)}, 2), (3, {value(300)}, 3)")  # type: ignore[no-untyped-call]
    house.sql("update t set v = 10 where k = 1")
    house.sql("delete from t where k = 2")
    house.sql(
        f"merge into t using (select 3 as k, {value(301)} as x union all select 4, {value(400)}) s on t.k = s.k "  # type: ignore[no-untyped-call]
        f"when matched then update set `{top}` = s.x when not matched then insert values (s.k, s.x, 0)"
    )
    house.sql("optimize t")
    wanted = [(1, 100), (3, 301), (4, 400)]
    assert house.rows(f"select k, {found} from t") == wanted
    assert house.rows(f"select k, {found} from t where {found} > 100") == wanted[1:]
    changed = house.rows(f"select distinct k, {found} from silt_changes('main.t', after => 3)")
    assert set(changed) >= {(3, 301), (4, 400)}
