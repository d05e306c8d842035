"""Gives columns types that Arrow can compute with: a Parquet file's metadata may ask for others (`string_view`)."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Final, TypeVar

import pyarrow as pa
import pyarrow.types as pt

ArrowValues = TypeVar("ArrowValues", pa.Array, pa.ChunkedArray)

BATCH_ROWS: Final = 65_536
"""So many files are read, converted and looked at at a time, so that what lies between takes little memory."""

_PLAIN_TYPES: Mapping[pa.DataType, pa.DataType] = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}


def plain(values: ArrowValues) -> ArrowValues:
    """The values in such types."""
    kind = plain_type(values.type)
    return values if kind == values.type else values.cast(kind)


def nulls(length: int, kind: pa.DataType) -> pa.Array:
    """Nulls; up to `BATCH_ROWS` of them share their memory with all others of the type."""
    return _nulls(kind).slice(0, length) if length <= BATCH_ROWS else pa.nulls(length, kind)


@functools.cache
def _nulls(kind: pa.DataType) -> pa.Array:
    return pa.nulls(BATCH_ROWS, kind)


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type of the values without views, dictionaries and extension types."""
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
