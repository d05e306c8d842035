"""Bounds the memory that decoded rows of a Parquet file take, by the headers of the file's pages.

A value that a page stores once may be the value of every row, so the rows of a file of a few hundred bytes can take
gigabytes. Arrow does not compare the sizes in the footer with the pages; if the header of a page states a wrong size,
Arrow raises an error.

Source: the Parquet format's `parquet.thrift` and `Encodings.md`.
"""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import IO, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dbt.adapters.silt.engine.kernel.files.footer_check import (
    Leaf,
    Struct,
    ThriftReader,
    leaves_of,
    parsed_footer,
    thrift,
)
from dbt.adapters.silt.engine.kernel.files.plain_types import BATCH_ROWS

MOST_AT_ONCE: Final = 64 << 20
"""The greatest size of the decoded rows of a batch in bytes, unless a single row is larger."""

_MOST_OF_A_ROW: Final = 512 << 20
_MOST_OF_LISTS: Final = 2 << 30
_ABSURD: Final = 1_000
_ABSURD_FOR_LISTS: Final = 10_000
"""The factors of compression above which so many decoded bytes are damage or an attack."""

MOST_OF_A_FILE: Final = 8 << 30
MOST_KEPT: Final = 1 << 30
_LONG: Final = 256
"""The bytes of a text up to which a file may have any number of equal texts."""

_LITTLE: Final = 8 << 20
"""The bytes up to which a dictionary's values may be in all rows without a look at their lengths."""

_HEAD: Final = 256
"""The bytes of a page's header that are read first; only a header with long statistics is longer."""
_LONGEST_HEAD: Final = 16 << 20
_MOST_PAGES: Final = 1 << 17
_SLOT: Final = 8
"""The bytes of an offset, a bit that marks nulls, and levels."""

_I32, _I64, _BINARY, _LIST, _STRUCT = 5, 6, 8, 9, 12
_MAGIC: Final = b"PAR1"
_DATA, _DICTIONARY, _DATA_V2 = 0, 2, 3
_BODIES: Final = {_DATA: 5, _DICTIONARY: 7, _DATA_V2: 8}
_BY_DICTIONARY: Final = (2, 8)
_BY_PREFIXES: Final = 7
_SHORT: Final = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 8, "FLOAT": 4, "DOUBLE": 8}


@dataclass(frozen=True)
class _Page:
    """The header of a page.

    Attributes:
        start: the position of its content.
        stored, decoded: the size of its content in bytes, compressed and not.
    """

    start: int
    kind: int
    encoding: int
    values: int
    stored: int
    decoded: int

    @property
    def is_stated(self) -> bool:
        """Whether it contains each of its values."""
        return self.encoding not in (_BY_PREFIXES, *_BY_DICTIONARY)


