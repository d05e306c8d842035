"""Converts statistics and partition values to typed columns, which a checkpoint may have with or instead of strings.

Source: the Delta specification, section "Checkpoints" (`stats_parsed`, `partitionValues_parsed`). Members are named by
physical names. A statistic that cannot be expressed in its column's type is null, which means unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.silt.engine.kernel.files import stats_json
from dbt.adapters.silt.engine.kernel.files.bounds import HAS_ZONE
from dbt.adapters.silt.engine.kernel.files.statistics import indexed_columns
from dbt.adapters.silt.engine.kernel.table.actions import Metadata
from dbt.adapters.silt.engine.kernel.table.properties import TableProperties
from dbt.adapters.silt.engine.kernel.table.schema import DataType, DecimalType, StructField, StructType
from dbt.adapters.silt.engine.kernel.table.type_widening import TYPE_CHANGES
from dbt.adapters.silt.engine.kernel.table.value_order import Booleans, Timestamps, ValueOrder, value_order_of

Path: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class _Leaf:
    """A column with statistics. `order` and `kind` are None if it has no minimum and maximum."""

    path: Path
    order: ValueOrder | None
    kind: pa.DataType | None


def stats_parsed(texts: pa.Array, metadata: Metadata) -> pa.StructArray:
    """Converts statistics to structs `{numRecords, tightBounds, minValues, maxValues, nullCount}`.

    Args:
        texts: JSON objects as strings, or null; all members are null for a string that cannot be read.

    Returns:
        Structs, null for null strings, with members for the columns whose statistics the table keeps.
    """
    leaves = _leaves(metadata)
    requested: dict[stats_json.Statistic, ValueOrder | None] = {
        stats_json.NUM_RECORDS: None,
        stats_json.TIGHT: Booleans(),
    }
    for leaf in leaves:
        requested[("nullCount", *leaf.path)] = None
        if leaf.order is not None:
            requested[("minValues", *leaf.path)] = requested[("maxValues", *leaf.path)] = leaf.order
    found = stats_json.read(texts, requested)
    members: dict[Path, pa.Array] = {
        stats_json.NUM_RECORDS: found[stats_json.NUM_RECORDS],
        stats_json.TIGHT: found[stats_json.TIGHT],
    }
    for group in ("minValues", "maxValues"):
        for leaf in leaves:
            if leaf.order is not None and leaf.kind is not None:
                members[(group, *leaf.path)] = _bound(found[(group, *leaf.path)], leaf.order, leaf.kind)
    members |= {("nullCount", *leaf.path): found[("nullCount", *leaf.path)] for leaf in leaves}
    return _nested(members, pc.is_null(texts))


def partition_values_parsed(values: pa.Array, metadata: Metadata) -> pa.StructArray | None:
    """Converts the partition values to structs, or returns None if the table has no partition columns or a value is not
    of its column's type: null would mean that the value is missing.

    Args:
        values: maps from physical name to string.
    """
    schema = StructType.from_json(metadata.schema_string)
    members: dict[Path, pa.Array] = {}
    for field in map(schema.require, metadata.partition_columns):
        texts = pc.map_lookup(values, pa.scalar(field.physical_name), "first")
        texts = pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)
        typed = _partition_values(texts, field.type)
        if typed is None or typed.null_count != texts.null_count:
            return None
        members[(field.physical_name,)] = typed
    return _nested(members, pc.is_null(values)) if members else None


def _leaves(metadata: Metadata) -> list[_Leaf]:
    schema = StructType.from_json(metadata.schema_string)
    columns = indexed_columns(schema, TableProperties(metadata.configuration), metadata.partition_columns)
    otherwise = {path for path, field in _fields(schema) if TYPE_CHANGES in field.metadata}
    found = []
    for column in columns:
        kind = None if column.path in otherwise else _arrow_type(column.type)
        order = None if kind is None or pa.types.is_boolean(kind) else value_order_of(column.type)
        found.append(_Leaf(column.path, order, kind))
    return found


def _fields(schema: StructType, above: Path = ()) -> list[tuple[Path, StructField]]:
    """Returns all fields that are not structs, with their physical paths."""
    found: list[tuple[Path, StructField]] = []
    for field in schema:
        path = (*above, field.physical_name)
        found.extend(_fields(field.type, path) if isinstance(field.type, StructType) else [(path, field)])
    return found


def _bound(values: pa.Array, order: ValueOrder, kind: pa.DataType) -> pa.Array:
    if isinstance(order, Timestamps) and order.zoned:
        # A timestamp without a zone is the writer's local time, which the column's type cannot express.
        values = pc.if_else(pc.match_substring_regex(values, HAS_ZONE), values, pa.scalar(None, pa.string()))
    typed = _cast(order.from_statistics(values), kind)
    return pa.nulls(len(values), kind) if typed is None else typed


def _partition_values(texts: pa.Array, column_type: DataType) -> pa.Array | None:
    kind, order = _arrow_type(column_type), value_order_of(column_type)
    if kind is not None and order is not None:
        return _cast(order.from_texts(texts), kind)
    return texts.cast(pa.binary()) if getattr(column_type, "name", "") == "binary" else None


def _cast(values: pa.Array, kind: pa.DataType) -> pa.Array | None:
    """Casts values in their order's form to the column's type, or returns None if a value does not fit."""
    try:
        if pa.types.is_date32(kind):
            return values.cast(pa.int32()).cast(kind)
        return values.cast(kind, safe=not pa.types.is_floating(kind))
    except pa.ArrowInvalid:
        return None


def _nested(members: Mapping[Path, pa.Array], mask: pa.Array | None = None) -> pa.StructArray:
    """Builds a struct array with a leaf at each path."""
    below: dict[str, dict[Path, pa.Array]] = {}
    for path, values in members.items():
        below.setdefault(path[0], {})[path[1:]] = values
    arrays: Sequence[pa.Array] = [rest[()] if () in rest else _nested(rest) for rest in below.values()]
    fields = [pa.field(name, array.type) for name, array in zip(below, arrays, strict=True)]
    return pa.StructArray.from_arrays(arrays, fields=fields, mask=mask)


def _arrow_type(column_type: DataType) -> pa.DataType | None:
    if isinstance(column_type, DecimalType):
        return pa.decimal128(column_type.precision, column_type.scale)
    return _ARROW_TYPES.get(getattr(column_type, "name", ""))


_ARROW_TYPES: Mapping[str, pa.DataType] = {
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
