"""Functions that damage a log: each takes the files and a random generator, and returns a description of the damage."""

from __future__ import annotations

import io
import json
import random
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Files = dict[str, bytes]
Mutation = Callable[[Files, random.Random], str]

# Replacements for a field: other types, limits of number types, texts that are nearly valid.
_STRANGE: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 3, 7, 1.5, -0.0, 1e400, 2**31, 2**63, -(2**63) - 1, 10**400,
    "", " ", "x", "0", "-1", "NaN", "null", "é\u2028\U0001f600", "a\x00b", "../../etc/passwd", "%", "%zz", "file:///tmp/x",
    [], [None], ["x"], [1], {}, {"": ""}, {"x": None}, {"x": 1}, {"x": {"y": []}}, [[]], [{}],
)  # fmt: skip
_TOKENS = (b"\x00", b"\xff", b"\xc3", b"{", b"}", b'"', b"\\", b",", b":", b"[", b"]", b"\n", b"\r\n", b"9", b"NaN")


def mutate(files: Files, chance: random.Random, kinds: Sequence[Mutation] | None = None) -> str:
    """Damages one file in place; returns a description."""
    kind = chance.choice(kinds or KINDS)
    return kind(files, chance)


def _flip(files: Files, chance: random.Random) -> str:
    name = _any_file(files, chance)
    data = bytearray(files[name])
    for _ in range(chance.choice((1, 1, 1, 2, 8))):
        if data:
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    files[name] = bytes(data)
    return f"bits flipped in {name}"


def _cut(files: Files, chance: random.Random) -> str:
    name = _any_file(files, chance)
    at = chance.randrange(len(files[name]) + 1)
    files[name] = files[name][:at]
    return f"{name} cut at {at}"


def _hole(files: Files, chance: random.Random) -> str:
    name = _any_file(files, chance)
    at = chance.randrange(len(files[name]) + 1)
    files[name] = files[name][:at] + files[name][at + chance.choice((1, 4, 64, 512)) :]
    return f"a hole at {at} in {name}"


def _zeros(files: Files, chance: random.Random) -> str:
    name = _any_file(files, chance)
    at = chance.randrange(len(files[name]) + 1)
    files[name] = files[name][:at] + b"\x00" * (len(files[name]) - at)
    return f"zeros from {at} in {name}"


def _insert(files: Files, chance: random.Random) -> str:
    name = _any_file(files, chance)
    at, token = chance.randrange(len(files[name]) + 1), chance.choice(_TOKENS)
    files[name] = files[name][:at] + token + files[name][at:]
    return f"{token!r} put at {at} in {name}"


def _lines(files: Files, chance: random.Random) -> str:
    name = _any_json(files, chance)
    lines = files[name].split(b"\n")
    at = chance.randrange(len(lines))
    change = chance.choice(("drop", "double", "swap", "cut", "crlf", "join"))
    if change == "drop":
        del lines[at]
    elif change == "double":
        lines.insert(at, lines[at])
    elif change == "swap":
        other = chance.randrange(len(lines))
        lines[at], lines[other] = lines[other], lines[at]
    elif change == "cut":
        lines[at] = lines[at][: chance.randrange(len(lines[at]) + 1)]
    separator = {"crlf": b"\r\n", "join": b" "}.get(change, b"\n")
    files[name] = separator.join(lines)
    return f"{change} of line {at} in {name}"


def _field(files: Files, chance: random.Random) -> str:
    """Removes a field, or replaces its value by a value of another type."""
    name = _any_json(files, chance)
    lines = files[name].split(b"\n")
    at = chance.randrange(len(lines))
    try:
        document = json.loads(lines[at])
    except (ValueError, RecursionError):
        return _flip(files, chance)
    places = list(_places(document))
    if not places:
        return _flip(files, chance)
    holder, key = chance.choice(places)
    told = f"field {key!r} of line {at} in {name}"
    if isinstance(holder, dict) and chance.random() < 0.25:
        del holder[key]
        told += " left out"
    else:
        holder[key] = chance.choice(_STRANGE)
        told += f" set to {str(holder[key])[:40]!r}"
    lines[at] = json.dumps(document).encode()
    files[name] = b"\n".join(lines)
    return told


def _depth(files: Files, chance: random.Random) -> str:
    name = _any_json(files, chance)
    lines = files[name].split(b"\n")
    at = chance.randrange(len(lines))
    times = chance.choice((10, 3_000, 100_000))
    opening = chance.choice((b"[", b'{"add":', b'{"protocol":', b'{"metaData":'))
    lines[at] = opening * times + b"1" + (b"]" if opening == b"[" else b"}") * times
    files[name] = b"\n".join(lines)
    return f"line {at} in {name} nested {times} deep"


def _gone(files: Files, chance: random.Random) -> str:
    name = _any_file(files, chance)
    del files[name]
    return f"{name} gone"


def _exchanged(files: Files, chance: random.Random) -> str:
    name, other = _any_file(files, chance), _any_file(files, chance)
    files[name] = files[other]
    return f"{name} holds what is in {other}"


