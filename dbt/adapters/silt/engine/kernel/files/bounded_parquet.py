"""Reads columns of a checkpoint's Parquet file: refuses columns that would take far too much memory.

A string that a file stores once may be the value of every row: the decoded rows of a file of a few kilobytes can take
gigabytes. If that may happen, strings are first read dictionary-encoded, and measured.

The statistics columns (`stats_parsed`) become the JSON strings of `add.stats`, column by column; only values that need
JSON escapes, which Arrow does not support, are converted in Python.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pt

from dbt.adapters.silt.engine.kernel.files.page_bounds import PageBounds
from dbt.adapters.silt.engine.kernel.files.plain_types import BATCH_ROWS, plain

# The unit to read INT96 timestamps in: their Parquet type does not distinguish `timestamp` and `timestamp_ntz`, but no
# writer stores the latter in this unit. The specification requires statistics in milliseconds, rounded down.
INT96_UNIT: Final = "ms"

# PyArrow before 23 reads an INT96 timestamp before 1970 as a timestamp centuries later.
READS_INT96: Final = int(pa.__version__.partition(".")[0]) >= 23

_NEEDS_ESCAPE = r'["\\\x00-\x1f]'

MOST_DECODED: Final = 2 << 30
"""The maximum size of the decoded rows of a batch, and of all kept rows of a file, in bytes."""

_MOST_OF_A_COLUMN: Final = 512 << 20
"""The size in bytes of a column above which it is measured row by row."""

_FEW_ROWS: Final = 8_192
"""The number of rows up to which all strings are measured, which costs almost nothing."""

_VIEW_ROWS: Final = 256
"""The number of rows read at a time if some columns are list views, whose strings are not measured."""


def stats_texts(parsed: pa.Array) -> pa.Array:
    """Converts each row's statistics to a JSON string.

    Args:
        parsed: structs such as `{numRecords, minValues: {...}, maxValues: {...}, nullCount: {...}}`. A timestamp in
            milliseconds without a zone is a UTC timestamp that was stored as INT96 (see `INT96_UNIT`), and is omitted
            if PyArrow cannot read INT96.

    Returns:
        Strings, null for null rows. Null members are omitted, as in `add.stats`.
    """
    return _document(parsed)


def _document(structs: pa.Array) -> pa.Array:
    members = [_member(field.name, child) for field, child in zip(structs.type, structs.flatten(), strict=True)]
    # Each string begins with a comma, so that missing members add nothing; the first comma is removed.
    texts = [pc.fill_null(_between(",", member, ""), "") for member in members]
    joined = pc.binary_join_element_wise(*texts, "", "") if texts else pa.repeat(pa.scalar(""), len(structs))
    document = _between("{", pc.utf8_slice_codeunits(joined, start=1), "}")
    return pc.if_else(pc.is_valid(structs), document, pa.scalar(None, pa.string()))


def _member(name: str, values: pa.Array) -> pa.Array:
    return _between(json.dumps(name, ensure_ascii=False) + ":", _literal(values), "")


def _literal(values: pa.Array) -> pa.Array:
    kind = values.type
    if pt.is_struct(kind):
        return _document(values)
    if pt.is_null(kind):
        return values.cast(pa.string())
    if pt.is_floating(kind):
        return _float_literal(values)
    if pt.is_timestamp(kind):
        return _timestamp_literal(values)
    if pt.is_date(kind):
        return _between('"', values.cast(pa.string()), '"')
    if pt.is_string(kind) or pt.is_large_string(kind):
        return _string_literal(values.cast(pa.string()))
    if pt.is_integer(kind) or pt.is_decimal(kind) or pt.is_boolean(kind):
        return values.cast(pa.string())
    # The specification has no minimum or maximum for other types: a missing statistic keeps the file.
    return pa.nulls(len(values), pa.string())


def _float_literal(values: pa.Array) -> pa.Array:
    texts = values.cast(pa.string())
    special = pc.invert(pc.is_finite(values))
    names = pc.case_when(
        pc.make_struct(pc.is_nan(values), pc.greater(values, pa.scalar(0.0, values.type))),
        pa.scalar('"NaN"'),
        pa.scalar('"Infinity"'),
        pa.scalar('"-Infinity"'),
    )
    return pc.if_else(pc.is_valid(values), pc.if_else(special, names, texts), pa.scalar(None, pa.string()))


def _timestamp_literal(values: pa.Array) -> pa.Array:
    of_int96 = values.type.tz is None and values.type.unit == INT96_UNIT
    if of_int96 and not READS_INT96:
        return pa.nulls(len(values), pa.string())
    zone = "Z" if values.type.tz is not None or of_int96 else ""
    wall_clock = values.cast(pa.timestamp(values.type.unit)).cast(pa.string())
    return _between('"', pc.replace_substring(wall_clock, " ", "T", max_replacements=1), f'{zone}"')


def _string_literal(values: pa.Array) -> pa.Array:
    quoted = _between('"', values, '"')
    unsafe = pc.fill_null(pc.match_substring_regex(values, _NEEDS_ESCAPE), False)
    if not pc.any(unsafe).as_py():
        return quoted
    escaped = [json.dumps(value, ensure_ascii=False) for value in values.filter(unsafe).to_pylist()]
    return pc.replace_with_mask(quoted, unsafe, pa.array(escaped, pa.string()))


def _between(before: str, texts: pa.Array, after: str) -> pa.Array:
    return pc.binary_join_element_wise(before, texts, after, "")


class BoundedParquet:
    """A Parquet file that another program may have written. Closing it does not close its source.

    Args:
        source: a source that Arrow can read.

    Raises:
        pa.ArrowException, OSError: if it is not a Parquet file.
    """

    def __init__(self, source: Any) -> None:
        self._source = source
        self._bounds = PageBounds.of(source, by_pages=isinstance(source, pa.NativeFile))
        self._file = self._opened()
        self.metadata = self._file.metadata
        self.schema: pa.Schema = self._file.schema_arrow
        self._list_views = [path for member in self.schema for path in _list_views(member.type, member.name)]

    def batches(self, columns: Sequence[str]) -> Iterator[dict[str, pa.Array]]:
        """Yields the rows of columns in batches, by the outermost names, in types that Arrow can compute with.

        Args:
            columns: paths, with dots between a struct and its member.

        Raises:
            ValueError: if the rows take far more memory than a checkpoint's rows can.
            pa.ArrowException, OSError: if the rows cannot be read.
        """
        wanted = list(columns)
        self._measure(wanted)
        sizes = _Sizes(self.metadata.num_rows)
        # A batch across two row groups would have to be assembled from both.
        for group in range(self.metadata.num_row_groups):
            rows = min(
                _VIEW_ROWS if self._list_views else BATCH_ROWS, self._bounds.rows_at_once(group, frozenset(wanted))
            )
            for batch in self._file.iter_batches(rows, row_groups=[group], columns=wanted):
                sizes.add(batch, batch.nbytes)
                yield {name: plain(batch.column(name)) for name in batch.schema.names}

    def _measure(self, columns: Sequence[str]) -> None:
        """Reads strings dictionary-encoded, and checks the memory that they will take when decoded."""
        texts = self._unbounded_texts(columns)
        if not texts:
            return
        sizes = _Sizes(self.metadata.num_rows)
        with self._opened(texts) as file:
            for group in range(self.metadata.num_row_groups):
                rows = self._bounds.rows_at_once(group, frozenset(texts))
                for batch in file.iter_batches(rows, row_groups=[group], columns=texts):
                    sizes.add(batch, sum(map(_decoded_bytes, batch.columns)))

    def _unbounded_texts(self, columns: Sequence[str]) -> list[str]:
        """Returns the string columns whose decoded size has to be measured."""
        texts = [path for path in self._texts() if any(path == each or path.startswith(f"{each}.") for each in columns)]
        if not texts or self.metadata.num_rows <= _FEW_ROWS:
            return texts
        longest = [self._bounds.longest_texts(group, frozenset(texts)) for group in range(self.metadata.num_row_groups)]
        rows = self.metadata.num_rows
        return [path for path in texts if any(each[path] * rows > _MOST_OF_A_COLUMN for each in longest)]

    def _texts(self) -> list[str]:
        """Returns the string columns, except in list views, whose dictionaries Arrow cannot read.

        Uses the schema, because Arrow ends the process if the footer's statistics of a column chunk are damaged.
        """
        schema = self._file.schema
        found = (schema.column(number) for number in range(len(schema.names)))
        paths = (each.path for each in found if each.physical_type == "BYTE_ARRAY")
        views = tuple(f"{path}." for path in self._list_views)
        return [path for path in paths if not path.startswith(views)]

    def _opened(self, with_dictionaries: Sequence[str] = ()) -> pq.ParquetFile:
        """Opens the file with verification of the checksums of its pages."""
        return pq.ParquetFile(
            self._source,
            metadata=self._bounds.metadata,
            coerce_int96_timestamp_unit=INT96_UNIT,
            page_checksum_verification=True,
            read_dictionary=list(with_dictionaries) or None,
        )


@dataclass
class _Sizes:
    """Adds the sizes of the batches of a file with so many rows."""

    of_file: int
    rows: int = 0
    size: int = 0

    def add(self, batch: pa.RecordBatch, size: int) -> None:
        self.rows += batch.num_rows
        self.size += size
        if self.size > MOST_DECODED * max(self.rows / BATCH_ROWS, 1):
            raise ValueError(
                f"its {self.of_file} rows take at least {self.size} bytes of memory: it is damaged or hostile"
            )


@contextlib.contextmanager
def opened(source: Any) -> Iterator[BoundedParquet]:
    """Opens a checkpoint's file. Raises as `BoundedParquet`."""
    yield BoundedParquet(source)


