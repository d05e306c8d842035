"""Columns without a type, and variants: their data in files."""

from __future__ import annotations

import json
from dataclasses import replace

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest
from packaging.version import Version

from dbt.adapters.silt.engine.commands.tables import alter_columns
from dbt.adapters.silt.engine.commands.writing import files
from dbt.adapters.silt.engine.kernel.errors import UnsupportedStatementError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.table.actions import CommitInfo, serialize
from dbt.adapters.silt.engine.kernel.table.paths import commit_path, decode_path
from dbt.adapters.silt.engine.kernel.table.schema import ArrayType, DataType, PrimitiveType, StructField, StructType
from dbt.adapters.silt.engine.sql.ast import ColumnChange
from tests.unit.engine.commands.spark_tables import PLAIN, Tables, file_in

VOID = PrimitiveType("void")
NOTHING = StructField("nothing", VOID)
READS_PARTS_WITHOUT_A_TYPE = Version(pyspark.__version__) >= Version("4.1")


def with_column(tables: Tables, field: StructField) -> DeltaLog:
    """Creates a table to which another writer has added a column."""
    log = tables.made("select 1L as id")
    snapshot = log.snapshot()
    metadata = replace(snapshot.metadata, schema_string=snapshot.schema.add(field).to_json())
    log.store.put_if_absent(commit_path(1), serialize((CommitInfo(operation="ADD COLUMNS"), metadata)))
    return log


def test_a_column_without_a_type_is_stored_in_no_file_and_can_get_a_type(tables: Tables) -> None:
    log = with_column(tables, NOTHING)
    tables.append(log, "values (2L, null)")
    for name in tables.data_files(log):
        assert pq.read_schema(file_in(log, name)).names == ["id"]
    change = ColumnChange(("nothing",), type="int")
    assert alter_columns.change_columns(tables.spark, tables.target(log), [change], PLAIN).files_added == 0
    tables.append(log, "values (3L, 4)")
    assert tables.rows(log) == [(1, None), (2, None), (3, 4)]


@pytest.mark.parametrize(
    "kind",
    [
        ArrayType(VOID),
        StructType((NOTHING,)),
        StructType((StructField("x", PrimitiveType("long")), NOTHING)),
    ],
)
def test_a_field_without_a_type_is_read_as_null_or_refused_by_spark_and_not_written(
    tables: Tables, kind: DataType
) -> None:
    log = with_column(tables, StructField("c", kind))
    if READS_PARTS_WITHOUT_A_TYPE:
        assert [tuple(row) for row in tables.read(log).collect()] == [(1, None)]
    else:
        with pytest.raises(UnsupportedStatementError, match="doesn't support the column `c`"):
            tables.read(log)
    before = tables.data_files(log)
    with pytest.raises(UnsupportedStatementError, match="`c`"):
        tables.append(log, "values (2L, null)")
    assert tables.data_files(log) == before


def test_a_table_with_only_untyped_columns_is_not_written(tables: Tables) -> None:
    log = tables.made("select 1L as id")
    metadata = replace(log.snapshot().metadata, schema_string=StructType((NOTHING,)).to_json())
    with pytest.raises(UnsupportedStatementError, match="no column"):
        files.write(tables.spark.sql("select null as nothing"), log, metadata)


def test_variants_are_written_unshredded_and_read_by_other_readers(tables: Tables) -> None:
    query = "select /*+ coalesce(1) */ id, if(id < 2, parse_json(concat('{\"a\":', id, '}')), null) as v from range(3)"
    log = tables.made(query)
    (add,) = log.snapshot().add_files()
    stored = pq.read_schema(file_in(log, decode_path(add.path))).field("v").type
    assert {stored.field(index).name for index in range(stored.num_fields)} == {"value", "metadata"}
    assert json.loads(add.stats or "")["nullCount"] == {"id": 0, "v": 1}
    assert log.snapshot().protocol.reader_features == ("variantType",)
    found = tables.read(log).selectExpr("id", "to_json(v)").orderBy("id").collect()
    assert [tuple(row) for row in found] == [(0, '{"a":0}'), (1, '{"a":1}'), (2, None)]
    theirs = deltalake.QueryBuilder().register("t", tables.place.delta_rs(log.store.root)).execute("select v from t")
    assert sum(value is None for value in pa.table(theirs)["v"].to_pylist()) == 1
