"""Tables with column mapping: the effect of a rename, a drop and a new column on the files, here and in another
reader.
"""

from __future__ import annotations

import json
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.commands.insert import insertion
from dbt.adapters.silt.engine.commands.insert.placement import Placement
from dbt.adapters.silt.engine.commands.reading import scan
from dbt.adapters.silt.engine.commands.tables import alter, alter_columns
from dbt.adapters.silt.engine.commands.tables.create import Definition, create
from dbt.adapters.silt.engine.commands.target import Outcome, TableLocation
from dbt.adapters.silt.engine.commands.writing import files
from dbt.adapters.silt.engine.kernel.errors import (
    InvalidPropertyError,
    InvalidStatementError,
    TableDamagedError,
    UnsupportedStatementError,
)
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.scan import skipping
from dbt.adapters.silt.engine.kernel.table import expressions
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, CommitInfo, Protocol, serialize
from dbt.adapters.silt.engine.kernel.table.paths import commit_path
from dbt.adapters.silt.engine.sql.ast import ColumnChange, CreateMode, NewColumn
from tests.unit.engine.commands.spark_tables import PLAIN, Row, Tables, file_in, in_order

BY_NAME = {"delta.columnMapping.mode": "name"}
NESTED = (
    "select id, concat('t', id) as `a b,c;{}()=`, named_struct('x', id, 'y z', array(named_struct('q', id))) as s,"
    " map('k', named_struct('m', id)) as m from range(3)"
)


def rows(tables: Tables, log: DeltaLog) -> list[Row]:
    """Returns all rows, after checking that another reader finds them too."""
    ours = in_order([tuple(row.values()) for row in tables.read(log).toArrow().to_pylist()])
    table = tables.place.delta_rs(log.store.root)
    names = ", ".join('"' + name.replace('"', '""') + '"' for name in log.snapshot().schema.names)
    theirs = deltalake.QueryBuilder().register("t", table).execute(f"select {names} from t")
    assert in_order([tuple(row.values()) for row in pa.table(theirs).to_pylist()]) == ours
    return ours


def change(tables: Tables, log: DeltaLog, *path: str, **what: Any) -> Outcome:
    return alter_columns.change_columns(tables.spark, tables.target(log), [ColumnChange(path, **what)], PLAIN)


def drop(tables: Tables, log: DeltaLog, *path: str) -> Outcome:
    return alter_columns.drop_columns(tables.spark, tables.target(log), [path], False, PLAIN)


def add(tables: Tables, log: DeltaLog, *path: str, kind: str = "bigint") -> Outcome:
    return alter_columns.add_columns(tables.spark, tables.target(log), [NewColumn(path, kind)], False, PLAIN)


@pytest.mark.parametrize("mode", ["name", "id"])
def test_renaming_and_dropping_columns_rewrites_no_file(tables: Tables, mode: str) -> None:
    log = tables.made(NESTED, properties={"delta.columnMapping.mode": mode})
    before = tables.data_files(log)
    assert rows(tables, log)[1] == (1, "t1", {"x": 1, "y z": [{"q": 1}]}, [("k", {"m": 1})])
    for outcome in (
        change(tables, log, "a b,c;{}()=", new_name="text"),
        change(tables, log, "s", "y z", new_name="list"),
        change(tables, log, "m", "value", "m", new_name="member"),
        drop(tables, log, "s", "x"),
        add(tables, log, "s", "x"),
        add(tables, log, "s", "list", "element", "new"),
        drop(tables, log, "id"),
        add(tables, log, "id"),
    ):
        assert (outcome.files_added, outcome.files_removed) == (0, 0)
    assert tables.data_files(log) == before
    assert rows(tables, log)[1] == ("t1", {"list": [{"q": 1, "new": None}], "x": None}, [("k", {"member": 1})], None)
    tables.append(log, "select 't9', named_struct('list', array(named_struct('q', 9L, 'new', 9L)), 'x', 9L), null, 9L")
    assert ("t9", {"list": [{"q": 9, "new": 9}], "x": 9}, None, 9) in rows(tables, log)


