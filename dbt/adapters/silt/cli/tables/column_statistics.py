"""Computes a table's column statistics from its log: minimum, maximum and nulls over all files.

Reads use these statistics to skip files. A minimum and a maximum are bounds: they may be wider than the values, if
strings were shortened, times cut to the millisecond, or rows deleted by a deletion vector.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.silt.engine.kernel.files import stats_json
from dbt.adapters.silt.engine.kernel.files.bounds import Bounds, column_bounds
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.table.expressions import Column
from dbt.adapters.silt.engine.kernel.table.schema import DataType, DecimalType, StructField, StructType
from dbt.adapters.silt.engine.kernel.table.value_order import Booleans, Dates, Decimals, Doubles, Timestamps, ValueOrder

_EPOCH: Final = datetime(1970, 1, 1)


@dataclass(frozen=True)
class ColumnStatistics:
    """The statistics of a column, or of a member of a struct.

    Attributes:
        name: with dots between a struct and its member.
        field: the field in the schema.
        minimum, maximum: bounds of the values, as JSON values, if every file has statistics, and values exist.
        nulls: the number of nulls, including rows deleted by deletion vectors, if every file has statistics.
    """

    name: str
    field: StructField
    minimum: Any = None
    maximum: Any = None
    nulls: int | None = None


def column_statistics(snapshot: Snapshot) -> list[ColumnStatistics]:
    """Returns every column and every member of a struct, in the schema's order."""
    fields = list(_fields(snapshot.schema, ()))
    leaves = [path for path, _, _ in fields]
    files = snapshot.files.combine_chunks()
    bounds = column_bounds(files, snapshot.metadata, [Column(path) for path in leaves])
    nulls = _null_counts(files, [physical for _, physical, _ in fields])
    partitioning = {name.lower() for name in snapshot.partition_columns}
    return [
        ColumnStatistics(
            ".".join(path),
            member,
            *ends(bounds.get(Column(path)), member.type),
            _partition_nulls(files, bounds[Column(path)])
            if len(path) == 1 and path[0].lower() in partitioning
            else nulls[physical],
        )
        for path, physical, member in fields
    ]


def _fields(
    schema: StructType, above: tuple[str, ...], physical_above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...], StructField]]:
    """Yields each field with its path by names and by physical names."""
    for member in schema:
        path, physical = (*above, member.name), (*physical_above, member.physical_name)
        yield path, physical, member
        if isinstance(member.type, StructType):
            yield from _fields(member.type, path, physical)


def _null_counts(files: pa.Table, paths: list[tuple[str, ...]]) -> dict[tuple[str, ...], int | None]:
    above = {path[:-1] for path in paths}
    leaves = [path for path in paths if path not in above]
    found = stats_json.read(files["stats"].combine_chunks(), {("nullCount", *path): None for path in leaves})
    counts = {path: found[("nullCount", *path)] for path in leaves}
    return {path: _sum(counts[path]) if path in counts else None for path in paths}


def _partition_nulls(files: pa.Table, bounds: Bounds) -> int | None:
    """Counts the rows whose partition value is null."""
    of_nulls = files.filter(bounds.may_be_null)
    return 0 if of_nulls.num_rows == 0 else _sum(stats_json.num_records(of_nulls))


def _sum(counts: pa.Array) -> int | None:
    return None if counts.null_count else pc.sum(counts).as_py() or 0


def ends(bounds: Bounds | None, data_type: DataType) -> tuple[Any, Any]:
    """Returns the lowest and the highest bound over the files that may have a value."""
    if bounds is None or bounds.order is None:
        return None, None
    may = bounds.may_be_value
    wanted = may if isinstance(may, pa.Array) else pa.array([may.as_py()] * len(bounds.minimum), pa.bool_())
    low, high = bounds.minimum.filter(wanted), bounds.maximum.filter(wanted)
    least = None if low.null_count else pc.min(low).as_py()
    greatest = None if high.null_count else pc.max(high).as_py()
    return _value(least, bounds.order, data_type), _value(greatest, bounds.order, data_type)


def _value(form: Any, order: ValueOrder, data_type: DataType) -> Any:
    """Returns the value of a comparable form as JSON: a decimal, a day and a time as text."""
    if form is None:
        return None
    if isinstance(order, Doubles):
        return form if math.isfinite(form) else str(form)
    if isinstance(order, Booleans):
        return bool(form)
    if isinstance(order, Decimals) and isinstance(data_type, DecimalType):
        return order.text(form, data_type.scale)
    if isinstance(order, Dates):
        day = _EPOCH.toordinal() + form
        return date.fromordinal(day).isoformat() if 1 <= day <= date.max.toordinal() else None
    if isinstance(order, Timestamps):
        return _moment(form, order.zoned)
    return form


def _moment(microseconds: int, zoned: bool) -> str | None:
    try:
        moment = _EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:
        return None
    return moment.isoformat(sep=" ", timespec="milliseconds") + ("Z" if zoned else "")
