"""Derives bounds of columns from statistics and partition values, for many files at once.

Bounds are conservative: an uncertain bound is null, which means unknown. Bounds may be wider than the values
(truncated strings and timestamps, rows deleted by a deletion vector), never narrower.

In SQL, -0.0 equals 0.0, and NaN equals itself and is greater than every number. In Parquet's dictionaries and Bloom
filters, -0.0 differs from 0.0, and the bounds of most writers leave NaN out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from dbt.adapters.silt.engine.kernel.files import stats_json
from dbt.adapters.silt.engine.kernel.files.statistics import are_trusted
from dbt.adapters.silt.engine.kernel.files.table_files import Read
from dbt.adapters.silt.engine.kernel.table import value_order
from dbt.adapters.silt.engine.kernel.table.actions import Metadata
from dbt.adapters.silt.engine.kernel.table.expressions import Column
from dbt.adapters.silt.engine.kernel.table.schema import (
    ArrayType,
    DataType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)
from dbt.adapters.silt.engine.kernel.table.type_widening import type_changes

Path: TypeAlias = tuple[str, ...]

_MILLISECOND = 1_000
_MINUTE = 60_000_000
_DAY = 86_400_000_000
# Before this time some zones' offsets from UTC included seconds, which Spark 3.2 and 3.3 omitted from written offsets.
_WHOLE_MINUTE_ZONES = 94_694_400_000_000
HAS_ZONE = r"(?:Z|[+-]\d{2}:?\d{2}(?::?\d{2})?)$"

_FLOATS = (PrimitiveType("float"), PrimitiveType("double"))


@dataclass(frozen=True)
class Bounds:
    """The bounds of a column, with an entry per file.

    Attributes:
        order: the order of its values, if they can be compared.
        minimum: a lower bound of the non-null values; null if unknown.
        maximum: an upper bound of the non-null values; null if unknown.
        may_be_null: false if certainly no row is null.
        may_be_value: false if certainly every row is null.
    """

    order: value_order.ValueOrder | None
    minimum: pa.Array
    maximum: pa.Array
    may_be_null: pa.Array
    may_be_value: pa.Array


@dataclass(frozen=True)
class _Leaf:
    """A column with statistics: its path by physical names, its type and the order of its values, if any."""

    path: Path
    type: DataType
    order: value_order.ValueOrder | None


def column_bounds(
    files: pa.Table, metadata: Metadata, columns: Iterable[Column], read: Read | None = None
) -> dict[Column, Bounds]:
    """Returns the bounds of these columns in each file, for the columns that have bounds.

    Args:
        files: a table with the columns `partition_values`, `stats` and `tags` of `active_files.FILES`.
        read: reads the files' statistics, if `stats` is not a column of the table.
    """
    schema = StructType.from_json(metadata.schema_string)
    partitioning = {name.lower() for name in metadata.partition_columns}
    found: dict[Column, Bounds] = {}
    from_statistics: dict[Column, _Leaf] = {}
    for column in set(columns):
        fields = _resolved(schema, column)
        if not fields or isinstance(fields[-1].type, StructType):
            continue
        if len(fields) == 1 and fields[0].name.lower() in partitioning:
            found[column] = _partition_bounds(
                files, fields[0].physical_name, value_order.value_order_of(fields[0].type)
            )
        else:
            path = tuple(field.physical_name for field in fields)
            from_statistics[column] = _Leaf(path, fields[-1].type, _order_in_statistics(fields[-1]))
    return {**found, **_statistics_bounds(files, from_statistics, read)}


def _resolved(schema: StructType, column: Column) -> list[StructField]:
    """Returns the fields on the column's path, or an empty list if the column does not exist."""
    fields: list[StructField] = []
    inside: object = schema
    for part in column.parts:
        field = inside.field(part) if isinstance(inside, StructType) else None
        if field is None:
            return []
        fields.append(field)
        inside = field.type
    return fields


def _order_in_statistics(field: StructField) -> value_order.ValueOrder | None:
    order = value_order.value_order_of(field.type)
    return value_order.WidenedFloats() if isinstance(order, value_order.Doubles) and _was_float(field) else order


def _partition_bounds(files: pa.Table, name: str, order: value_order.ValueOrder | None) -> Bounds:
    texts = pc.map_lookup(_whole(files["partition_values"]), pa.scalar(name), "first")
    texts = pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)  # an empty string means null
    may_be_null, may_be_value = pc.is_null(texts), pc.is_valid(texts)
    if order is None:
        return _without_values(len(texts), may_be_null, may_be_value)
    distinct = texts.dictionary_encode()
    low, high = _from_texts(order, distinct.dictionary, truncated_by=0)
    return Bounds(order, low.take(distinct.indices), high.take(distinct.indices), may_be_null, may_be_value)


def _statistics_bounds(files: pa.Table, columns: Mapping[Column, _Leaf], read: Read | None) -> dict[Column, Bounds]:
    if not columns:
        return {}
    wanted: dict[stats_json.Statistic, value_order.ValueOrder | None] = {stats_json.NUM_RECORDS: None}
    for leaf in columns.values():
        wanted[("nullCount", *leaf.path)] = None
        if leaf.order is not None:
            wanted[("minValues", *leaf.path)] = wanted[("maxValues", *leaf.path)] = leaf.order
    found = stats_json.read(_whole(files["stats"]), wanted) if read is None else read(wanted)
    trusted = are_trusted(files)
    return {column: _of_one_column(found, leaf, trusted) for column, leaf in columns.items()}


