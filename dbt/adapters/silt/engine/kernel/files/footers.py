"""Reads the statistics of columns from a Parquet footer.

Raw values are read from the footer and interpreted by the column's Parquet type, so that no conversion through Python's
dates or decimals can round or overflow.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from dbt.adapters.silt.engine.kernel.files import stats_json
from dbt.adapters.silt.engine.kernel.files.footer_check import checked
from dbt.adapters.silt.engine.kernel.files.plain_types import plain_type
from dbt.adapters.silt.engine.kernel.table.schema import DataType, DecimalType

Path: TypeAlias = tuple[str, ...]

_MICROSECONDS = {"s": (1_000_000, 1), "ms": (1_000, 1), "us": (1, 1), "ns": (1, 1_000)}
_INTEGERS = frozenset(("byte", "short", "integer", "long"))
_FLOATS = frozenset(("float", "double"))


WIDE_DIFFERENCES: Final = (
    "Arrow cannot read 32-bit columns in the encoding DELTA_BINARY_PACKED whose differences need more than 32 bits, "
    "and Spark can: query the table by SQL, and run `create or replace table ... as select * from ...` so that Arrow "
    "can read it, too. If Spark cannot read the file either, restore it from a copy"
)
"""The remedy for a file that Arrow may be unable to read although it is not damaged. DuckDB writes such files."""


@dataclass(frozen=True)
class ColumnChunks:
    """The statistics of a column over all row groups of a file.

    Attributes:
        arrow_type: the Arrow type of the file's column, without views, dictionaries and extension types.
        minimum: a raw lower bound, for a decimal its unscaled int; None if all values are null or a chunk lacks it. The
            writer may have shortened a string or bytes, so such a bound need not be a value of the column.
        maximum: an upper bound, likewise.
        null_count: the number of nulls; None if a chunk lacks it. For an array or a map, the count of its leaf with the
            fewest nulls.
        complete: whether every chunk has all statistics of its type.
    """

    arrow_type: pa.DataType
    minimum: Any
    maximum: Any
    null_count: int | None
    complete: bool

    def literal(self, value: Any, column_type: DataType, truncate: Callable[[str], str | None]) -> str | None:
        """Converts a raw value to a literal in the JSON statistics of a column of that type.

        Args:
            truncate: the function that shortens a string.

        Returns:
            The literal, or None if the value is missing, the type has no minimum and maximum, or the file's column is
            of another kind.
        """
        kind = self.arrow_type
        if value is None:
            return None
        if isinstance(column_type, DecimalType):
            return _decimal_literal(value, kind, column_type)
        name = getattr(column_type, "name", None)
        if name == "string" and (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            return _string_literal(value, truncate)
        if name in _INTEGERS and pa.types.is_integer(kind):
            return stats_json.integer_literal(value)
        if name in _FLOATS and pa.types.is_floating(kind):
            return stats_json.float_literal(value)
        if name == "date" and pa.types.is_date32(kind):
            return stats_json.date_literal(value)
        if name in ("timestamp", "timestamp_ntz") and pa.types.is_timestamp(kind):
            times, parts = _MICROSECONDS[kind.unit]
            return stats_json.timestamp_literal(value * times // parts, zoned=name == "timestamp")
        return None


def read(
    metadata: pq.FileMetaData, paths: Sequence[Path], row_groups: Sequence[int] | None = None
) -> dict[Path, ColumnChunks]:
    """Reads the statistics of the columns at these paths, as far as the file has these columns.

    Args:
        row_groups: the row groups to read; all by default.
    """
    leaves = dict(_leaves(metadata.schema.to_arrow_schema(), (), iter(range(metadata.num_columns))))
    wanted = range(metadata.num_row_groups) if row_groups is None else row_groups
    groups = [metadata.row_group(group) for group in wanted]
    orders_nan = (metadata.created_by or "").startswith("parquet-mr")
    found = {}
    for path in paths:
        if path not in leaves:
            continue
        arrow_type, indexes = leaves[path]
        candidates = [_combined(groups, index, arrow_type) for index in indexes]
        chunks = min(candidates, key=lambda each: math.inf if each.null_count is None else each.null_count)
        hides_nan = pa.types.is_floating(arrow_type) and not orders_nan
        found[path] = replace(chunks, maximum=None) if hides_nan else chunks
    return found


def _leaves(fields: Any, above: Path, counter: Iterator[int]) -> Iterator[tuple[Path, tuple[pa.DataType, list[int]]]]:
    """Yields each column that is not a struct, with the indexes of the Parquet leaves below it.

    Parquet numbers its leaves in the order of the schema; in its dotted paths, dots in names and nesting look the same.
    """
    for field in fields:
        path = (*above, field.name)
        if pa.types.is_struct(field.type):
            yield from _leaves(field.type, path, counter)
        else:
            yield path, (plain_type(field.type), [next(counter) for _ in range(_leaf_count(field.type))])


def _leaf_count(arrow_type: pa.DataType) -> int:
    if arrow_type.num_fields == 0:
        return 1
    return sum(_leaf_count(arrow_type.field(position).type) for position in range(arrow_type.num_fields))


def _combined(groups: Sequence[pq.RowGroupMetaData], leaf: int, arrow_type: pa.DataType) -> ColumnChunks:
    minima, maxima, null_count, complete = [], [], 0, True
    for group in groups:
        chunk = group.column(leaf)
        stats = chunk.statistics
        if stats is None or not stats.has_null_count:
            return ColumnChunks(arrow_type, None, None, None, complete=group.num_rows == 0)
        null_count += stats.null_count
        bounds = _bounds(stats, arrow_type) if stats.has_min_max and chunk.physical_type != "INT96" else None
        if bounds is not None:
            minima.append(bounds[0])
            maxima.append(bounds[1])
        elif stats.null_count < chunk.num_values:
            complete = False
    if not complete or not minima:
        return ColumnChunks(arrow_type, None, None, null_count, complete)
    return ColumnChunks(arrow_type, min(minima, key=_nan_last), max(maxima, key=_nan_last), null_count, complete)


def _bounds(stats: pq.Statistics, arrow_type: pa.DataType) -> tuple[Any, Any] | None:
    """Returns a chunk's bounds, or None if they are out of order, as after comparing unsigned numbers as signed."""
    minimum, maximum = (_interpreted(raw, arrow_type) for raw in (stats.min_raw, stats.max_raw))
    return None if _nan_last(minimum) > _nan_last(maximum) else (minimum, maximum)


