"""Finds the exact minimum and maximum of a column in the log.

Bounds may be wider than the values, which is correct for skipping and wrong for an answer. So only bounds of files that
this engine wrote (`statistics.TRUSTED`), without a deletion vector and not marked as wide (`tightBounds`), are used. A
timestamp, which the log truncates to milliseconds, is read from the footers of the few files that may have it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, Final, Literal, TypeAlias, get_args

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.silt.engine.kernel.files import footers, stats_json
from dbt.adapters.silt.engine.kernel.files.bounds import Bounds, column_bounds
from dbt.adapters.silt.engine.kernel.files.data_files import located
from dbt.adapters.silt.engine.kernel.files.footer_check import read_footer
from dbt.adapters.silt.engine.kernel.files.statistics import are_trusted
from dbt.adapters.silt.engine.kernel.files.stats_json import utf16_length
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.storage.store import ObjectMissing, Store
from dbt.adapters.silt.engine.kernel.table import value_order
from dbt.adapters.silt.engine.kernel.table.expressions import Column, Value
from dbt.adapters.silt.engine.kernel.table.paths import decode_path
from dbt.adapters.silt.engine.kernel.table.schema import DecimalType

End: TypeAlias = Literal["min", "max"]

_MOST_FOOTERS: Final = 32
_OF_WHOLE_FILES: Final[Mapping[stats_json.Statistic, value_order.ValueOrder | None]] = {
    stats_json.NUM_RECORDS: None,
    stats_json.TIGHT: value_order.Booleans(),
}
_MILLISECOND = 1_000
_EPOCH = datetime(1970, 1, 1)


@dataclass(frozen=True)
class Extreme:
    """The minimum or maximum of a column; None if no row has a value."""

    value: Value | None


def extreme(store: Store, snapshot: Snapshot, files: pa.Table, name: str, end: End) -> Extreme | None:
    """Returns the minimum or maximum of a column in the files' rows, or None if the log is not exact.

    Args:
        files: rows of `snapshot.files`.
        name: the name of a top-level column.

    Raises:
        ExternalPathError, SymbolicLinkError: if a file whose footer is needed has a location that is not allowed.
    """
    field = snapshot.schema.field(name)
    column = Column((name,))
    known = None if field is None else column_bounds(files, snapshot.metadata, [column]).get(column)
    if field is None or known is None or known.order is None or not _are_whole(files):
        return None
    with_values = _as_mask(known.may_be_value, files.num_rows)
    bounds = _bounds(known, end, files.num_rows)
    if len(bounds) == 0:
        return Extreme(None)
    if bounds.null_count or isinstance(known.order, value_order.Doubles):
        return None
    outermost = _outermost(bounds, end)
    if isinstance(known.order, value_order.Timestamps):
        if field.name in snapshot.partition_columns:
            return None
        candidates = files.filter(with_values).filter(_may_be(bounds, outermost, end))
        outermost = _by_footers(store, candidates, field.physical_name, end)
    return _as_extreme(known.order, outermost, snapshot, field.type)


def extremes(snapshot: Snapshot, files: pa.Table, names: Iterable[str]) -> dict[tuple[str, End], Extreme]:
    """Returns the minima and maxima of columns of which the log alone is exact; it never is of timestamps and floats.

    The statistics of the files are read once.

    Args:
        files: rows of `snapshot.files`.
        names: the names of top-level columns.
    """
    if not _are_whole(files):
        return {}
    found: dict[tuple[str, End], Extreme] = {}
    for column, known in column_bounds(files, snapshot.metadata, [Column((name,)) for name in names]).items():
        field = snapshot.schema.require(column.parts[0])
        if known.order is None or isinstance(known.order, value_order.Doubles | value_order.Timestamps):
            continue
        for end in get_args(End):
            bounds = _bounds(known, end, files.num_rows)
            of_rows: Extreme | None = Extreme(None)
            if len(bounds):
                outermost = None if bounds.null_count else _outermost(bounds, end)
                of_rows = _as_extreme(known.order, outermost, snapshot, field.type)
            if of_rows is not None:
                found[field.name, end] = of_rows
    return found


def _bounds(known: Bounds, end: End, length: int) -> pa.Array:
    """Returns the bounds of the files with values."""
    return (known.minimum if end == "min" else known.maximum).filter(_as_mask(known.may_be_value, length))


def _outermost(bounds: pa.Array, end: End) -> Any:
    return (pc.min if end == "min" else pc.max)(bounds).as_py()


def _are_whole(files: pa.Table) -> bool:
    """Returns whether every file has rows, and exact bounds of them."""
    if files.num_rows == 0:
        return True
    if files["deletion_vector"].null_count < files.num_rows or not pc.all(are_trusted(files)).as_py():
        return False
    found = stats_json.read(files["stats"].combine_chunks(), _OF_WHOLE_FILES)
    has_rows = pc.fill_null(pc.greater(found[stats_json.NUM_RECORDS], 0), False)
    return bool(pc.all(pc.and_(has_rows, pc.fill_null(found[stats_json.TIGHT], True))).as_py())


def _as_mask(may: Any, length: int) -> pa.Array:
    return may if isinstance(may, pa.Array) else pa.array([may.as_py()] * length, pa.bool_())


def _may_be(bounds: pa.Array, outermost: int, end: End) -> pa.Array:
    """Returns for each file whether its extreme, which the log truncates to milliseconds, may be the outermost."""
    if end == "min":
        return pc.less_equal(bounds, outermost + _MILLISECOND)
    return pc.greater_equal(bounds, outermost - _MILLISECOND)


def _by_footers(store: Store, files: pa.Table, physical_name: str, end: End) -> int | None:
    """Returns the outermost microsecond in the files' footers, or None if a footer lacks it or there are too many."""
    if files.num_rows > _MOST_FOOTERS:
        return None
    found = [_of_footer(store, decode_path(path), physical_name, end) for path in files["path"].to_pylist()]
    known = [value for value in found if value is not None]
    if len(known) < len(found):
        return None
    return (min if end == "min" else max)(known)


