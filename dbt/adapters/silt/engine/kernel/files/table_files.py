"""TableFiles: a table's active files; statistics of a large checkpoint's files are read when they are needed.

The JSON strings of a million files take hundreds of megabytes, but a predicate needs the bounds of a few columns only.
KeptStatistics therefore keeps the checkpoint's Parquet file, and reads it column by column.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from dbt.adapters.silt.engine.kernel.files import stats_json
from dbt.adapters.silt.engine.kernel.files.bounded_parquet import BoundedParquet, stats_texts
from dbt.adapters.silt.engine.kernel.files.stats_json import Statistic
from dbt.adapters.silt.engine.kernel.table import active_files, value_order
from dbt.adapters.silt.engine.kernel.table.actions import AddFile
from dbt.adapters.silt.engine.kernel.table.active_files import FILES

Found: TypeAlias = dict[Statistic, pa.Array]
Read: TypeAlias = Callable[[Mapping[Statistic, value_order.ValueOrder | None]], Found]

_MOST_COLUMNS: Final = 32
"""The number of statistics to cache after a read: a run reads the same columns again."""

_ACCEPTS: Sequence[tuple[type[value_order.ValueOrder], Callable[[pa.DataType], bool]]] = (
    (value_order.Booleans, pt.is_boolean),
    (value_order.Doubles, pt.is_floating),
    (value_order.Decimals, pt.is_decimal128),
    (value_order.Strings, lambda kind: pt.is_string(kind) or pt.is_large_string(kind)),
    (value_order.Dates, pt.is_date32),
)
STATS: Final = "stats"
ROW: Final = "row"
WITHOUT_STATISTICS: Final = pa.schema([each for each in FILES if each.name != STATS])
EARLY: Final = WITHOUT_STATISTICS.append(pa.field(ROW, pa.int32()))
"""The schema of files with separate statistics; `row` is the number of their row in these statistics."""
_NO_EARLY: Final = EARLY.empty_table()


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

    def read(self, requested: Mapping[Statistic, value_order.ValueOrder | None]) -> Found:
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

    def _read(self, requested: Mapping[Statistic, value_order.ValueOrder | None]) -> Found:
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


def _has_texts(file: BoundedParquet) -> bool:
    """Returns whether any file of the checkpoint has JSON statistics; otherwise they are in columns or missing."""
    member = _member(file.schema.field(AddFile.key).type, ("stats",))
    if member is None or _member(file.schema.field(AddFile.key).type, ("stats_parsed",)) is None:
        return member is not None
    return any(len(rows) > rows.field(0).null_count for rows in action_batches(file, AddFile.key, ["stats"]))


def _opened(part: pa.Buffer) -> BoundedParquet:
    return BoundedParquet(pa.BufferReader(part))


def _texts(file: BoundedParquet) -> Iterator[pa.Array]:
    if _has_texts(file):
        for rows in action_batches(file, AddFile.key, ["stats"]):
            texts = rows.field(0).cast(pa.string())
            texts.validate(full=True)
            yield texts
    elif _member(file.schema.field(AddFile.key).type, ("stats_parsed",)) is not None:
        yield from (stats_texts(rows.field(0)) for rows in action_batches(file, AddFile.key, ["stats_parsed"]))
    else:
        yield from (pa.nulls(len(rows), pa.string()) for rows in action_batches(file, AddFile.key, ["path"]))


def _is_typed(file: BoundedParquet, statistic: Statistic, order: value_order.ValueOrder | None) -> bool:
    """Returns whether the file has the statistic as a column with a type whose values equal the values in JSON."""
    kind = _member(file.schema.field(AddFile.key).type, ("stats_parsed", *statistic))
    if kind is None or order is None:
        return kind is not None and pt.is_integer(kind)
    if isinstance(order, value_order.Timestamps):
        return pt.is_timestamp(kind) and kind.unit == "us" and (kind.tz is not None) == order.zoned
    accepts = next((accepts for known, accepts in _ACCEPTS if isinstance(order, known)), pt.is_integer)
    return bool(accepts(kind))


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


def _typed(file: BoundedParquet, requested: Mapping[Statistic, value_order.ValueOrder | None]) -> Iterator[Found]:
    for rows in action_batches(file, AddFile.key, [".".join(("stats_parsed", *name)) for name in requested]):
        yield {
            name: _json_form(pc.struct_field(rows, ["stats_parsed", *name]), order) for name, order in requested.items()
        }


def _json_form(values: pa.Array, order: value_order.ValueOrder | None) -> pa.Array:
    """Converts the values to the form in which their JSON strings would be read."""
    values.validate(full=True)
    if isinstance(order, value_order.Timestamps):
        return values
    if isinstance(order, value_order.Doubles):
        return pc.if_else(pc.is_finite(values), values, pa.scalar(None, values.type)).cast(pa.float64())
    return values.cast(pa.int64() if order is None else order.json_form)


def _joined(batches: Sequence[Found], requested: Mapping[Statistic, value_order.ValueOrder | None]) -> Found:
    return {name: pa.concat_arrays([batch[name] for batch in batches]) for name in requested}


@dataclass(frozen=True, eq=False)
class TableFiles:
    """The active files of a table at a version.

    Args:
        late: files with their statistics, schema `active_files.FILES`.
        early: other files, schema `EARLY`.
        statistics: the statistics of the early files.
    """

    late: pa.Table
    early: pa.Table = field(default_factory=lambda: _NO_EARLY)
    statistics: KeptStatistics | None = None

    @property
    def num_rows(self) -> int:
        return int(self.early.num_rows + self.late.num_rows)

    @functools.cached_property
    def table(self) -> pa.Table:
        """All files with their statistics, schema `active_files.FILES`.

        Raises:
            CorruptCheckpointError: if the statistics cannot be read.
        """
        return self.whole()

    def whole(self) -> pa.Table:
        """Returns the same as `table`, without caching it."""
        return self.late if self.early.num_rows == 0 else self.chosen(None, None)

    def without_statistics(self) -> pa.Table:
        """Returns all files, schema `WITHOUT_STATISTICS`, in the order of `table`."""
        if self.early.num_rows == 0:
            return self.late.select(WITHOUT_STATISTICS.names)
        return pa.concat_tables([part.select(WITHOUT_STATISTICS.names) for part in (self.early, self.late)])

    @functools.cached_property
    def content(self) -> str:
        """A hash of the files and their deletion vectors."""
        files = self.without_statistics()
        columns = (files[name].to_pylist() for name in ("path", "size", "deletion_vector"))
        return hashlib.sha256(repr(sorted(map(repr, zip(*columns, strict=True)))).encode()).hexdigest()[:16]

    def chosen(self, early: pa.Array | None, late: pa.Array | None) -> pa.Table:
        """Returns selected files with their statistics, schema `active_files.FILES`. Raises as `table`.

        Args:
            early: the selection of early files, as Booleans; None for all.
            late: the selection of late files, likewise.
        """
        of_early = self.early if early is None else self.early.filter(early)
        of_late = self.late if late is None else self.late.filter(late)
        return pa.concat_tables([*self._with_texts(of_early), of_late])

    def with_keys(self, keys: Collection[str]) -> pa.Table:
        """Returns the files with these `active_files.file_key`s, schema `active_files.FILES`. Raises as `table`."""
        requested = pa.array(sorted(keys), pa.string())
        early, late = (pc.is_in(active_files.keys_of(part), value_set=requested) for part in (self.early, self.late))
        return self.chosen(early, late)

    def changed(self, gone: Collection[str], added: pa.Table) -> TableFiles:
        """Removes the files with these `active_files.file_key`s, and adds files of schema `active_files.FILES`."""
        late = active_files.appended(active_files.without(self.late, gone), added)
        return replace(self, early=active_files.without(self.early, gone), late=late)

    def early_statistics(self, requested: Mapping[Statistic, value_order.ValueOrder | None]) -> Found:
        """Reads the statistics of the early files in the form of `stats_json.read`. Raises as `table`."""
        if self.statistics is None:
            return stats_json.read(pa.array([], pa.string()), requested)
        rows = self.early[ROW].combine_chunks()
        return {
            name: values if len(values) == len(rows) else values.take(rows)
            for name, values in self.statistics.read(requested).items()
        }

    def _with_texts(self, files: pa.Table) -> Iterator[pa.Table]:
        """Yields tables of the given early files with their statistics, in the same order."""
        if self.statistics is None or files.num_rows == 0:
            return
        start, done, numbers = 0, 0, files[ROW].combine_chunks()
        for texts in self.statistics.texts():
            end = start + len(texts)
            chosen = numbers.slice(done, pc.sum(pc.less(numbers.slice(done, len(texts)), end)).as_py() or 0)
            if len(chosen):
                rows = files.slice(done, len(chosen)).select(WITHOUT_STATISTICS.names)
                own = texts if len(chosen) == len(texts) else texts.take(pc.subtract(chosen, start))
                yield rows.add_column(FILES.get_field_index(STATS), FILES.field(STATS), pa.chunked_array([own]))
            start, done = end, done + len(chosen)
            if done == len(numbers):
                return
