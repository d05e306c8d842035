"""Random lists, structs and maps of the kinds of columns."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from tests.unit.engine.foreign.kinds import ARROW, DELTA_RS, DUCKDB, POLARS, Kind, whole

_KEYS = (
    Kind("string", pa.string(), lambda chance: f"k{chance.random()}"),
    Kind("int64", pa.int64(), whole(64, True)),
    Kind("uint32", pa.uint32(), whole(32, False)),
    Kind("date", pa.date32(), lambda chance: chance.randint(-700_000, 2_000_000)),
    Kind("decimal128(19,0)", pa.decimal128(19, 0), lambda chance: chance.randint(-(10**18), 10**18)),
)


@dataclass(frozen=True)
class Nested(Kind):
    """A list, a struct or a map of other kinds, in `inner`; the keys of a map come first."""

    inner: tuple[Kind, ...] = ()

    def column(self, chance: random.Random, length: int, required: bool = False) -> pa.Array:
        mask = pa.array([not required and chance.random() < 0.2 for _ in range(length)], pa.bool_())
        if pt.is_struct(self.arrow):
            members = [kind.column(chance, length) for kind in self.inner]
            return pa.StructArray.from_arrays(members, fields=list(self.arrow), mask=mask)
        item = self.inner[-1]
        if pt.is_fixed_size_list(self.arrow):
            child = item.column(chance, 2 * length)
            return pa.FixedSizeListArray.from_arrays(child, type=self.arrow, mask=mask)
        sizes = [0 if null.as_py() else chance.choice((0, 1, 3)) for null in mask]
        ends = [sum(sizes[:at]) for at in range(length + 1)]
        offsets = pa.array([None if null.as_py() else end for null, end in zip(mask, ends, strict=False)] + ends[-1:],
                           pa.int64() if pt.is_large_list(self.arrow) else pa.int32())  # fmt: skip
        if pt.is_map(self.arrow):
            keys = self.inner[0].array([each for size in sizes for each in _distinct(self.inner[0], chance, size)])
            return pa.MapArray.from_arrays(offsets, keys, item.column(chance, ends[-1]), type=self.arrow)
        made = pa.LargeListArray if pt.is_large_list(self.arrow) else pa.ListArray
        child = item.column(chance, ends[-1], not self.arrow.value_field.nullable)
        return made.from_arrays(offsets, child, type=self.arrow)


def _distinct(kind: Kind, chance: random.Random, count: int) -> list[Any]:
    found: set[Any] = set()
    while len(found) < count:
        found.add(kind.draw(chance))
    return list(found)


def nested(chance: random.Random, writer: str, known: Sequence[Kind], required: bool = False, depth: int = 2) -> Kind:
    """Returns a kind of lists, structs or maps that the writer stores without change.

    Args:
        known: the kinds of columns that the file may have.
        required: whether the elements of lists are not null.
    """
    suited = [kind for kind in known if _can_be_inside(kind, writer)]

    def of() -> Kind:
        if depth > 1 and chance.random() < 0.3:
            return nested(chance, writer, known, required, depth - 1)
        return chance.choice(suited)

    one, other = of(), of()
    return chance.choice(_ways(chance, writer, (one, other), known, required))()


def around(chance: random.Random, writer: str, kind: Kind, known: Sequence[Kind]) -> Kind:
    """Returns a kind of lists, structs or maps with that kind inside, which is refused."""
    return chance.choice(_ways(chance, writer, (kind, kind), known, required=False))()


def _ways(
    chance: random.Random, writer: str, inner: tuple[Kind, Kind], known: Sequence[Kind], required: bool
) -> list[Callable[[], Kind]]:
    one, other = inner
    key = chance.choice([each for each in _KEYS if each.arrow in {kind.arrow for kind in known}])
    element = pa.field("element", one.arrow, nullable=not required)

    def struct() -> Kind:
        return _made("struct", pa.struct([("a", one.arrow), ("b", other.arrow)]), one, other)

    ways = [struct, struct, lambda: _made("list", pa.list_(element), one)]
    if not required:
        ways.append(lambda: _made("large list", pa.large_list(one.arrow), one))
    if writer != POLARS:
        ways.append(lambda: _made("map", pa.map_(key.arrow, one.arrow), key, one))
    if writer in (ARROW, POLARS) and not required:
        ways.append(lambda: _made("fixed list", pa.list_(one.arrow, 2), one))
    return ways


def _made(name: str, arrow: pa.DataType, *inner: Kind) -> Kind:
    def never(_: random.Random) -> Any:
        raise NotImplementedError

    refused = any(kind.refused for kind in inner)
    return Nested(f"{name} of {', '.join(kind.name for kind in inner)}", arrow, never, refused=refused, inner=inner)


def _can_be_inside(kind: Kind, writer: str) -> bool:
    if writer == DELTA_RS and kind.arrow == pa.timestamp("us"):
        return False  # it requests no table feature for nested values
    if writer == DUCKDB and pt.is_fixed_size_binary(kind.arrow):
        return False  # it repeats a value of an Arrow struct for several rows
    return (
        kind.arrow not in (pa.string_view(), pa.binary_view())
        and not pt.is_dictionary(kind.arrow)  # PyArrow counts no nulls of dictionaries in null structs
        and not isinstance(kind.arrow, pa.BaseExtensionType)
        and not kind.cast
    )
