"""Rewrites the footers of Parquet files in the form of writers from before Parquet's logical types.

Old writers annotate types by `converted_type` alone, store bounds in the deprecated fields `min` and `max`, compared as
signed bytes, name maps `MAP_KEY_VALUE`, and store a list without a group for its elements. Source: parquet.thrift and
LogicalTypes.md of the Parquet specification.
"""

from __future__ import annotations

import pathlib
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _STRUCT = 1, 2, 3, 7, 8, 9, 12
_MAGIC = b"PAR1"
_ORDERED_AS_SIGNED = frozenset((None, 5, 6, 7, 8, 9, 10, 15, 16, 17, 18))  # decimals, dates, times and signed integers
TEXTS = {"UTF8": 0, "ENUM": 4}
_MAP, _MAP_KEY_VALUE, _LIST_OF = 1, 2, 3
_REQUIRED, _REPEATED = 0, 2
_BYTE_ARRAYS = (6, 7)

Path: TypeAlias = tuple[bytes, ...]
Fields: TypeAlias = dict[int, tuple[int, Any]]
"""The fields of a Thrift struct: id -> (type, value). A list is a pair of its elements' type and the elements."""


def make_legacy(path: pathlib.Path, text: str) -> None:
    """Rewrites the file's footer in place. The file must have no Arrow schema; a list gets the old form if its elements
    are required.

    Args:
        text: the annotation of strings, a key of `TEXTS`.
    """
    content = path.read_bytes()
    (length,) = struct.unpack("<I", content[-8:-4])
    start = len(content) - 8 - length
    footer = _Reader(content[start : start + length]).fields()
    root, *rest = _items(footer[2])
    schema = _Schema(iter(rest), TEXTS[text])
    schema.convert_children(root[5][1], (), ())
    footer[2] = (_LIST, (_STRUCT, [root, *schema.kept]))
    footer.pop(7, None)  # without orders of columns, `min_value` and `max_value` have no meaning
    for group in _items(footer[4]):
        for chunk in _items(group[1]):
            metadata = chunk[3][1]
            _make_chunk_legacy(metadata, schema.leaves[tuple(_items(metadata[3]))])
    written = _written(footer)
    path.write_bytes(content[:start] + written + struct.pack("<I", len(written)) + _MAGIC)


def _items(part: tuple[int, Any]) -> list[Any]:
    items: list[Any] = part[1][1]
    return items


def _value(fields: Fields, number: int) -> Any:
    return fields[number][1] if number in fields else None


@dataclass(frozen=True)
class _Leaf:
    """The new path of a column, and whether its order is the order of signed numbers."""

    path: Path
    signed: bool


@dataclass
class _Schema:
    """Rewrites the elements of a schema, which are in depth-first order.

    Attributes:
        rest: the elements to rewrite.
        text: the annotation of strings.
        kept: the rewritten elements.
        leaves: the columns by their old paths.
    """

    rest: Iterator[Fields]
    text: int
    kept: list[Fields] = field(default_factory=list)
    leaves: dict[Path, _Leaf] = field(default_factory=dict)

    def convert_children(self, count: int, old: Path, new: Path) -> None:
        for _ in range(count):
            element = next(self.rest)
            self._convert(element, (*old, element[4][1]), (*new, element[4][1]))

    def _convert(self, element: Fields, old: Path, new: Path) -> None:
        converted = _value(element, 6)
        if converted is not None:
            element.pop(10, None)
        if converted == _MAP:
            element[6] = (5, _MAP_KEY_VALUE)
        if converted == TEXTS["UTF8"]:
            element[6] = (5, self.text)
        self.kept.append(element)
        if converted == _LIST_OF:
            self._convert_member(old, new)
        elif _value(element, 5):
            self.convert_children(_value(element, 5), old, new)
        else:
            signed = converted in _ORDERED_AS_SIGNED and _value(element, 1) not in _BYTE_ARRAYS
            self.leaves[old] = _Leaf(new, signed)

    def _convert_member(self, old: Path, new: Path) -> None:
        """Converts the elements of a list: required elements need no group."""
        group, member = next(self.rest), next(self.rest)
        between, name = group[4][1], member[4][1]
        if _value(member, 3) == _REQUIRED:
            member |= {3: (5, _REPEATED), 4: (_BINARY, b"array")}
            self._convert(member, (*old, between, name), (*new, b"array"))
        else:
            self.kept.append(group)
            self._convert(member, (*old, between, name), (*new, between, name))


