"""Converts columns to types that Arrow can compute with: a Parquet file may request other types (`string_view`)."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Final, TypeVar

import pyarrow as pa
import pyarrow.types as pt

ArrowValues = TypeVar("ArrowValues", pa.Array, pa.ChunkedArray)

BATCH_ROWS: Final = 65_536
"""The number of files to read, convert and inspect at a time, so that intermediate values take little memory."""

_PLAIN_TYPES: Mapping[pa.DataType, pa.DataType] = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}


def plain(values: ArrowValues) -> ArrowValues:
    """Converts the values to such types."""
    kind = plain_type(values.type)
    return values if kind == values.type else values.cast(kind)


def nulls(length: int, kind: pa.DataType) -> pa.Array:
    """Creates an array of nulls; arrays of up to `BATCH_ROWS` nulls of the same type share their memory."""
    return _nulls(kind).slice(0, length) if length <= BATCH_ROWS else pa.nulls(length, kind)


@functools.cache
def _nulls(kind: pa.DataType) -> pa.Array:
    return pa.nulls(BATCH_ROWS, kind)


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Returns the type of the values without views, dictionaries and extension types."""
    if isinstance(kind, pa.BaseExtensionType):
        return plain_type(kind.storage_type)
    if pt.is_struct(kind):
        return pa.struct([member.with_type(plain_type(member.type)) for member in kind])
    if pt.is_map(kind):
        return pa.map_(plain_type(kind.key_type), plain_type(kind.item_type))
    if pt.is_list(kind) or pt.is_large_list(kind) or pt.is_list_view(kind) or pt.is_large_list_view(kind):
        return pa.list_(plain_type(kind.value_type))
    if pt.is_dictionary(kind):
        return plain_type(kind.value_type)
    return _PLAIN_TYPES.get(kind, kind)