def test_a_member_renamed_after_mapping_was_enabled_has_its_new_name(tables: Tables) -> None:
    """The columns keep the names in the files, the members inside of them do not."""
    log = tables.made("select named_struct('x', 1) as s")
    alter.set_properties(tables.target(log), BY_NAME, PLAIN)
    change(tables, log, "s", "x", new_name="y")
    assert [kind for _, kind in tables.read(log).dtypes] == ["struct<y:int>"]
    assert tables.read(log).selectExpr("s.y").collect()[0].y == 1


def test_files_have_physical_names_and_field_ids(tables: Tables) -> None:
    log = tables.made(NESTED.replace("select", "select /*+ coalesce(1) */"), properties=BY_NAME)
    (add,) = log.snapshot().add_files()
    schema = pq.read_schema(file_in(log, add.path))
    field_id = b"PARQUET:field_id"
    assert [field.metadata[field_id] for field in schema] == [b"1", b"2", b"3", b"7"]
    assert schema.names == [member.physical_name for member in log.snapshot().schema]
    inner = schema.field(2).type
    assert [inner.field(index).metadata[field_id] for index in range(2)] == [b"4", b"5"]
    assert set(json.loads(add.stats or "")["minValues"]) == {*schema.names[:2], schema.names[2]}
    assert log.snapshot().protocol == Protocol(2, 5)


def test_files_of_other_writers_are_read_by_their_field_ids(tables: Tables) -> None:
    log = tables.made("select 1L as id, 'x' as t", properties={"delta.columnMapping.mode": "id"})
    text = pa.field("whatever", pa.string(), metadata={"PARQUET:field_id": "2"})
    number = pa.field("other", pa.int64(), metadata={"PARQUET:field_id": "1"})
    add_file(log, 1, pa.table([["y"], [2]], schema=pa.schema([text, number])))
    # delta-rs looks for the names only
    assert in_order([tuple(row) for row in tables.read(log).collect()]) == [(1, "x"), (2, "y")]
    names = [member.physical_name for member in log.snapshot().schema]
    add_file(log, 2, pa.table([pa.array([3]), pa.array(["z"])], names=names))
    with pytest.raises(TableDamagedError):
        files.write(tables.read(log), log, log.snapshot().metadata)


def add_file(log: DeltaLog, version: int, data: pa.Table) -> None:
    """Commits a file as another writer."""
    name = f"{version}.parquet"
    file = pa.BufferOutputStream()
    pq.write_table(data, file)
    log.store.put(name, file.getvalue().to_pybytes())
    add = AddFile(name, {}, file.getvalue().size, 0, stats=json.dumps({"numRecords": data.num_rows}))
    log.store.put_if_absent(commit_path(version), serialize((CommitInfo(operation="WRITE"), add)))


def test_statistics_and_partitions_of_renamed_columns_skip_files(tables: Tables) -> None:
    log = tables.made("select id, id % 2 as `p q` from range(4)", partition_columns=("p q",), properties=BY_NAME)
    change(tables, log, "id", new_name="key")
    change(tables, log, "p q", new_name="part")
    snapshot = log.snapshot()
    assert snapshot.partition_columns == ("part",)
    for column, value, number in (("key", 0, 1), ("key", 9, 0), ("part", 1, 1), ("part", 2, 0)):
        predicate = expressions.Comparison("=", expressions.Column.of(column), value)
        chosen = skipping.prune(snapshot, predicate)
        assert chosen.num_rows == number
        frame = scan.read(tables.spark, log, snapshot, chosen, with_position=True)
        assert frame.where(F.col(column) == value).count() == (0 if not number else 1 if column == "key" else 2)
    tables.append(log, "values (7L, 1L)")
    assert rows(tables, log) == [(0, 0), (1, 1), (2, 0), (3, 1), (7, 1)]