def _of_footer(store: Store, path: str, physical_name: str, end: End) -> int | None:
    where, own = located(store, path)
    try:
        with where.open_input(own) as source:
            chunks = footers.read(read_footer(source), [(physical_name,)]).get((physical_name,))
    except (ObjectMissing, pa.ArrowException, OSError):
        return None  # a reader of the rows gets the error
    if chunks is None or not chunks.complete or not pa.types.is_timestamp(chunks.arrow_type):
        return None
    raw = chunks.minimum if end == "min" else chunks.maximum
    return raw if isinstance(raw, int) and chunks.arrow_type.unit == "us" else None


def _as_extreme(order: value_order.ValueOrder, form: Any, snapshot: Snapshot, data_type: Any) -> Extreme | None:
    """Converts a value from its order's form to the column's type."""
    if form is None:
        return None
    if isinstance(order, value_order.Strings):
        # A string of the maximum length may be truncated.
        return Extreme(form) if utf16_length(form) < snapshot.properties.string_prefix_length else None
    if isinstance(order, value_order.Timestamps):
        return _moment(form, order.zoned)
    if isinstance(order, value_order.Dates):
        day = _EPOCH.toordinal() + form
        return Extreme(date.fromordinal(day)) if 1 <= day <= date.max.toordinal() else None
    if isinstance(order, value_order.Decimals) and isinstance(data_type, DecimalType):
        return Extreme(Decimal(order.text(form, data_type.scale)))
    return Extreme(int(form))


def _moment(microseconds: int, zoned: bool) -> Extreme | None:
    try:
        moment = _EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:
        return None
    return Extreme(moment.replace(tzinfo=timezone.utc) if zoned else moment)
