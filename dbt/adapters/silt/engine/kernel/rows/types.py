"""Converts the types of tables to Arrow types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import pyarrow as pa

from dbt.adapters.silt.engine.kernel.errors import UnsupportedFeatureError
from dbt.adapters.silt.engine.kernel.table import collations
from dbt.adapters.silt.engine.kernel.table.schema import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
    primitive_types,
)

INSTANT: Final = pa.timestamp("us", tz="UTC")
LOCAL_TIME: Final = pa.timestamp("us")

_PRIMITIVES: Final[Mapping[str, pa.DataType]] = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": INSTANT,
    "timestamp_ntz": LOCAL_TIME,
    "void": pa.null(),
}


def arrow_schema(fields: Iterable[StructField], table: str) -> pa.Schema:
    """Returns the columns as an Arrow schema, all nullable.

    Raises:
        UnsupportedFeatureError: if Arrow does not have the type of a column.
    """
    return pa.schema([pa.field(field.name, _checked(field, table)) for field in fields])


def arrow_type(data_type: DataType) -> pa.DataType:
    """Returns the Arrow type, with null allowed at every level except in the keys of maps.

    Raises:
        KeyError: if Arrow does not have the type.
    """
    match data_type:
        case StructType():
            return pa.struct([pa.field(member.name, arrow_type(member.type)) for member in data_type])
        case ArrayType():
            return pa.list_(pa.field("element", arrow_type(data_type.element_type)))
        case MapType():
            return pa.map_(arrow_type(data_type.key_type), arrow_type(data_type.value_type))
        case DecimalType():
            return pa.decimal128(data_type.precision, data_type.scale)
        case _:
            return _PRIMITIVES[collations.without(data_type.name)]


def _checked(field: StructField, table: str) -> pa.DataType:
    for primitive in primitive_types(field.type):
        if not isinstance(primitive, DecimalType) and collations.without(primitive.name) not in _PRIMITIVES:
            raise UnsupportedFeatureError(
                f"the column `{field.name}` has the type {primitive.name}, which Arrow does not have",
                remedy="Leave it out with `columns`, or read it with Spark: `Warehouse.sql`",
                table=table,
                details={"column": field.name, "type": primitive.name},
            )
    return arrow_type(field.type)


def uniform(rows: pa.Table) -> pa.Table:
    """Casts rows from any source to the types of `arrow_type`: null is allowed, instants are in UTC."""
    fields = [pa.field(field.name, _uniform_type(field.type)) for field in rows.schema]
    schema = pa.schema(fields)
    return rows if rows.schema.equals(schema, check_metadata=True) else rows.replace_schema_metadata().cast(schema)


def _uniform_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return LOCAL_TIME if kind.tz is None else INSTANT
    if pa.types.is_struct(kind):
        members = (kind.field(at) for at in range(kind.num_fields))
        return pa.struct([pa.field(member.name, _uniform_type(member.type)) for member in members])
    if pa.types.is_map(kind):
        return pa.map_(_uniform_type(kind.key_type), _uniform_type(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", _uniform_type(kind.value_type)))
    return kind
