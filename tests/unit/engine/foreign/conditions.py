"""Conditions on values of a table, with the rows for which they are true, evaluated in Python by SQL's rules."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.types as pt

from tests.unit.engine.foreign.kinds import Kind, Number, plain

Values: TypeAlias = Sequence[Any]
_EPOCH = datetime(1970, 1, 1)


@dataclass(frozen=True)
class Condition:
    """A condition on one column, and the ids of the rows for which it is true."""

    column: str
    text: str
    ids: tuple[int, ...]


@dataclass(frozen=True)
class Leaf:
    """A column, or a struct field, whose values can be compared."""

    column: str
    path: str
    arrow: pa.DataType
    values: Values


def leaves(rows: pa.Table, column: str) -> Iterator[Leaf]:
    yield from _leaves(column, column, rows[column].combine_chunks())


def _leaves(column: str, path: str, values: pa.Array) -> Iterator[Leaf]:
    if pt.is_struct(values.type):
        for member, inside in zip(values.type, values.flatten(), strict=True):
            yield from _leaves(column, f"{path}.{member.name}", inside)
    yield Leaf(column, path, values.type, plain(values))


def compares(leaf: Leaf) -> bool:
    return not (
        pt.is_nested(leaf.arrow)
        or (isinstance(leaf.arrow, pa.BaseExtensionType) and pt.is_nested(leaf.arrow.storage_type))
    )


def key(value: Any) -> Any:
    """Returns the value's sort key: UTF-8 bytes for a string."""
    return value.encode() if isinstance(value, str) else value


def conditions(rows: pa.Table, kinds: dict[str, Kind], chance: random.Random, each: int) -> list[Condition]:
    """Returns some conditions on each column."""
    ids = rows["id"].to_pylist()
    return [
        Condition(name, text, tuple(number for number, value in zip(ids, leaf.values, strict=True) if holds(value)))
        for name in kinds
        for leaf in leaves(rows, name)
        for text, holds in _of(leaf, chance, each)
    ]


def _of(leaf: Leaf, chance: random.Random, most: int) -> Iterator[tuple[str, Callable[[Any], bool]]]:
    yield f"{leaf.path} is null", lambda value: value is None
    yield f"{leaf.path} is not null", lambda value: value is not None
    literals = [(value, text) for value in leaf.values if (text := literal(value, leaf.arrow)) is not None]
    if not compares(leaf) or not literals:
        return
    for _ in range(most):
        yield _one(leaf.path, chance, literals)


def _one(path: str, chance: random.Random, literals: Sequence[tuple[Any, str]]) -> tuple[str, Callable[[Any], bool]]:
    (value, text), (other, also) = chance.choice(literals), chance.choice(literals)
    limit = key(value)
    match chance.randrange(8):
        case 0:
            some = [chance.choice(literals) for _ in range(chance.choice((1, 3, 20)))]
            known = {key(each) for each, _ in some}
            listed = ", ".join([each for _, each in some] + (["null"] if chance.random() < 0.2 else []))
            return f"{path} in ({listed})", lambda found: found is not None and key(found) in known
        case 1:
            low, high = (text, also) if key(value) <= key(other) else (also, text)
            ends = sorted((limit, key(other)))
            return (
                f"{path} between {low} and {high}",
                lambda found: found is not None and ends[0] <= key(found) <= ends[1],
            )
        case 2 if isinstance(value, str):
            prefix = value[: chance.choice((1, 2, 31, 33, 64))]
            pattern = "".join(f"\\{each}" if each in "%_\\" else each for each in prefix)
            return f"{path} like {quoted(pattern + '%')}", lambda found: found is not None and found.startswith(prefix)
        case 3:
            return f"not ({path} <= {text})", lambda found: found is not None and key(found) > limit
        case 4:
            return f"{path} <=> {text}", lambda found: found is not None and key(found) == limit
    operator, holds = chance.choice(_COMPARISONS)
    return f"{path} {operator} {text}", lambda found: found is not None and holds(key(found), limit)


_COMPARISONS: list[tuple[str, Callable[[Any, Any], bool]]] = [
    ("=", lambda a, b: bool(a == b)),
    ("<>", lambda a, b: bool(a != b)),
    ("<", lambda a, b: bool(a < b)),
    ("<=", lambda a, b: bool(a <= b)),
    (">", lambda a, b: bool(a > b)),
    (">=", lambda a, b: bool(a >= b)),
]


def literal(value: Any, kind: pa.DataType) -> str | None:
    """Returns the value as an SQL literal; None if SQL has no literal for it, or it is null."""
    if value is None:
        return None
    if isinstance(value, Number):
        return _double(value, "float" if pt.is_float32(kind) else "double")
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Decimal):
        return f"{value:f}BD"
    if pt.is_date(kind):
        day = value + date(1970, 1, 1).toordinal()
        return f"date'{date.fromordinal(day)}'" if 1 <= day <= date.max.toordinal() else None
    if pt.is_timestamp(kind):
        return _moment(value, kind.tz is not None)
    if isinstance(value, int):
        return str(value) if value != -(2**63) else None  # its digits without the sign exceed bigint
    return None


def quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _double(value: Number, name: str) -> str:
    if value.is_nan:
        return f"{name}('NaN')"
    if abs(value.value) == float("inf"):
        return f"{name}('{'' if value.value > 0 else '-'}Infinity')"
    return f"{value.value!r}D" if name == "double" else f"float('{value.value!r}')"


def _moment(microseconds: int, zoned: bool) -> str | None:
    try:
        moment = _EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:
        return None
    text = moment.isoformat(" ", "microseconds")
    return f"timestamp'{text}Z'" if zoned else f"timestamp_ntz'{text}'"
