"""Converts the columns of a data file to the columns of its table, and strings to their `char` and `varchar` types."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dbt.adapters.silt.engine.kernel.errors import TableDamagedError, UnsupportedFeatureError
from dbt.adapters.silt.engine.kernel.files.footer_check import field_id
from dbt.adapters.silt.engine.kernel.files.plain_types import plain
from dbt.adapters.silt.engine.kernel.rows.types import arrow_type
from dbt.adapters.silt.engine.kernel.table.column_mapping import PARQUET_FIELD_ID
from dbt.adapters.silt.engine.kernel.table.schema import ArrayType, DataType, MapType, StructField, StructType
from dbt.adapters.silt.engine.kernel.table.text_lengths import length_limit, plain_type

_MOST_DIGITS = 38

_VERSION: Final = b"org.apache.spark.version"
_OLD_DATES: Final = b"org.apache.spark.legacyDateTime"
_OLD_INT96: Final = b"org.apache.spark.legacyINT96"
_FIRST_DAY: Final = date(1582, 10, 15)
_FIRST_TIME: Final = datetime(1900, 1, 1)


@dataclass(frozen=True)
class FileTraits:
    """The properties of a file that determine how its columns are read.

    Attributes:
        by_id: whether columns are identified by ids instead of names.
        is_old_calendar: whether old dates and times are in the calendar of Spark before version 3.
    """

    by_id: bool = False
    is_old_calendar: bool = False


def position(fields: Sequence[pa.Field], stored: StructField, by_id: bool) -> int | None:
    """Returns the position of a column in the fields of a file or of a struct, or None if it is missing.

    Raises:
        TableDamagedError: if the file has several columns whose names differ only in case.
    """
    table_type = stored.metadata.get(PARQUET_FIELD_ID) if by_id else None
    if table_type is not None:
        return next((at for at, field in enumerate(fields) if field_id(field) == table_type), None)
    name = stored.name.lower()
    found = [at for at, field in enumerate(fields) if field.name.lower() == name]
    if len(found) > 1:
        raise TableDamagedError(f"the column `{stored.name}` occurs {len(found)} times in one file, in different case")
    return found[0] if found else None


def to_table(array: pa.Array, table_type: DataType, stored: DataType, traits: FileTraits) -> pa.Array:
    """Converts a column of a file, or of a struct, list or map in it, to the table's type.

    Args:
        table_type: the table's type.
        stored: the same type with the names and ids in files.

    Raises:
        pa.ArrowException: if the file's values do not fit the type.
        UnsupportedFeatureError: if the file has dates of the old calendar.
    """
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_list_view(array.type) or pa.types.is_large_list_view(array.type):
        array = plain(array)
    if _kind_of(table_type) != _kind_in_file(array.type):
        raise pa.ArrowTypeError("only one of the types is nested, or they are nested differently")
    match table_type, stored:
        case StructType(), StructType():
            return _struct(array, table_type, stored, traits)
        case ArrayType(), ArrayType():
            values = to_table(array.values, table_type.element_type, stored.element_type, traits)
            return _nested(array, arrow_type(table_type), values)
        case MapType(), MapType():
            keys = to_table(array.keys, table_type.key_type, stored.key_type, traits)
            items = to_table(array.items, table_type.value_type, stored.value_type, traits)
            target = arrow_type(table_type)
            fields = [pa.field("key", target.key_type, nullable=False), pa.field("value", target.item_type)]
            return _nested(array, target, pa.StructArray.from_arrays([keys, items], fields=fields))
    return _leaf(array, arrow_type(table_type), traits)


def _kind_of(data_type: DataType) -> str:
    return {StructType: "struct", ArrayType: "list", MapType: "map"}.get(type(data_type), "")


def _kind_in_file(kind: pa.DataType) -> str:
    if pa.types.is_struct(kind) or pa.types.is_map(kind):
        return "struct" if pa.types.is_struct(kind) else "map"
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    return "list" if is_list else ""


def _leaf(array: pa.Array, target: pa.DataType, traits: FileTraits) -> pa.Array:
    """Converts values that are not nested to the table's present type; raises the errors of `to_table`."""
    if traits.is_old_calendar:
        _check_calendar(array)
    if array.type == target:
        return array
    if pa.types.is_null(target):
        return pa.nulls(len(array))
    if pa.types.is_timestamp(target):
        return _timestamp(array, target)
    if pa.types.is_decimal(target) and pa.types.is_integer(array.type):
        return array.cast(pa.decimal128(_MOST_DIGITS, target.scale)).cast(target)
    if pa.types.is_string(target) and _is_bytes(array.type):
        return array.cast(pa.binary()).view(target)
    return array.cast(target)


def _struct(array: pa.Array, table_type: StructType, stored: StructType, traits: FileTraits) -> pa.Array:
    """Converts a struct: members in the table's order, null if the file lacks them."""
    held = [array.type.field(at) for at in range(array.type.num_fields)]
    members = []
    for member, of_file in zip(table_type, stored, strict=True):
        at = position(held, of_file, traits.by_id)
        if at is None:
            members.append(pa.nulls(len(array), arrow_type(member.type)))
        else:
            members.append(to_table(array.field(at), member.type, of_file.type, traits))
    target = arrow_type(table_type)
    fields = [target.field(at) for at in range(target.num_fields)]
    return pa.StructArray.from_arrays(members, fields=fields, mask=array.is_null())