def _list_views(kind: pa.DataType, path: str) -> Iterator[str]:
    """Yields the paths of the list views in a column."""
    if pt.is_list_view(kind) or pt.is_large_list_view(kind):
        yield path
    elif pt.is_struct(kind):
        for member in kind:
            yield from _list_views(member.type, f"{path}.{member.name}")


def _dictionaries(values: pa.Array) -> Iterator[pa.DictionaryArray]:
    """Yields the nested arrays that have a dictionary, each with its own length."""
    if pt.is_dictionary(values.type):
        yield values
    elif pt.is_struct(values.type):
        for number in range(values.type.num_fields):
            yield from _dictionaries(values.field(number))
    elif pt.is_map(values.type):
        yield from _dictionaries(values.keys)
        yield from _dictionaries(values.items)
    elif pt.is_list(values.type) or pt.is_large_list(values.type):
        yield from _dictionaries(values.values)


def _decoded_bytes(values: pa.Array) -> int:
    """Returns the bytes that the values take without dictionaries."""
    texts = sum(_text_bytes(each) for each in _dictionaries(values) if _is_text(each.type.value_type))
    return int(values.nbytes) + texts


def _text_bytes(values: pa.DictionaryArray) -> int:
    if not len(values.dictionary):
        return 0
    lengths = pc.binary_length(values.dictionary).cast(pa.int64())
    return int(pc.sum(lengths.take(values.indices.cast(pa.int64()))).as_py() or 0)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pt.is_string(kind) or pt.is_binary(kind) or pt.is_large_string(kind) or pt.is_large_binary(kind))