def _within(files: Files, chance: random.Random) -> str:
    """Changes a field of the JSON inside a string of the log: of a schema or of statistics."""
    name = _any_json(files, chance)
    lines = files[name].split(b"\n")
    at = chance.randrange(len(lines))
    document = _parsed(lines[at])
    found = [(holder, key) for holder, key in _places(document) if _is_json(holder[key])]
    if not found:
        return _field(files, chance)
    holder, key = chance.choice(found)
    inner = json.loads(holder[key])
    inside, place = chance.choice(list(_places(inner)) or [({}, "x")])
    inside[place] = chance.choice(_STRANGE)
    holder[key] = json.dumps(inner)
    lines[at] = json.dumps(document).encode()
    files[name] = b"\n".join(lines)
    return f"{place!r} in the text {key!r} of line {at} in {name} set to {str(inside[place])[:40]!r}"


def _cell(files: Files, chance: random.Random) -> str:
    """Replaces a value in a Parquet file by a value of the same or another type; or omits its column."""
    names = [name for name in sorted(files) if name.endswith(".parquet")]
    if not names:
        return _field(files, chance)
    name = chance.choice(names)
    try:
        rows = pq.read_table(io.BytesIO(files[name])).to_pylist()
        holder, key = chance.choice([place for row in rows for place in _places(row)])
        is_typed = chance.random() < 0.7 and isinstance(holder[key], str | int)
        holder[key] = chance.choice(_of_type(type(holder[key]))) if is_typed else chance.choice(_STRANGE)
        sink = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(rows), sink)
    except (pa.ArrowException, OSError, ValueError, IndexError, TypeError, OverflowError):
        return _flip(files, chance)
    files[name] = sink.getvalue()
    return f"the value {key!r} in {name} set to {str(holder[key])[:40]!r}"


def _vector(files: Files, chance: random.Random) -> str:
    """Replaces bytes of a deletion vector, and corrects its checksum."""
    names = [name for name in sorted(files) if name.endswith(".bin") and len(files[name]) > _VECTOR_BEGINS + 8]
    if not names:
        return _flip(files, chance)
    name = chance.choice(names)
    data = bytearray(files[name])
    size = min(int.from_bytes(data[1:_VECTOR_BEGINS], "big"), len(data) - _VECTOR_BEGINS - 4)
    for _ in range(chance.choice((1, 1, 2, 4))):
        data[_VECTOR_BEGINS + chance.randrange(max(size, 1))] = chance.choice((0, 1, 0x7F, 0x80, 0xFF))
    body = bytes(data[_VECTOR_BEGINS : _VECTOR_BEGINS + size])
    data[_VECTOR_BEGINS + size :] = zlib.crc32(body).to_bytes(4, "big")
    files[name] = bytes(data)
    return f"a bitmap in {name} changed, with its checksum"


KINDS: tuple[Mutation, ...] = (
    _flip, _flip, _cut, _hole, _zeros, _insert, _insert, _lines, _lines,
    *(_field,) * 8, _depth, _gone, _exchanged,
)  # fmt: skip
"""Mutations of logs that consist mostly of JSON."""

DEEPER: tuple[Mutation, ...] = (*(_within,) * 4, *(_cell,) * 6, *(_vector,) * 3)
"""Mutations inside strings, checkpoints and vectors; each result is valid in its format."""

_VECTOR_BEGINS = 5  # after the version of the file and the size


def texts_set(texts: Sequence[str]) -> Mutation:
    """Returns a mutation that replaces a string of the log, at any depth, by one of these texts."""

    def exchange(files: Files, chance: random.Random) -> str:
        name = _any_json(files, chance)
        lines = files[name].split(b"\n")
        at = chance.randrange(len(lines))
        document = _parsed(lines[at])
        found = [(holder, key) for holder, key in _places(document) if isinstance(holder[key], str)]
        if not found:
            return _flip(files, chance)
        holder, key = chance.choice(found)
        holder[key] = chance.choice(texts)
        lines[at] = json.dumps(document).encode()
        files[name] = b"\n".join(lines)
        return f"text {key!r} of line {at} in {name} set to {holder[key]!r}"

    return exchange


def _any_file(files: Files, chance: random.Random) -> str:
    return chance.choice(sorted(files))


def _any_json(files: Files, chance: random.Random) -> str:
    names = [name for name in sorted(files) if name.endswith(".json")]
    return chance.choice(names or sorted(files))


def _places(document: Any) -> Any:
    """Returns every location of a value, as its container and the key in it."""
    keys = range(len(document)) if isinstance(document, list) else list(document) if isinstance(document, dict) else ()
    for key in keys:
        yield document, key
        yield from _places(document[key])


def _parsed(line: bytes) -> Any:
    """Returns the value of a line of JSON, or None if it is not JSON."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _is_json(value: Any) -> bool:
    return isinstance(value, str) and value[:1] in ("{", "[") and isinstance(_parsed(value.encode()), dict | list)


def _of_type(kind: type) -> Sequence[Any]:
    """Returns unusual values of the same type, so that a column of Parquet keeps its type."""
    if kind is bool:
        return (True, False)
    return tuple(each for each in _STRANGE if type(each) is kind and (kind is not int or -(2**63) <= each < 2**63))  # type: ignore[operator]