def _interpreted(raw: Any, arrow_type: pa.DataType) -> Any:
    """Interprets a raw value of the footer, for which the physical type alone does not suffice."""
    if pa.types.is_unsigned_integer(arrow_type):
        return raw & ((1 << arrow_type.bit_width) - 1)
    if pa.types.is_decimal(arrow_type) and isinstance(raw, bytes):
        return int.from_bytes(raw, "big", signed=True)
    if pa.types.is_float16(arrow_type) and isinstance(raw, bytes):
        return struct.unpack("<e", raw)[0]
    return raw


def _decimal_literal(value: int, kind: pa.DataType, column_type: DecimalType) -> str | None:
    """Returns the literal of a decimal, or of an integer in a column of scale 0 (an unsigned integer)."""
    if pa.types.is_decimal(kind):
        return stats_json.decimal_literal(value, kind.scale)
    if pa.types.is_integer(kind) and column_type.scale == 0:
        return stats_json.integer_literal(value)
    return None


def _nan_last(value: Any) -> tuple[bool, Any]:
    is_nan = isinstance(value, float) and math.isnan(value)
    return is_nan, 0 if is_nan else value


def _string_literal(raw: bytes, truncate: Callable[[str], str | None]) -> str | None:
    try:
        shortened = truncate(raw.decode())
    except UnicodeDecodeError:
        # A writer may cut a long value within a character, and Spark allows strings that are not UTF-8.
        return None
    return None if shortened is None else stats_json.string_literal(shortened)


def may_be_wide_differences(error: Exception, footer: pq.FileMetaData, columns: Collection[str] | None = None) -> bool:
    """Returns whether Arrow may have failed because of `WIDE_DIFFERENCES`, and not because of the storage.

    Args:
        error: an ArrowException, or an OSError, which has a number if the storage failed.
        footer: the file's footer; it need not be checked.
        columns: the names of the columns to look at, without the fields inside them; None for all columns.
    """
    if getattr(error, "errno", None):
        return False
    try:
        safe = checked(footer)
    except (pa.ArrowException, OSError):
        return False
    groups = (safe.row_group(at) for at in range(safe.num_row_groups))
    chunks = (group.column(at) for group in groups for at in range(safe.num_columns))
    return any(
        chunk.physical_type == "INT32"
        and "DELTA_BINARY_PACKED" in chunk.encodings
        and (columns is None or chunk.path_in_schema.partition(".")[0] in columns)
        for chunk in chunks
    )
