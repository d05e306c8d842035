"""Finds the floating-point columns of files for which Parquet's own filters may give other results than SQL.

In SQL, -0.0 equals 0.0, and NaN equals itself and is greater than every number. In Parquet's dictionaries and Bloom
filters, -0.0 differs from 0.0, and the bounds of most writers leave NaN out.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.silt.engine.kernel.files.bounds import Bounds, column_bounds
from dbt.adapters.silt.engine.kernel.table.actions import Metadata
from dbt.adapters.silt.engine.kernel.table.expressions import Column
from dbt.adapters.silt.engine.kernel.table.schema import PrimitiveType, StructType

_FLOATS = (PrimitiveType("float"), PrimitiveType("double"))


def uncertain_floats(files: pa.Table, metadata: Metadata) -> list[Column]:
    """Returns the float and double columns, including struct members, in which some file may contain a zero or NaN.

    Args:
        files: rows of `Snapshot.files`.
    """
    floats = list(_floats(StructType.from_json(metadata.schema_string), ()))
    known = column_bounds(files, metadata, floats) if floats and files.num_rows else {}
    return [column for column in floats if column in known and not _excludes_both(known[column])]


def _floats(schema: StructType, above: tuple[str, ...]) -> Iterator[Column]:
    for member in schema:
        path = (*above, member.name)
        if isinstance(member.type, StructType):
            yield from _floats(member.type, path)
        elif member.type in _FLOATS:
            yield Column(path)


def _excludes_both(bounds: Bounds) -> bool:
    """Returns whether no file can contain a zero or NaN; a known maximum covers all values, including NaN."""
    is_positive = pc.and_(pc.is_valid(bounds.maximum), pc.fill_null(pc.greater(bounds.minimum, 0.0), False))
    is_negative = pc.fill_null(pc.less(bounds.maximum, 0.0), False)
    has_neither = pc.or_(pc.or_(is_positive, is_negative), pc.invert(bounds.may_be_value))
    return bool(pc.all(has_neither).as_py())