def _make_chunk_legacy(chunk: Fields, leaf: _Leaf) -> None:
    """Rewrites the path and the statistics of a column chunk."""
    chunk[3] = (_LIST, (_BINARY, list(leaf.path)))
    statistics = _value(chunk, 12) or {}
    most, least = statistics.pop(5, None), statistics.pop(6, None)
    for number in (1, 2, 7, 8):
        statistics.pop(number, None)
    if most is not None and least is not None:
        # Compared as signed, `é` is below `a`, and 3,000,000,000 is below 1: the bounds change places.
        statistics[1], statistics[2] = (most, least) if leaf.signed else (least, most)


@dataclass
class _Reader:
    """Reads Thrift's compact protocol."""

    content: bytes
    at: int = 0

    def fields(self) -> Fields:
        found: Fields = {}
        number = 0
        while (head := self._byte()) != 0:
            kind = head & 15
            number = number + (head >> 4) if head >> 4 else self._signed()
            found[number] = (kind, self._of(kind))
        return found

    def _of(self, kind: int) -> Any:
        if kind in (_TRUE, _FALSE):
            return kind == _TRUE
        if kind == _BYTE:
            return self._byte()
        if kind == _DOUBLE:
            return self._taken(8)
        if kind == _BINARY:
            return self._taken(self._number())
        if kind == _LIST:
            head = self._byte()
            length = head >> 4 if head >> 4 < 15 else self._number()
            inner = head & 15
            return inner, [self._byte() if inner in (_TRUE, _FALSE) else self._of(inner) for _ in range(length)]
        return self.fields() if kind == _STRUCT else self._signed()

    def _byte(self) -> int:
        return self._taken(1)[0]

    def _taken(self, length: int) -> bytes:
        self.at += length
        return self.content[self.at - length : self.at]

    def _number(self) -> int:
        found, shift = 0, 0
        while True:
            byte = self._byte()
            found |= (byte & 127) << shift
            if byte < 128:
                return found
            shift += 7

    def _signed(self) -> int:
        number = self._number()
        return number >> 1 ^ -(number & 1)


def _written(fields: Fields) -> bytes:
    out, last = b"", 0
    for number in sorted(fields):
        kind, value = fields[number]
        if kind in (_TRUE, _FALSE):
            kind = _TRUE if value else _FALSE
        out += bytes([(number - last) << 4 | kind]) if number - last < 16 else bytes([kind]) + _signed(number)
        out += b"" if kind in (_TRUE, _FALSE) else _written_value(kind, value)
        last = number
    return out + b"\0"


def _written_value(kind: int, value: Any) -> bytes:
    if kind in (_TRUE, _FALSE, _BYTE):
        return bytes([value])
    if kind == _LIST:
        inner, items = value
        head = bytes([len(items) << 4 | inner]) if len(items) < 15 else bytes([0xF0 | inner]) + _number(len(items))
        return head + b"".join(_written_value(inner, each) for each in items)
    writers: dict[int, Callable[[Any], bytes]] = {
        _DOUBLE: bytes,
        _BINARY: lambda text: _number(len(text)) + text,
        _STRUCT: _written,
    }
    return writers.get(kind, _signed)(value)


def _number(value: int) -> bytes:
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def _signed(value: int) -> bytes:
    return _number((value << 1 ^ value >> 63) & (1 << 64) - 1)
