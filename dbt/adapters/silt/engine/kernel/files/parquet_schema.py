"""Converts the schema of a Parquet file to a table's schema, and merges several such schemas.

A file written by Spark contains its schema as Spark's JSON. The schema of any other file is derived from the Parquet
types (specification: "Primitive Types"; delta-spark reads them through Spark). Columns of several files are merged by
case-insensitive name; two different types of `byte`, `short` and `integer` become the wider type, because Parquet
stores them alike; all columns are nullable.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from dbt.adapters.silt.engine.kernel.errors import CorruptLogError, TypeMismatchError, UnsupportedFeatureError
from dbt.adapters.silt.engine.kernel.files.plain_types import plain_type
from dbt.adapters.silt.engine.kernel.table.schema import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    nullable_schema,
)

_SPARK_SCHEMA: Final = b"org.apache.spark.sql.parquet.row.metadata"
_SPARK_VERSION: Final = b"org.apache.spark.version"
_MOST_DIGITS: Final = 38
_INTEGERS: Final = ("byte", "short", "integer")
# Spark does not read columns of these types: without the type's meaning, their bytes are useless values.
_REFUSED: Final = frozenset(("INTERVAL", "UUID", "TIME", "FLOAT16", "GEOMETRY", "GEOGRAPHY", "NULL", "UNKNOWN"))
_VARIANT_MEMBERS: Final = frozenset(("metadata", "value", "typed_value"))
_TEXTS: Final = frozenset(("STRING", "JSON", "ENUM"))
_PRIMITIVES: Final = {
    pa.bool_(): "boolean",
    pa.int8(): "byte",
    pa.uint8(): "short",
    pa.int16(): "short",
    pa.uint16(): "integer",
    pa.int32(): "integer",
    pa.uint32(): "long",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.binary(): "binary",
    pa.large_binary(): "binary",
    pa.date32(): "date",
}


def of_footer(footer: pq.FileMetaData) -> StructType:
    """Derives the columns of a table, all nullable, from a file's footer.

    Raises:
        TypeMismatchError: if a column has a type that tables cannot have; the message names the column.
    """
    given = _by_spark(footer)
    if given is not None:
        return given
    leaves = iter(range(footer.num_columns))
    fields = (_field(field, footer, leaves) for field in footer.schema.to_arrow_schema())
    return StructType(tuple(fields))


def merged(first: StructType, second: StructType, path: str = "") -> StructType:
    """Merges two schemas: the columns of the first in its order and spelling, then new columns of the second.

    Raises:
        TypeMismatchError: if a column has two types that are not stored alike; the message names the column.
    """
    fields = list(first.fields)
    positions = {member.name.lower(): position for position, member in enumerate(fields)}
    for member in second:
        position = positions.get(member.name.lower())
        if position is None:
            fields.append(member)
        else:
            known = fields[position]
            common = _merged_type(known.type, member.type, f"{path}{known.name}")
            fields[position] = StructField(known.name, common, True, known.metadata)
    return StructType(tuple(fields))


def _by_spark(footer: pq.FileMetaData) -> StructType | None:
    """Returns the schema that Spark recorded, or None for a file of another writer or with a Spark-specific type."""
    noted = footer.metadata or {}
    if _SPARK_SCHEMA not in noted or _SPARK_VERSION not in noted:
        return None
    try:
        schema = StructType.from_json(noted[_SPARK_SCHEMA].decode())
    except (CorruptLogError, UnsupportedFeatureError, UnicodeDecodeError):
        return None
    return nullable_schema(schema)


def _field(field: pa.Field, footer: pq.FileMetaData, leaves: Iterator[int]) -> StructField:
    return StructField(field.name, _type(field.type, field.name, footer, leaves), True)


def _type(kind: pa.DataType, name: str, footer: pq.FileMetaData, leaves: Iterator[int]) -> DataType:
    """Converts the type of a column; Parquet's leaves are numbered in the order of the schema."""
    if pa.types.is_struct(kind):
        if _is_variant(kind, footer):
            raise _refused("VARIANT (group)", name)
        members = (kind.field(position) for position in range(kind.num_fields))
        return StructType(
            tuple(
                StructField(each.name, _type(each.type, f"{name}.{each.name}", footer, leaves), True)
                for each in members
            )
        )
    if _is_list(kind):
        return ArrayType(_type(kind.value_type, f"{name}.element", footer, leaves), True)
    if pa.types.is_map(kind):
        key = _type(kind.key_type, f"{name}.key", footer, leaves)
        return MapType(key, _type(kind.item_type, f"{name}.value", footer, leaves), True)
    return _primitive(plain_type(kind), footer.schema.column(next(leaves)), name)


