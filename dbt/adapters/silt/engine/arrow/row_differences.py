"""Compares the rows of two Arrow tables: by a key, or as multisets.

Every column is converted to codes, numbers that are equal exactly if two values are equal, so that columns of all types
are compared alike: null equals null, NaN equals NaN, 0.0 equals -0.0, and numbers of different types are equal if they
are the same number.
"""

from __future__ import annotations

import datetime
import decimal
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

Codes: TypeAlias = pa.Array
"""A number for each row of the first table, then of the second, that stands for its value."""
_NULL: Final = "null"


@dataclass(frozen=True)
class RowDifferences:
    """The differences between the rows of two tables.

    Attributes:
        removed, added: positions of rows that only the first or only the second table has.
        changed: pairs of positions of rows with the same key and other values.
        columns: how many changed rows have another value, by the names of the columns, only columns with changes.
    """

    removed: Sequence[int] = ()
    added: Sequence[int] = ()
    changed: Sequence[tuple[int, int]] = ()
    columns: Mapping[str, int] = field(default_factory=dict)


def row_differences(
    before: pa.Table, after: pa.Table, key: Sequence[str] = (), ids: tuple[pa.Array, pa.Array] | None = None
) -> RowDifferences:
    """Compares rows. Equal rows are paired first; then, for each value of the key, the remaining rows are pairs of a
    changed row, as far as both tables have one; without a key, no row is changed.

    Args:
        before, after: tables with the same column names in the same order, whose types may differ.
        key: the names of the columns of the key.
        ids: the ids of the rows of both tables, instead of a key; an equal row with another id is equal.
    """
    codes = {name: _codes(before.column(name), after.column(name)) for name in before.column_names}
    split, total = before.num_rows, before.num_rows + after.num_rows
    rows = _combined(codes.values(), total)
    of_ids = None if ids is None else _numbered(pa.concat_arrays(ids))
    removed, added = _unequal(rows if of_ids is None else _combined([rows, of_ids], total), split)
    if not key and of_ids is None:
        return RowDifferences(removed.to_pylist(), pc.subtract(added, split).to_pylist())
    keys = _combined((codes[name] for name in key), total) if of_ids is None else of_ids
    pairs, left, new = _paired(removed, added, keys)
    if of_ids is not None:
        left, new = _with_other_values(rows, left, new)
    columns = {name: _count_changed(each, *pairs) for name, each in codes.items() if name not in key}
    changed = list(zip(pairs[0].to_pylist(), pc.subtract(pairs[1], split).to_pylist(), strict=True))
    return RowDifferences(left, [each - split for each in new], changed, {name: n for name, n in columns.items() if n})


def _unequal(rows: Codes, split: int) -> tuple[pa.Array, pa.Array]:
    """Returns the positions of the rows of each side that remain if equal rows of both sides are paired."""
    sides = rows.slice(0, split), rows.slice(split)
    counts = [_counts(side) for side in sides]
    positions = pa.array(range(len(rows)), pa.int64())
    alone = [_without(side, other) for side, other in zip(sides, reversed(sides), strict=True)]
    found = [positions.slice(0, split).filter(alone[0]), positions.slice(split).filter(alone[1])]
    # Rows of both sides whose numbers differ: these are duplicates, and one side has more of them.
    excess: tuple[list[int], list[int]] = ([], [])
    common = counts[0].join(counts[1], "values", join_type="inner", right_suffix="_after")
    for row in common.filter(pc.not_equal(common["counts"], common["counts_after"])).to_pylist():
        side = int(row["counts"] < row["counts_after"])
        at = pc.indices_nonzero(pc.equal(sides[side], row["values"])).cast(pa.int64()).to_pylist()
        more = abs(row["counts"] - row["counts_after"])
        excess[side].extend(each + side * split for each in at[len(at) - more :])
    return tuple(pa.concat_arrays([each, pa.array(more, pa.int64())]) for each, more in zip(found, excess, strict=True))


def _with_other_values(rows: Codes, left: list[int], new: list[int]) -> tuple[list[int], list[int]]:
    """Returns the positions on each side without the rows that are equal on both sides."""
    positions = pa.array([*left, *new], pa.int64())
    removed, added = _unequal(rows.take(positions), len(left))
    return positions.take(removed).to_pylist(), positions.take(added).to_pylist()


def _without(side: Codes, other: Codes) -> pa.Array:
    return pc.invert(pc.is_in(side, value_set=other))


def _counts(codes: Codes) -> pa.Table:
    found = pc.value_counts(codes)
    return pa.table({"values": found.field("values"), "counts": found.field("counts")})


