"""Fits strings to the `char` and `varchar` types of their column, and finds strings that are too long."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.silt.engine.kernel.table.schema import ArrayType, DataType, MapType, StructType
from dbt.adapters.silt.engine.kernel.table.text_lengths import length_limit, plain_type


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
