"""Reads the footer of a data file, and checks it before Arrow looks at its columns.

Arrow ends the process instead of raising an error if the description of a column chunk contradicts the schema, or its
statistics are too short. Anyone who may write a table can write such a file, and a damaged disk can.

Source: the Parquet format's `parquet.thrift`, in Thrift's compact protocol.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

Struct: TypeAlias = Mapping[tuple[int, int], Any]
"""The fields of a Thrift struct, by their ids and kinds: Arrow skips a field of another kind."""

_FIELD_ID: Final = b"PARQUET:field_id"
_MAGIC: Final = b"PAR1"
_END: Final = 8
"""The length of the footer's size and of the magic bytes at the end, in bytes."""
_TAIL: Final = 1 << 16
"""The length of the end of a file that is read first, in bytes."""
_TYPES: Final = ("BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
_SIZES: Final = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}
_TRUE, _FALSE = 1, 2
_I32, _I64, _BINARY, _LIST, _STRUCT = 5, 6, 8, 9, 12
_BOUNDS: Final = (1, 2, 5, 6)
"""The fields of `Statistics` that are values: `max`, `min`, `max_value`, `min_value`."""


def read_footer(source: IO[bytes]) -> pq.FileMetaData:
    """Reads the footer of a file, and checks its column chunks.

    Args:
        source: the file; its position changes.

    Raises:
        pa.ArrowException, OSError: if the file is not Parquet, or Arrow cannot look at a column chunk.
    """
    return parsed_footer(source)[0]


def parsed_footer(source: IO[bytes]) -> tuple[pq.FileMetaData, Struct]:
    """Reads the footer as `read_footer` does, and returns also its fields. Raises the same."""
    size = source.seek(0, os.SEEK_END)
    tail = _read_at(source, max(size - _TAIL, 0), min(size, _TAIL))
    end = tail[-_END:]
    length = int.from_bytes(end[:4], "little")
    if end[4:] != _MAGIC or length + _END > size:
        return pq.read_metadata(source), {}  # which raises the error
    missing = length + _END - len(tail)
    data = (_read_at(source, size - length - _END, missing) if missing > 0 else b"") + tail
    footer = data[-length - _END : -_END]
    try:
        found = pq.read_metadata(pa.BufferReader(_MAGIC + footer + end))
        fields = ThriftReader(footer).struct()
        _check(fields)
    except pa.ArrowException:
        raise
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise pa.ArrowInvalid(f"the footer cannot be read ({error!r})") from error
    return found, fields


def checked(footer: pq.FileMetaData) -> pq.FileMetaData:
    """Returns a footer that Arrow has read after a check of its column chunks.

    Raises:
        pa.ArrowException, OSError: if Arrow cannot look at a column chunk.
    """
    copy = pa.BufferOutputStream()
    footer.write_metadata_file(copy)
    return read_footer(pa.BufferReader(copy.getvalue()))


def _read_at(source: IO[bytes], position: int, size: int) -> bytes:
    source.seek(position)
    return source.read(size)


def _check(fields: Struct) -> None:
    """Raises ArrowInvalid if Arrow cannot look at a column chunk; the text names the column."""
    fields.get((6, _BINARY), b"").decode()  # the name of the writer, which Arrow decodes when it is asked for
    leaves = leaves_of(fields)
    for group in fields[4, _LIST]:
        for leaf, chunk in zip(leaves, group[1, _LIST], strict=True):
            if (3, _STRUCT) in chunk:
                _check_chunk(leaf, chunk[3, _STRUCT])


@dataclass(frozen=True)
class Leaf:
    """A column of the file.

    Attributes:
        names: its name, after the names of the groups around it.
        type: its physical type.
        size: the size of its values in bytes, if they have one size.
        definition, repetition: its greatest levels.
    """

    names: tuple[str, ...]
    type: str
    size: int | None
    definition: int
    repetition: int


def leaves_of(fields: Struct) -> list[Leaf]:
    """Returns the columns of a file, by the fields of its footer."""
    elements = iter(fields[2, _LIST])
    root = next(elements)
    return [leaf for _ in range(root[5, _I32]) for leaf in _leaves(elements)]