def _paired(removed: pa.Array, added: pa.Array, keys: Codes) -> tuple[tuple[pa.Array, pa.Array], list[int], list[int]]:
    """Pairs the rows of both sides with the same key; returns the pairs, and the other rows of each side."""
    sides = [keys.take(removed), keys.take(added)]
    single = [_single(each) for each in sides]
    at = pc.index_in(sides[0], value_set=sides[1])
    is_pair = pc.and_(
        pc.is_valid(at), pc.and_(pc.is_in(sides[0], value_set=single[0]), pc.is_in(sides[0], value_set=single[1]))
    )
    pairs = removed.filter(is_pair), added.take(at.filter(is_pair))
    done = sides[0].filter(is_pair)
    is_left = pc.invert(is_pair)
    is_new = pc.invert(pc.is_in(sides[1], value_set=done))
    more, left, new = _by_key(
        zip(sides[0].filter(is_left).to_pylist(), removed.filter(is_left).to_pylist(), strict=True),
        zip(sides[1].filter(is_new).to_pylist(), added.filter(is_new).to_pylist(), strict=True),
    )
    first, second = (pa.array([each[side] for each in more], pa.int64()) for side in (0, 1))
    return (pa.concat_arrays([pairs[0], first]), pa.concat_arrays([pairs[1], second])), left, new


def _single(codes: Codes) -> pa.Array:
    """Returns the codes that occur once."""
    counted = _counts(codes)
    return counted["values"].filter(pc.equal(counted["counts"], 1)).combine_chunks()


def _by_key(
    removed: Iterable[tuple[int, int]], added: Iterable[tuple[int, int]]
) -> tuple[list[tuple[int, int]], list[int], list[int]]:
    """Pairs rows, given as the code of their key and their position, also of a key that several rows have."""
    waiting: dict[int, list[int]] = defaultdict(list)
    for code, position in removed:
        waiting[code].append(position)
    pairs, new = [], []
    for code, position in added:
        if waiting[code]:
            pairs.append((waiting[code].pop(0), position))
        else:
            new.append(position)
    return pairs, [each for positions in waiting.values() for each in positions], new


def _count_changed(codes: Codes, before: pa.Array, after: pa.Array) -> int:
    return int(pc.sum(pc.not_equal(codes.take(before), codes.take(after))).as_py() or 0)


def _combined(columns: Iterable[Codes], rows: int) -> Codes:
    """Returns codes of the rows from the codes of their columns."""
    found = pa.nulls(rows, pa.int64()).fill_null(0)
    for codes in columns:
        if rows:
            width = pc.max(codes).as_py() + 1
            found = _numbered(pc.add(pc.multiply(found, width), codes))
    return found


def _numbered(values: pa.Array) -> Codes:
    """Returns small codes of values, at most as many as values: a product of two of them fits into 64 bits."""
    encoded = pc.dictionary_encode(values, null_encoding="encode")
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    return encoded.indices.cast(pa.int64())


def _codes(before: pa.ChunkedArray, after: pa.ChunkedArray) -> Codes:
    if before.type == after.type and _is_flat(before.type):
        both = pa.chunked_array([*before.chunks, *after.chunks], before.type)
        return _numbered(_normal(both).combine_chunks())
    if pa.types.is_integer(before.type) and pa.types.is_integer(after.type):
        return _codes(before.cast(pa.int64()), after.cast(pa.int64()))
    values = [_text(each) for side in (before, after) for each in side.to_pylist()]
    return _numbered(pa.array(values, pa.large_string()))


def _is_flat(kind: pa.DataType) -> bool:
    return not pa.types.is_nested(kind) and not pa.types.is_dictionary(kind) and not pa.types.is_null(kind)


def _normal(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Returns floating point numbers with a single zero and a single NaN."""
    if not pa.types.is_floating(values.type):
        return values
    zero, nan = pa.scalar(0.0, values.type), pa.scalar(float("nan"), values.type)
    values = pc.if_else(pc.equal(values, zero), zero, values)
    return pc.if_else(pc.is_nan(values), nan, values)


def _text(value: Any) -> str | None:
    """Returns a text that is equal for equal values."""
    if value is None:
        return None
    if isinstance(value, bool):
        return f"b{value}"
    if isinstance(value, (int, float, decimal.Decimal)):
        return _number(value)
    if isinstance(value, Mapping):
        return f"{{{','.join(f'{name!r}:{_text(each)}' for name, each in sorted(value.items()))}}}"
    if isinstance(value, tuple):  # an entry of a map
        return f"({_text(value[0])}:{_text(value[1])})"
    if isinstance(value, list):
        parts = [_text(each) or _NULL for each in value]
        is_map = bool(value) and isinstance(value[0], tuple)
        return f"[{','.join(sorted(parts) if is_map else parts)}]"
    if isinstance(value, (datetime.datetime, datetime.date, bytes, str)):
        return f"{type(value).__name__}{value!r}"
    return f"{type(value).__name__}{value!r}"


def _number(value: float | decimal.Decimal) -> str:
    try:
        return f"n{Fraction(value)}"
    except (ValueError, OverflowError):  # NaN and the infinities
        return f"n{float(value)}"