@dataclass(frozen=True)
class _Chunk:
    """The pages of a column in a row group."""

    leaf: Leaf
    codec: int
    pages: tuple[_Page, ...]

    @property
    def largest(self) -> _Page:
        """The page with the most bytes."""
        return max(self.pages, key=lambda page: page.decoded, default=_Page(0, _DATA, 0, 0, 0, 0))

    @property
    def by_prefixes(self) -> int:
        """A bound of the length of values that share a prefix."""
        return max((page.decoded for page in self.pages if page.encoding == _BY_PREFIXES), default=0)

    @property
    def stated(self) -> int:
        """The greatest average length of the values of a page that repeats none."""
        return max((page.decoded // max(page.values, 1) for page in self._of_values if page.is_stated), default=0)

    @property
    def values(self) -> int:
        """The number of values, with nulls."""
        return sum(page.values for page in self._of_values)

    @property
    def _of_values(self) -> Iterator[_Page]:
        return (page for page in self.pages if page.kind != _DICTIONARY)


@dataclass(frozen=True)
class PageBounds:
    """The bounds of an open file.

    Args:
        source: the file; its position changes.
        footer: the fields of the footer, as `parsed_footer` returns them.
        by_pages: whether the headers of pages are read; in an object store, each would take a request.
    """

    source: IO[bytes]
    metadata: pq.FileMetaData
    footer: Struct
    by_pages: bool = True

    @classmethod
    def of(cls, source: IO[bytes], by_pages: bool = True) -> PageBounds:
        """Reads the footer. Raises as `footer_check.read_footer`."""
        return cls(source, *parsed_footer(source), by_pages)

    @functools.cached_property
    def size(self) -> int:
        """The size of the file in bytes."""
        return self.source.seek(0, os.SEEK_END)

    def rows_at_once(self, group: int, columns: AbstractSet[str] | None = None, further: int = 0) -> int:
        """Returns the number of rows of a row group to decode at a time.

        Args:
            columns: the paths, with dots, of the columns to decode or of structs around them; all by default.
            further: the bytes that a row takes apart from these columns.

        Raises:
            pa.ArrowInvalid: if a row may take much more memory than a row of an honest file.
        """
        if further > _MOST_OF_A_ROW:
            raise _too_much("a row", further)
        try:
            width = further + self._width(group, columns)
        except pa.ArrowException:
            raise
        except (LookupError, TypeError, AttributeError, ValueError) as error:
            raise pa.ArrowInvalid(f"the headers of its pages cannot be read ({error!r})") from error
        return rows_of(width)

    def longest_texts(self, group: int, columns: AbstractSet[str]) -> Mapping[str, int]:
        """Returns the greatest length of the texts of columns, by their paths. Raises as `rows_at_once`."""
        pairs = zip(self._leaves, self.footer[4, _LIST][group][1, _LIST], strict=True)
        found = ((".".join(leaf.names), leaf, chunk) for leaf, chunk in pairs)
        return {path: self._of_text(self._chunk(leaf, chunk)) for path, leaf, chunk in found if path in columns}

    def _width(self, group: int, columns: AbstractSet[str] | None) -> int:
        """Returns the bytes of a decoded row."""
        fields = self.footer[4, _LIST][group]
        pairs = zip(self._leaves, fields[1, _LIST], strict=True)
        chosen = [pair for pair in pairs if columns is None or not columns.isdisjoint(_paths(pair[0]))]
        short = sum(_SHORT[leaf.type] for leaf, _ in chosen if _is_short(leaf))
        chunks = [self._chunk(*pair) for pair in chosen if not _is_short(pair[0])]
        stored, decoded = (sum(getattr(each.largest, name) for each in chunks) for name in ("stored", "decoded"))
        if decoded > _MOST_OF_A_ROW and decoded > stored * _ABSURD:
            raise _too_much("a row", decoded)
        return short + sum(self._of_chunk(chunk, max(fields.get((3, _I64), 0), 1)) for chunk in chunks)

    def _of_chunk(self, chunk: _Chunk, rows: int) -> int:
        """Returns the greatest number of bytes of a row's value; for lists, the average number."""
        leaf = chunk.leaf
        value = _SLOT + (self._of_text(chunk) if leaf.type == "BYTE_ARRAY" else leaf.size or 0)
        if not leaf.repetition:
            return value
        size, stored = value * chunk.values, sum(page.stored for page in chunk.pages)
        if size > _MOST_OF_LISTS and size > stored * _ABSURD_FOR_LISTS:
            raise _too_much(f"the lists of {'.'.join(leaf.names)}", size)
        return -(-size // rows)

    def _of_text(self, chunk: _Chunk) -> int:
        """Returns the greatest length of a column's texts."""
        page = next((page for page in chunk.pages if page.kind == _DICTIONARY), None)
        longest = 0 if page is None else page.decoded
        if page is not None and longest * min(chunk.values, BATCH_ROWS) > _LITTLE:
            longest = _longest(page, chunk.codec, self._read(page.start, page.stored))
        return max(longest, chunk.by_prefixes, chunk.stated)

    def _read(self, start: int, size: int) -> bytes:
        # Arrow allocates memory for as many bytes as it is asked for.
        least = max(min(size, self.size - start), 0)
        self.source.seek(start)
        return self.source.read(least)

    @functools.cached_property
    def _leaves(self) -> list[Leaf]:
        return leaves_of(self.footer)

    def _chunk(self, leaf: Leaf, chunk: Struct) -> _Chunk:
        fields = chunk.get((3, _STRUCT), {})
        start = min((fields[place, _I64] for place in (9, 11) if fields.get((place, _I64), 0) > 0), default=0)
        pages = self._pages(start, start + fields[7, _I64]) if self.by_pages else ()
        return _Chunk(leaf, fields.get((4, _I32), 0), tuple(pages))

    def _pages(self, start: int, end: int) -> Iterator[_Page]:
        for _ in range(_MOST_PAGES):
            if start >= end:
                return
            head, length = self._head(start)
            kind, decoded, stored = (head[place, _I32] for place in (1, 2, 3))
            body = head.get((_BODIES.get(kind, 0), _STRUCT), {})
            if min(decoded, stored, values := body.get((1, _I32), 0)) < 0:
                raise pa.ArrowInvalid("a page has a negative size")
            encoding = body.get((4 if kind == _DATA_V2 else 2, _I32), 0)
            yield _Page(start + length, kind, encoding, values, stored, decoded)
            start += length + stored
        raise pa.ArrowInvalid(f"a column has more than {_MOST_PAGES} pages in a row group")

    def _head(self, start: int) -> tuple[Struct, int]:
        """Returns the fields of the header at a position, and its length in bytes."""
        size = _HEAD
        while True:
            reader = ThriftReader(self._read(start, size))
            try:
                return reader.struct(), reader.position
            except IndexError:
                if size >= _LONGEST_HEAD:
                    raise
            size <<= 4


@dataclass
class DecodedTexts:
    """Counts the bytes of decoded texts, which an honest file stores at least in part.

    Args:
        stored: the bytes of the files that store them.
        most: the bytes that are always allowed.
    """

    stored: int
    most: int
    rows: int = 0
    size: int = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Counts a batch.

        Raises:
            pa.ArrowInvalid: if the texts are long, are much more than the files store, and more than is allowed.
        """
        texts = [column for column in batch.columns if not pa.types.is_primitive(column.type)]
        self.rows += batch.num_rows * len(texts)
        self.size += sum(column.nbytes for column in texts)
        if self.size > max(self.most, self.stored * _ABSURD, self.rows * _LONG):
            raise pa.ArrowInvalid(f"{self.stored} bytes become more than {self.size}: it is damaged or hostile")


def _longest(page: _Page, codec: int, body: bytes) -> int:
    """Returns the length of the longest text of a dictionary, which Arrow reads as the values of a file."""
    values = ((1, _I32, page.values), (2, _I32, 0), (3, _I32, 3), (4, _I32, 3))
    head = thrift((1, _I32, _DATA), (2, _I32, page.decoded), (3, _I32, page.stored), (5, _STRUCT, thrift(*values)))
    size = len(head) + len(body)
    places = ((1, _I32, 6), (2, _LIST, (_I32, [0])), (3, _LIST, (_BINARY, [b"v"])), (4, _I32, codec))
    sizes = ((5, _I64, page.values), (6, _I64, size), (7, _I64, size), (9, _I64, len(_MAGIC)))
    column = thrift((2, _I64, len(_MAGIC)), (3, _STRUCT, thrift(*places, *sizes)))
    group = thrift((1, _LIST, (_STRUCT, [column])), (2, _I64, size), (3, _I64, page.values))
    schema = [thrift((4, _BINARY, b"r"), (5, _I32, 1)), thrift((1, _I32, 6), (3, _I32, 0), (4, _BINARY, b"v"))]
    footer = thrift((1, _I32, 1), (2, _LIST, (_STRUCT, schema)), (3, _I64, page.values), (4, _LIST, (_STRUCT, [group])))
    data = b"".join((_MAGIC, head, body, footer, len(footer).to_bytes(4, "little"), _MAGIC))
    (texts,) = pq.ParquetFile(pa.BufferReader(data)).read().columns
    return int(pc.max(pc.binary_length(texts)).as_py() or 0)


def rows_of(width: int) -> int:
    """Returns the number of rows of so many bytes to decode at a time."""
    return max(1, min(BATCH_ROWS, MOST_AT_ONCE // max(width, 1)))


def _is_short(leaf: Leaf) -> bool:
    return leaf.type in _SHORT and not leaf.repetition


def _paths(leaf: Leaf) -> Iterator[str]:
    """Yields the path of a column, and the paths of the groups around it."""
    return itertools.accumulate(leaf.names, "{}.{}".format)


def _too_much(what: str, size: int) -> pa.ArrowInvalid:
    return pa.ArrowInvalid(f"{what} may take {size} bytes of memory: it is damaged or hostile")