def _nested(array: pa.Array, target: pa.DataType, values: pa.Array) -> pa.Array:
    """Returns a list or a map with the same offsets over other values."""
    if pa.types.is_large_list(array.type) or pa.types.is_fixed_size_list(array.type):
        lists = array.cast(pa.list_(array.type.value_type))
        return pa.Array.from_buffers(target, len(lists), lists.buffers()[:2], offset=lists.offset, children=[values])
    return pa.Array.from_buffers(target, len(array), array.buffers()[:2], offset=array.offset, children=[values])


def _timestamp(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Converts times of any unit, and days, to microseconds; finer parts are truncated toward the past."""
    if pa.types.is_date(array.type):
        return array.cast(pa.timestamp("us")).view(target)
    if not pa.types.is_timestamp(array.type):
        raise pa.ArrowTypeError(f"{array.type} is not a time")
    plain = array.view(pa.timestamp(array.type.unit))
    if array.type.unit == "ns":
        plain = pc.floor_temporal(plain, unit="microsecond")
    return plain.cast(pa.timestamp("us")).view(target)


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind))


def is_old(footer: pq.FileMetaData) -> bool:
    """Returns whether old dates and times in the file are in the old calendar."""
    noted = footer.metadata or {}
    if _VERSION not in noted:
        return False
    version = noted[_VERSION].decode(errors="replace")
    if version < "3.0.0" or _OLD_DATES in noted:
        return True
    return _has_int96(footer) and (version < "3.1.0" or _OLD_INT96 in noted)


def _check_calendar(array: pa.Array) -> None:
    """Raises an error if a value has another meaning in the old calendar.

    Raises:
        UnsupportedFeatureError: if a value is a date or time of the old calendar.
    """
    if pa.types.is_date(array.type):
        least = pa.scalar(_FIRST_DAY, array.type)
    elif pa.types.is_timestamp(array.type):
        least = pa.scalar(_FIRST_TIME, pa.timestamp(array.type.unit)).cast(pa.int64())
        array = array.view(pa.int64())
    else:
        return
    if pc.any(pc.less(array, least)).as_py():
        raise UnsupportedFeatureError(
            "it has dates in the calendar that Spark used before version 3",
            remedy="Read the table with Spark: `Warehouse.sql`",
        )


def _has_int96(footer: pq.FileMetaData) -> bool:
    leaves = (footer.schema.column(at) for at in range(footer.num_columns))
    return any(leaf.physical_type == "INT96" for leaf in leaves)


def fitted(array: pa.Array, column_type: DataType) -> pa.Array:
    """Pads each `char` with blanks, and removes blanks beyond the length.

    Args:
        array: values of the type that `arrow_type` returns for the column.
        column_type: the column's type, including declared lengths.
    """
    if plain_type(column_type) == column_type:
        return array
    match column_type:
        case StructType():
            members = [fitted(array.field(at), member.type) for at, member in enumerate(column_type)]
            fields = [array.type.field(at) for at in range(array.type.num_fields)]
            return pa.StructArray.from_arrays(members, fields=fields, mask=array.is_null())
        case ArrayType():
            return _over(array, fitted(array.values, column_type.element_type))
        case MapType():
            parts = [fitted(array.keys, column_type.key_type), fitted(array.items, column_type.value_type)]
            kind = array.type
            fields = [pa.field("key", kind.key_type, nullable=False), pa.field("value", kind.item_type)]
            return _over(array, pa.StructArray.from_arrays(parts, fields=fields))
    limit = length_limit(column_type)
    return array if limit is None else _fit(array, *limit)


def too_long(array: pa.Array, column_type: DataType, name: str) -> Iterator[tuple[str, str]]:
    """Yields the path and the type of each part of a column that holds a string longer than its length.

    Args:
        array: values of a batch, not a slice.
    """
    match column_type:
        case StructType():
            for at, member in enumerate(column_type):
                yield from too_long(array.field(at), member.type, f"{name}.{member.name}")
        case ArrayType():
            yield from too_long(array.flatten(), column_type.element_type, f"{name}.element")
        case MapType():
            yield from too_long(array.keys, column_type.key_type, f"{name}.key")
            yield from too_long(array.items, column_type.value_type, f"{name}.value")
        case _:
            limit = length_limit(column_type)
            if limit is not None and pc.any(pc.greater(pc.utf8_length(array), limit[1])).as_py():
                yield name, column_type.sql_name


def _over(array: pa.Array, values: pa.Array) -> pa.Array:
    """Returns a list or a map with the same offsets over other values."""
    return pa.Array.from_buffers(array.type, len(array), array.buffers()[:2], offset=array.offset, children=[values])


def _fit(array: pa.Array, kind: str, most: int) -> pa.Array:
    if kind == "char":
        array = pc.utf8_rpad(array, most, " ")
    bare = pc.utf8_rtrim(array, " ")
    is_padded = pc.and_(pc.greater(pc.utf8_length(array), most), pc.less_equal(pc.utf8_length(bare), most))
    return pc.if_else(is_padded, pc.utf8_slice_codeunits(array, 0, most), array)