def test_enabling_column_mapping_keeps_the_existing_files(tables: Tables) -> None:
    log = tables.made("select id, id as v, 'x' as p from range(2)", partition_columns=("p",))
    alter.set_properties(tables.target(log), BY_NAME, PLAIN)
    drop(tables, log, "v")
    add(tables, log, "v")
    change(tables, log, "p", new_name="part")
    tables.append(log, "values (5L, 'y', 6L)")
    assert rows(tables, log) == [(0, "x", None), (1, "x", None), (5, "y", 6)]
    assert log.snapshot().metadata.configuration["delta.columnMapping.maxColumnId"] == "4"
    with pytest.raises(InvalidPropertyError):
        alter.unset_properties(tables.target(log), ["delta.columnmapping.mode"], False, PLAIN)
    with pytest.raises(UnsupportedStatementError, match="from name to none"):
        alter.set_properties(tables.target(log), {"delta.columnMapping.mode": "none"}, PLAIN)


def test_columns_added_by_an_insert_are_mapped(tables: Tables) -> None:
    log = tables.made("select 1L as id, named_struct('x', 1) as s", properties=BY_NAME)
    query = tables.spark.sql("select 2L as id, named_struct('x', 2, 'y', 'z') as s, array(named_struct('w', 1)) as l")
    insertion.append(tables.target(log), query, Placement(by_name=True, schema_evolution=True), PLAIN)
    assert rows(tables, log) == [(1, {"x": 1, "y": None}, None), (2, {"x": 2, "y": "z"}, [{"w": 1}])]


def test_a_replaced_table_keeps_the_mapping_of_columns_that_stay_and_continues_with_new_ids(tables: Tables) -> None:
    log = tables.made("select 1L as id, 5L as t", properties=BY_NAME)
    old = log.snapshot()
    # A table created from a mapped table gets its rows, not its mapping.
    place = TableLocation(log, old)
    query = tables.read(log).selectExpr("id", "'x' as t")
    create(tables.spark, place, Definition(properties=BY_NAME), query, CreateMode.CREATE_OR_REPLACE, PLAIN)
    new = log.snapshot()
    assert [member.metadata["delta.columnMapping.id"] for member in new.schema] == [1, 3]
    assert {member.physical_name for member in new.schema} & {member.physical_name for member in old.schema} == {
        old.schema.require("id").physical_name
    }
    create(tables.spark, TableLocation(log, new), Definition(), tables.read(log), CreateMode.CREATE_OR_REPLACE, PLAIN)
    assert not any(member.metadata for member in log.snapshot().schema)
    assert rows(tables, log) == [(1, "x")]


def test_a_constraint_on_a_mapped_column_prevents_its_rename_and_drop(tables: Tables) -> None:
    log = tables.made("select 1L as id, 2L as v", properties=BY_NAME, constraints={"positive": "v > 0"})
    with pytest.raises(InvalidStatementError, match="`positive`"):
        change(tables, log, "v", new_name="w")
    with pytest.raises(InvalidStatementError, match="`positive`"):
        drop(tables, log, "v")
    assert log.snapshot().version == 0


@pytest.mark.parametrize("properties", [{}, BY_NAME])
def test_the_statistics_columns_follow_a_rename(tables: Tables, properties: dict[str, str]) -> None:
    chosen = {"delta.dataSkippingStatsColumns": "id,`a.b`,s.x"}
    log = tables.made(
        "select 1L as id, 2L as `a.b`, named_struct('x', 1, 'y', 2) as s", properties={**properties, **chosen}
    )
    change(tables, log, "a.b", new_name="a b")
    change(tables, log, "s", new_name="t")
    assert log.snapshot().metadata.configuration["delta.dataSkippingStatsColumns"] == "id,`a b`,t.x"
    drop(tables, log, "t", "x")
    drop(tables, log, "id")
    assert log.snapshot().metadata.configuration["delta.dataSkippingStatsColumns"] == "`a b`"
    drop(tables, log, "a b")
    assert "delta.dataSkippingStatsColumns" not in log.snapshot().metadata.configuration
