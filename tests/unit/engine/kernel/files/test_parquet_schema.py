"""The schemas of Parquet files, converted to table schemas and merged."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.silt.engine.kernel.errors import TypeMismatchError
from dbt.adapters.silt.engine.kernel.files.parquet_schema import merged, of_footer
from dbt.adapters.silt.engine.kernel.table.schema import ArrayType, DecimalType, PrimitiveType, StructField, StructType


def footer(schema: pa.Schema, **options: Any) -> pq.FileMetaData:
    target = io.BytesIO()
    pq.write_table(schema.empty_table(), target, **options)
    return pq.read_metadata(target)


def type_of(kind: pa.DataType, **options: Any) -> str:
    (field,) = of_footer(footer(pa.schema([pa.field("c", kind, nullable=False)]), **options))
    assert field.nullable
    return field.type.name  # type: ignore[union-attr]


OF_NEWER_ARROW: list[tuple[pa.DataType, str]] = []
if hasattr(pa, "json_"):  # pyarrow writes these since version 19
    OF_NEWER_ARROW = [
        (pa.string_view(), "string"),
        (pa.binary_view(), "binary"),
        (pa.json_(), "string"),
        (pa.decimal32(9, 2), "decimal(9,2)"),
    ]


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (pa.int8(), "byte"),
        (pa.int16(), "short"),
        (pa.int32(), "integer"),
        (pa.int64(), "long"),
        (pa.uint8(), "short"),
        (pa.uint16(), "integer"),
        (pa.uint32(), "long"),
        (pa.uint64(), "decimal(20,0)"),
        (pa.float32(), "float"),
        (pa.float64(), "double"),
        (pa.bool_(), "boolean"),
        (pa.string(), "string"),
        (pa.binary(), "binary"),
        (pa.binary(4), "binary"),
        (pa.date32(), "date"),
        (pa.decimal128(12, 3), "decimal(12,3)"),
        (pa.timestamp("us", "UTC"), "timestamp"),
        (pa.timestamp("ms", "UTC"), "timestamp"),
        (pa.timestamp("us"), "timestamp_ntz"),
        (pa.dictionary(pa.int32(), pa.string()), "string"),
        (pa.decimal256(38, 2), "decimal(38,2)"),
        *OF_NEWER_ARROW,
    ],
    ids=str,
)
def test_a_parquet_type_is_converted_to_its_column_type(kind: pa.DataType, name: str) -> None:
    assert type_of(kind) == name


def test_an_int96_timestamp_is_converted_to_timestamp() -> None:
    assert type_of(pa.timestamp("ns"), use_deprecated_int96_timestamps=True) == "timestamp"


def test_nested_types_are_read_and_their_leaves_distinguished() -> None:
    kind = pa.struct([("a", pa.list_(pa.struct([("x", pa.int8()), ("at", pa.timestamp("ns"))]))), ("b", pa.int32())])
    schema = pa.schema([("before", pa.int64()), ("s", kind), ("m", pa.map_(pa.string(), pa.timestamp("ns")))])
    found = of_footer(footer(schema, use_deprecated_int96_timestamps=True))
    assert [field.type.name for field in found.fields[1].type.fields[0].type.element_type] == ["byte", "timestamp"]  # type: ignore[union-attr]
    assert found.fields[2].type.value_type.name == "timestamp"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "kind",
    [
        pa.time32("ms"),
        pa.time64("us"),
        pa.timestamp("ns"),
        pa.duration("us"),
        pa.decimal256(50, 2),
        pa.float16(),
        pa.null(),
    ],
    ids=str,
)
def test_a_type_that_no_column_can_have_is_named_with_its_column(kind: pa.DataType) -> None:
    with pytest.raises(TypeMismatchError, match=r"the column `s\.c` has the Parquet type"):
        of_footer(footer(pa.schema([("s", pa.struct([("c", kind)]))])))


def test_the_schema_in_sparks_metadata_takes_precedence_over_the_parquet_types() -> None:
    noted = StructType((StructField("c", PrimitiveType("integer"), False, {"comment": "why"}),))
    schema = pa.schema(
        [("c", pa.int32())],
        {"org.apache.spark.sql.parquet.row.metadata": noted.to_json(), "org.apache.spark.version": "4.3.0"},
    )
    (field,) = of_footer(footer(schema))
    assert (field.nullable, field.comment) == (True, "why")


def test_unreadable_spark_metadata_is_ignored() -> None:
    noted = {
        "org.apache.spark.sql.parquet.row.metadata": json.dumps({"type": "no such"}),
        "org.apache.spark.version": "9",
    }
    assert of_footer(footer(pa.schema([("c", pa.int32())], noted))).names == ("c",)


def test_columns_are_merged_by_name_in_any_case() -> None:
    first = StructType((StructField("Id", PrimitiveType("byte")), StructField("s", _struct("a"))))
    second = StructType(
        (StructField("id", PrimitiveType("integer")), StructField("S", _struct("b")), StructField("n", _struct("x")))
    )
    found = merged(first, second)
    assert found.names == ("Id", "s", "n")
    assert found.fields[0].type == PrimitiveType("integer")
    assert found.fields[1].type.names == ("a", "b")  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (PrimitiveType("integer"), PrimitiveType("long")),
        (PrimitiveType("string"), PrimitiveType("binary")),
        (DecimalType(10, 2), DecimalType(12, 2)),
        (ArrayType(PrimitiveType("string"), True), PrimitiveType("string")),
        (PrimitiveType("timestamp"), PrimitiveType("timestamp_ntz")),
    ],
    ids=str,
)
def test_incompatible_types_are_an_error_that_names_the_column(one: Any, other: Any) -> None:
    with pytest.raises(TypeMismatchError, match=r"the column `c` is .* in some files and .* in others"):
        merged(StructType((StructField("c", one),)), StructType((StructField("c", other),)))


NAMES = st.lists(st.sampled_from("abcd"), unique=True).map(
    lambda names: StructType(tuple(StructField(name, PrimitiveType("long")) for name in names))
)


@given(NAMES, NAMES, NAMES)
def test_merging_keeps_every_column_in_any_grouping(a: StructType, b: StructType, c: StructType) -> None:
    assert merged(merged(a, b), c) == merged(a, merged(b, c))
    assert set(merged(a, b).names) == {*a.names, *b.names}
    assert merged(a, a) == a


def _struct(name: str) -> StructType:
    return StructType((StructField(name, PrimitiveType("string")),))


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("interval '1 month'", "INTERVAL"),
        ("uuid()", "UUID"),
        ("time '10:00:00'", "TIME"),
        ("timetz '10:00:00+01'", "TIME"),
        ("timestamp_ns '2020-01-01 00:00:00.000000001'", r"timestamp\[ns\]"),
    ],
)
@pytest.mark.parametrize("nested", ["{sql}", "[{sql}]", "{{'x': {sql}}}", "map {{'k': {sql}}}"])
def test_an_unsupported_duckdb_type_is_named_at_every_level(tmp_path: Path, sql: str, kind: str, nested: str) -> None:
    duckdb.sql(f"copy (select {nested.format(sql=sql)} as c) to '{tmp_path}/f.parquet' (format parquet)")
    with pytest.raises(TypeMismatchError, match=rf"the column `c[.a-z]*` has the Parquet type {kind}"):
        of_footer(pq.read_metadata(tmp_path / "f.parquet"))


@pytest.mark.parametrize("sql", ["1::variant", "{'a': 1, 'b': 'x'}::variant", "[1, 2]::variant"])
def test_a_variant_of_another_writer_is_not_taken_for_a_struct_of_bytes(tmp_path: Path, sql: str) -> None:
    duckdb.sql(f"copy (select 1 as id, {sql} as v) to '{tmp_path}/f.parquet' (format parquet)")
    # Before version 21, pyarrow does not read such a file at all.
    refused = r"the column `v` has the Parquet type VARIANT|LogicalType that is not recognized"
    with pytest.raises((TypeMismatchError, OSError), match=refused):
        of_footer(pq.read_metadata(tmp_path / "f.parquet"))


def test_a_struct_with_the_names_of_a_variants_parts_is_a_struct() -> None:
    parts = pa.struct([pa.field("metadata", pa.binary(), nullable=False), ("value", pa.binary())])
    (field,) = of_footer(footer(pa.schema([("c", parts)])))
    assert field.type.sql_name == "struct<metadata:binary,value:binary>"