def _is_variant(kind: pa.StructType, footer: pq.FileMetaData) -> bool:
    """Returns whether a struct is a variant: Arrow gives the annotation of a group only in the printed schema."""
    names = {kind.field(position).name for position in range(kind.num_fields)}
    return {"metadata", "value"} <= names <= _VARIANT_MEMBERS and "(Variant(" in str(footer.schema)


def _is_list(kind: pa.DataType) -> bool:
    is_view = pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind)
    return bool(is_view or pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _primitive(kind: pa.DataType, leaf: pq.ColumnSchema, name: str) -> DataType:
    physical_type, logical_type = leaf.physical_type, _logical_type(leaf)
    if logical_type in _REFUSED:
        raise _refused(f"{logical_type} ({physical_type})", name)
    if logical_type in _TEXTS:
        return PrimitiveType("string")
    if pa.types.is_decimal(kind) and kind.precision <= _MOST_DIGITS:
        return DecimalType(kind.precision, kind.scale)
    if kind == pa.uint64():
        return DecimalType(20, 0)
    if pa.types.is_timestamp(kind):
        if physical_type == "INT96" or (kind.tz is not None and kind.unit != "ns"):
            return PrimitiveType("timestamp")
        if kind.unit != "ns":
            return PrimitiveType("timestamp_ntz")
    if pa.types.is_fixed_size_binary(kind):
        return PrimitiveType("binary")
    found = _PRIMITIVES.get(kind)
    if found is None:
        raise _refused(f"{kind} ({physical_type})", name)
    return PrimitiveType(found)


def _logical_type(leaf: pq.ColumnSchema) -> str:
    """Returns the specification's name; `logical_type.type` is UNKNOWN for both INTERVAL and NULL."""
    return str(leaf.logical_type).partition("(")[0].upper()


def _refused(kind: str, name: str) -> TypeMismatchError:
    return TypeMismatchError(
        f"the column `{name}` has the Parquet type {kind}, which a table cannot store",
        remedy="Rewrite the files with another type",
    )


def _merged_type(first: DataType, second: DataType, name: str) -> DataType:
    if isinstance(first, StructType) and isinstance(second, StructType):
        return merged(first, second, f"{name}.")
    if isinstance(first, ArrayType) and isinstance(second, ArrayType):
        return ArrayType(_merged_type(first.element_type, second.element_type, f"{name}.element"), True)
    if isinstance(first, MapType) and isinstance(second, MapType):
        key = _merged_type(first.key_type, second.key_type, f"{name}.key")
        return MapType(key, _merged_type(first.value_type, second.value_type, f"{name}.value"), True)
    if first == second:
        return first
    names = [getattr(each, "name", "") for each in (first, second)]
    if all(each in _INTEGERS for each in names):
        return PrimitiveType(max(names, key=_INTEGERS.index))
    raise TypeMismatchError(
        f"the column `{name}` is {_shown(first)} in some files and {_shown(second)} in others",
        remedy="Rewrite the files so that all have the same type",
    )


def _shown(data_type: DataType) -> str:
    return getattr(data_type, "sql_name", "") or type(data_type).__name__.removesuffix("Type").lower()
