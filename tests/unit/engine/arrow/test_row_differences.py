"""Differences of rows are exact: they equal those of a comparison of each row with each other in Python."""

from __future__ import annotations

import datetime
import decimal
import math
import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from dbt.adapters.silt.engine.arrow.row_differences import row_differences

NAN = float("nan")
D = decimal.Decimal
POINT = pa.struct([("x", pa.float64()), ("y", pa.int64())])
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "long": (pa.int64(), [None, 0, 1, -(2**63), 2**63 - 1]),
    "double": (pa.float64(), [None, 0.0, -0.0, NAN, math.inf, -math.inf, 1.5]),
    "float": (pa.float32(), [None, 0.0, -0.0, NAN, 1.5]),
    "string": (pa.string(), [None, "", "a", "null", "nan", "é"]),
    "binary": (pa.binary(), [None, b"", b"\0", b"a"]),
    "bool": (pa.bool_(), [None, True, False]),
    "decimal": (pa.decimal128(10, 2), [None, D("0.00"), D("-1.50"), D("1.00")]),
    "date": (pa.date32(), [None, datetime.date(2026, 1, 1), datetime.date(1, 1, 1)]),
    "time": (pa.timestamp("us", "UTC"), [None, datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)]),
    "list": (pa.list_(pa.float64()), [None, [], [None], [0.0], [-0.0], [NAN], [1.0, 2.0]]),
    "struct": (POINT, [None, {"x": None, "y": None}, {"x": 0.0, "y": 1}, {"x": -0.0, "y": 1}, {"x": NAN, "y": 2}]),
    "map": (pa.map_(pa.string(), pa.int64()), [None, [], [("a", 1)], [("a", 1), ("b", None)], [("b", None), ("a", 1)]]),
}
RETYPED: dict[str, list[pa.DataType]] = {
    "long": [pa.int64(), pa.int32(), pa.decimal128(25, 3), pa.float64()],
    "decimal": [pa.decimal128(10, 2), pa.decimal128(20, 5), pa.decimal256(50, 10)],
    "float": [pa.float32(), pa.float64()],
}


def plain(value: Any) -> Any:
    """A value of Python that is equal for equal values."""
    if isinstance(value, bool) or value is None or isinstance(value, (str, bytes)):
        return type(value).__name__, value
    if isinstance(value, float) and math.isnan(value):
        return "number", "NaN"
    if isinstance(value, (int, float, decimal.Decimal)):
        return "number", value + 0 if value else 0  # Python compares numbers of all types exactly
    if isinstance(value, dict):
        return "struct", tuple(sorted((name, plain(each)) for name, each in value.items()))
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return "map", frozenset((name, plain(each)) for name, each in value)
    if isinstance(value, list):
        return "list", tuple(map(plain, value))
    return type(value).__name__, value


def expected(before: pa.Table, after: pa.Table, key: list[str]) -> tuple[int, int, int]:
    """How many rows are removed, added and changed."""
    sides = [
        Counter(tuple(plain(value) for value in row.values()) for row in each.to_pylist()) for each in (before, after)
    ]
    left, new = sides[0] - sides[1], sides[1] - sides[0]
    if not key:
        return left.total(), new.total(), 0
    at = [before.column_names.index(name) for name in key]
    keys = [Counter(tuple(row[i] for i in at) for row in each.elements()) for each in (left, new)]
    changed = (keys[0] & keys[1]).total()
    return left.total() - changed, new.total() - changed, changed


def random_table(draw: random.Random, names: list[str], retypes: bool) -> pa.Table:
    rows = draw.choice([0, 1, 3, 8, 20])
    columns = {}
    for name in names:
        kind, values = VALUES[name]
        if name == "long" and retypes:
            values = [None, 0, 1, 2, 7]
        column = pa.array([draw.choice(values) for _ in range(rows)], kind)
        columns[name] = column.cast(draw.choice(RETYPED[name])) if retypes and name in RETYPED else column
    return pa.table(columns)


@pytest.mark.parametrize("seed", range(1_000))
def test_differences_equal_those_of_a_plain_comparison(seed: int) -> None:
    draw = random.Random(seed)
    names = draw.sample(sorted(VALUES), draw.randint(1, 4))
    before, after = (random_table(draw, names, seed % 3 == 0) for _ in range(2))
    if draw.random() < 0.5:  # most rows are equal
        after = pa.concat_tables([after.slice(0, 2), before.cast(after.schema)]) if seed % 3 else after
    key = draw.sample(names, draw.randint(0, len(names)))
    found = row_differences(before, after, key)
    assert (len(found.removed), len(found.added), len(found.changed)) == expected(before, after, key)
    positions = [*found.removed, *(old for old, _ in found.changed)], [*found.added, *(new for _, new in found.changed)]
    for side, table in zip(positions, (before, after), strict=True):
        assert len(set(side)) == len(side) and all(0 <= each < table.num_rows for each in side)
    left, new = (table.take(pa.array(side, pa.int64())) for side, table in zip(positions, (before, after), strict=True))
    assert expected(left, new, key) == expected(before, after, key)
    for old, new in found.changed:
        pair = [{name: plain(each[name].to_pylist()[at]) for name in key} for each, at in ((before, old), (after, new))]
        assert pair[0] == pair[1]


def test_changed_rows_are_counted_by_column() -> None:
    before = pa.table({"id": [1, 2, 3, None], "a": [1.0, NAN, -0.0, 5.0], "b": [[1], [2], [3], [4]]})
    after = pa.table({"id": [3, 2, None, 1], "a": [0.0, 2.0, 5.0, 1.0], "b": [[9], [9], [4], [1]]})
    found = row_differences(before, after, ["id"])
    assert found.columns == {"a": 1, "b": 2}
    assert sorted(found.changed) == [(1, 1), (2, 0)] and not found.removed and not found.added


def test_many_rows_are_compared_in_seconds() -> None:
    rows = 1_000_000
    before = pa.table({"id": pa.array(range(rows)), "name": pa.array([f"n{each % 1000}" for each in range(rows)])})
    changed = pa.array(["changed" if each % 1000 == 0 else f"n{each % 1000}" for each in range(rows)])
    found = row_differences(before, before.set_column(1, "name", changed), ["id"])
    assert (len(found.changed), found.columns) == (1000, {"name": 1000})