def _of_one_column(found: Mapping[stats_json.Statistic, pa.Array], leaf: _Leaf, trusted: pa.Array) -> Bounds:
    path, order = leaf.path, leaf.order
    nulls, rows = found[("nullCount", *path)], found[stats_json.NUM_RECORDS]
    # Only the counts 0 and all rows are used: a deletion vector makes every other count uncertain.
    may_be_null = pc.fill_null(pc.not_equal(nulls, 0), True)
    may_be_value = pc.fill_null(pc.not_equal(nulls, rows), True)
    if isinstance(leaf.type, ArrayType | MapType):
        # Early delta-rs counted the null elements of lists.
        may_be_value = pc.or_(may_be_value, pc.invert(trusted))
    if order is None:
        return _without_values(len(rows), may_be_null, may_be_value)
    low, high = found[("minValues", *path)], found[("maxValues", *path)]
    if isinstance(order, value_order.Timestamps):
        low, _ = _from_texts(order, low, truncated_by=_MILLISECOND)
        _, high = _from_texts(order, high, truncated_by=_MILLISECOND)
    else:
        low, high = order.least(low), order.greatest(high)
    low, high = _reliable(order, low, high, trusted)
    return Bounds(order, low, high, may_be_null, may_be_value)


def _reliable(
    order: value_order.ValueOrder, low: pa.Array, high: pa.Array, trusted: pa.Array
) -> tuple[pa.Array, pa.Array]:
    """Removes bounds that some other writers compute incorrectly.

    delta-rs ignores NaN in a maximum, and converts decimals through a 64-bit float. Early delta-spark appended U+FFFD
    to a shortened maximum, which is not above the characters after U+FFFD.
    """
    nothing = pa.scalar(None, low.type)
    if isinstance(order, value_order.Doubles):
        return low, pc.if_else(trusted, high, nothing)
    if isinstance(order, value_order.Decimals):
        exact = (pc.or_(trusted, pc.less(pc.abs(bound), order.float_limit)) for bound in (low, high))
        low, high = (pc.if_else(sure, bound, nothing) for sure, bound in zip(exact, (low, high), strict=True))
    if isinstance(order, value_order.Strings):
        high = pc.replace_substring_regex(high, "\ufffd$", "\U0010ffff")
    return low, high


def _from_texts(order: value_order.ValueOrder, texts: pa.Array, truncated_by: int) -> tuple[pa.Array, pa.Array]:
    """Returns the lowest and the greatest value that each string may represent.

    Args:
        truncated_by: the possible truncation of a timestamp, in microseconds.
    """
    if pt.is_timestamp(texts.type):
        return _from_moments(texts.cast(pa.int64()), order, truncated_by)
    values = order.from_texts(texts)
    if not isinstance(order, value_order.Timestamps):
        return values, values
    below = above = pa.scalar(0, pa.int64())
    if order.zoned:
        has_zone = pc.fill_null(pc.match_substring_regex(texts, HAS_ZONE), False)
        is_old = pc.fill_null(pc.less(values, _WHOLE_MINUTE_ZONES), False)
        # A timestamp without a zone is the writer's local time, in an unknown zone.
        below = above = pc.if_else(has_zone, pc.if_else(is_old, _MINUTE, 0), _DAY)
    return _widened(values, below, pc.add(above, max(truncated_by - 1, 0)))


def _from_moments(values: pa.Array, order: value_order.ValueOrder, truncated_by: int) -> tuple[pa.Array, pa.Array]:
    """Does the same as `_from_texts` for microseconds."""
    is_old = pc.fill_null(pc.less(values, _WHOLE_MINUTE_ZONES), False)
    around = pc.if_else(is_old, _MINUTE, 0) if getattr(order, "zoned", False) else pa.scalar(0, pa.int64())
    return _widened(values, around, pc.add(around, max(truncated_by - 1, 0)))


def _widened(values: pa.Array, below: pa.Array, above: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Returns bounds that are this much lower and higher, up to the first and the last timestamp of Spark."""
    low, high = pc.subtract(values, below), pc.add(values, above)
    # Arrow's sums wrap around.
    return (
        pc.if_else(pc.less_equal(low, values), low, pa.scalar(-(1 << 63), pa.int64())),
        pc.if_else(pc.greater_equal(high, values), high, pa.scalar((1 << 63) - 1, pa.int64())),
    )


def _without_values(length: int, may_be_null: pa.Array, may_be_value: pa.Array) -> Bounds:
    nothing = pa.nulls(length)
    return Bounds(None, nothing, nothing, may_be_null, may_be_value)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks()


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


def _was_float(field: StructField) -> bool:
    """Returns whether some files may store the column as `float` although its type is now wider."""
    return any(getattr(change.from_type, "name", "") == "float" for change in type_changes(field))
