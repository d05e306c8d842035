"""Keeps the statistics of a checkpoint's files in the form of its Parquet file, and reads them column by column.

The JSON strings of a million files take hundreds of megabytes, but a predicate needs the bounds of a few columns only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from dbt.adapters.silt.engine.kernel.files import stats_json
from dbt.adapters.silt.engine.kernel.files.bounded_parquet import BoundedParquet
from dbt.adapters.silt.engine.kernel.files.stats_json import Statistic
from dbt.adapters.silt.engine.kernel.files.stats_parsed_read import stats_texts
from dbt.adapters.silt.engine.kernel.table.actions import AddFile
from dbt.adapters.silt.engine.kernel.table.value_order import (
    Booleans,
    Dates,
    Decimals,
    Doubles,
    Strings,
    Timestamps,
    ValueOrder,
)

Found: TypeAlias = dict[Statistic, pa.Array]
Read: TypeAlias = Callable[[Mapping[Statistic, ValueOrder | None]], Found]

_MOST_COLUMNS: Final = 32
"""The number of statistics to cache after a read: a run reads the same columns again."""


class KeptStatistics:
    """The statistics of the files in some parts of a checkpoint, in the order of the parts' rows. Thread-safe.

    Args:
        parts: the content of Parquet files.
        corrupt: the context that converts a read failure to an error that names the checkpoint.
    """

    def __init__(self, parts: Sequence[pa.Buffer], corrupt: Callable[[], AbstractContextManager[None]]) -> None:
        self._parts = tuple(parts)
        self._corrupt = corrupt
        self._known: Found = {}

    def read(self, requested: Mapping[Statistic, ValueOrder | None]) -> Found:
        """Reads the statistics as `stats_json.read` returns them, except that timestamps may be Arrow timestamps.

        Raises:
            CorruptCheckpointError: if the statistics cannot be read.
        """
        known = self._known
        missing = {statistic: order for statistic, order in requested.items() if statistic not in known}
        if missing:
            with self._corrupt():
                known = self._remembered({**known, **self._read(missing)})
        return {statistic: known[statistic] for statistic in requested}

    def texts(self) -> Iterator[pa.Array]:
        """Yields the JSON strings of all files in batches. Raises as `read`."""
        with self._corrupt():
            for part in self._parts:
                yield from _texts(_opened(part))

    def _remembered(self, found: Found) -> Found:
        self._known = dict(list(found.items())[-_MOST_COLUMNS:])
        return found

    def _read(self, requested: Mapping[Statistic, ValueOrder | None]) -> Found:
        files = [_opened(part) for part in self._parts]
        typed = {
            name: order for name, order in requested.items() if all(_is_typed(file, name, order) for file in files)
        }
        found = _joined([batch for file in files for batch in _typed(file, typed)], typed) if typed else {}
        # A statistic whose column is empty may still be in the JSON strings.
        unknown = {name: order for name, order in requested.items() if name not in found or _is_empty(found[name])}
        if unknown:
            found |= _joined([stats_json.read(texts, unknown) for file in files for texts in _texts(file)], unknown)
        return found


def action_batches(file: BoundedParquet, action: str, members: Sequence[str]) -> Iterator[pa.StructArray]:
    """Yields, in batches, some members of all actions of a kind."""
    for batch in file.batches([f"{action}.{name}" for name in members]):
        rows = batch[action]
        yield rows.drop_null() if rows.null_count else rows


def has_texts(file: BoundedParquet) -> bool:
    """Returns whether any file of the checkpoint has JSON statistics; otherwise they are in columns or missing."""
    member = _member(file.schema.field(AddFile.key).type, ("stats",))
    if member is None or _member(file.schema.field(AddFile.key).type, ("stats_parsed",)) is None:
        return member is not None
    return any(len(rows) > rows.field(0).null_count for rows in action_batches(file, AddFile.key, ["stats"]))


def _opened(part: pa.Buffer) -> BoundedParquet:
    return BoundedParquet(pa.BufferReader(part))


def _texts(file: BoundedParquet) -> Iterator[pa.Array]:
    if has_texts(file):
        for rows in action_batches(file, AddFile.key, ["stats"]):
            texts = rows.field(0).cast(pa.string())
            texts.validate(full=True)
            yield texts
    elif _member(file.schema.field(AddFile.key).type, ("stats_parsed",)) is not None:
        yield from (stats_texts(rows.field(0)) for rows in action_batches(file, AddFile.key, ["stats_parsed"]))
    else:
        yield from (pa.nulls(len(rows), pa.string()) for rows in action_batches(file, AddFile.key, ["path"]))


def _is_typed(file: BoundedParquet, statistic: Statistic, order: ValueOrder | None) -> bool:
    """Returns whether the file has the statistic as a column with a type whose values equal the values in JSON."""
    kind = _member(file.schema.field(AddFile.key).type, ("stats_parsed", *statistic))
    if kind is None or order is None:
        return kind is not None and pt.is_integer(kind)
    if isinstance(order, Timestamps):
        return pt.is_timestamp(kind) and kind.unit == "us" and (kind.tz is not None) == order.zoned
    accepts = next((accepts for known, accepts in _ACCEPTS if isinstance(order, known)), pt.is_integer)
    return bool(accepts(kind))


_ACCEPTS: Sequence[tuple[type[ValueOrder], Callable[[pa.DataType], bool]]] = (
    (Booleans, pt.is_boolean),
    (Doubles, pt.is_floating),
    (Decimals, pt.is_decimal128),
    (Strings, lambda kind: pt.is_string(kind) or pt.is_large_string(kind)),
    (Dates, pt.is_date32),
)


def _is_empty(values: pa.Array) -> bool:
    return bool(values.null_count == len(values))


def _member(kind: pa.DataType, path: Sequence[str]) -> pa.DataType | None:
    """Returns the type of the member at a path of structs, if it exists."""
    for name in path:
        index = kind.get_field_index(name) if pt.is_struct(kind) else -1
        if index < 0:
            return None
        kind = kind.field(index).type
    return kind


def _typed(file: BoundedParquet, requested: Mapping[Statistic, ValueOrder | None]) -> Iterator[Found]:
    for rows in action_batches(file, AddFile.key, [".".join(("stats_parsed", *name)) for name in requested]):
        yield {
            name: _json_form(pc.struct_field(rows, ["stats_parsed", *name]), order) for name, order in requested.items()
        }


def _json_form(values: pa.Array, order: ValueOrder | None) -> pa.Array:
    """Converts the values to the form in which their JSON strings would be read."""
    values.validate(full=True)
    if isinstance(order, Timestamps):
        return values
    if isinstance(order, Doubles):
        return pc.if_else(pc.is_finite(values), values, pa.scalar(None, values.type)).cast(pa.float64())
    return values.cast(pa.int64() if order is None else order.json_form)


def _joined(batches: Sequence[Found], requested: Mapping[Statistic, ValueOrder | None]) -> Found:
    return {name: pa.concat_arrays([batch[name] for batch in batches]) for name in requested}