def _leaves(
    elements: Iterator[Struct], definition: int = 0, repetition: int = 0, above: tuple[str, ...] = ()
) -> Iterator[Leaf]:
    """Yields the columns of the next element of a schema, which is in depth-first order."""
    element = next(elements, {})
    kind, names = element.get((3, _I32), 0), (*above, element[4, _BINARY].decode())
    definition, repetition = definition + (kind in (1, 2)), repetition + (kind == 2)
    if not element.get((5, _I32)):
        physical = _type(element.get((1, _I32)))
        size = element.get((2, _I32)) if physical == "FIXED_LEN_BYTE_ARRAY" else _SIZES.get(physical)
        yield Leaf(names, physical, size, definition, repetition)
    for _ in range(element.get((5, _I32), 0)):
        yield from _leaves(elements, definition, repetition, names)


def _check_chunk(leaf: Leaf, chunk: Struct) -> None:
    sizes, found = chunk.get((16, _STRUCT), {}), _type(chunk.get((1, _I32)))
    if found != leaf.type:
        raise _contradicts(leaf, f"it has values of the type {found} instead of {leaf.type}")
    if (1, _I64) in sizes and leaf.type != "BYTE_ARRAY":
        raise _contradicts(leaf, "it states the size of texts")
    for field, level in ((2, leaf.repetition), (3, leaf.definition)):
        counted = len(sizes.get((field, _LIST), ()))
        if counted not in (0, level + 1):
            raise _contradicts(leaf, f"it counts {counted} levels instead of {level + 1}")
    bounds = (chunk.get((12, _STRUCT), {}).get((field, _BINARY)) for field in _BOUNDS)
    if leaf.size is not None and any(bound is not None and len(bound) < leaf.size for bound in bounds):
        raise _contradicts(leaf, f"a bound has fewer than {leaf.size} bytes")


def _type(number: object) -> str:
    return _TYPES[number] if isinstance(number, int) and 0 <= number < len(_TYPES) else f"with the number {number}"


def _contradicts(leaf: Leaf, problem: str) -> pa.ArrowInvalid:
    return pa.ArrowInvalid(f"the footer is damaged at the column {leaf.names[-1]}: {problem}")


class ThriftReader:
    """Reads values of Thrift's compact protocol from data that Arrow has read."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.position = 0

    def struct(self) -> Struct:
        found: dict[tuple[int, int], Any] = {}
        field = 0
        while (head := self._byte()) != 0:
            field = field + (head >> 4) if head >> 4 else self._integer()
            kind = head & 15
            found[field, kind] = kind == _TRUE if kind in (_TRUE, _FALSE) else self._value(kind)
        return found

    def _value(self, kind: int) -> Any:
        match kind:
            case 1 | 2 | 3:
                return self._byte()
            case 4 | 5 | 6:
                return self._integer()
            case 7:
                return self._bytes(8)
            case 8:
                return self._bytes(self._varint())
            case 9 | 10:
                return self._list()
            case 12:
                return self.struct()
        raise pa.ArrowInvalid(f"the footer has a field of the unknown kind {kind}")

    def _list(self) -> Sequence[Any]:
        head = self._byte()
        size = head >> 4 if head >> 4 < 15 else self._varint()
        return [self._value(head & 15) for _ in range(size)]

    def _byte(self) -> int:
        self.position += 1
        return self._data[self.position - 1]

    def _bytes(self, size: int) -> bytes:
        self.position += size
        return self._data[self.position - size : self.position]

    def _varint(self) -> int:
        result = shift = 0
        while (byte := self._byte()) & 128:
            result |= (byte & 127) << shift
            shift += 7
        return result | byte << shift

    def _integer(self) -> int:
        number = self._varint()
        return number >> 1 ^ -(number & 1)


def thrift(*fields: tuple[int, int, Any]) -> bytes:
    """Encodes a struct in Thrift's compact protocol.

    Args:
        fields: ids below 16 in increasing order, kinds and values: an integer, bytes, an encoded struct, or for a list
            the kind and the values of less than 15 elements.
    """
    parts, last = [], 0
    for number, kind, value in fields:
        parts += [bytes([(number - last) << 4 | kind]), _encoded(kind, value)]
        last = number
    return b"".join((*parts, b"\0"))


def _encoded(kind: int, value: Any) -> bytes:
    if kind == _LIST:
        return bytes([len(value[1]) << 4 | value[0]]) + b"".join(_encoded(value[0], each) for each in value[1])
    if kind == _BINARY:
        return _varint(len(value)) + bytes(value)
    return bytes(value) if kind == _STRUCT else _varint(value << 1)


def _varint(number: int) -> bytes:
    found = []
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def field_id(field: pa.Field) -> int | None:
    """Returns the Parquet id of a field, or None if it has no id or the file states something else than a number."""
    text = (field.metadata or {}).get(_FIELD_ID, b"")
    return int(text) if text.isdigit() else None
