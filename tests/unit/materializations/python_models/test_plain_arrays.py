"""Encoded arrays become plain arrays with the same values, also as slices, with nulls and nested."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from dbt.adapters.silt.materializations.python_models.plain_arrays import plain

INDICES = pa.array([1, None, 0, 1], pa.int8())
LISTS = [["a", None], None, [], ["b"], ["c", "d"]]


def _dictionary(values: pa.Array) -> pa.Array:
    return pa.DictionaryArray.from_arrays(INDICES, values)


def _dictionaries() -> dict[str, pa.Array]:
    values: dict[str, pa.Array] = {
        "views": pa.array(["x", "y"], pa.string_view()),
        "bytes": pa.array([b"x", b"y"], pa.binary_view()),
        "decimals": pa.array([Decimal("1.5"), Decimal("2")], pa.decimal32(5, 2)),
        "nanoseconds": pa.array([1, 1500], pa.timestamp("ns")),
        "lists": pa.array([["x"], ["y"]], pa.list_view(pa.string_view())),
        "structs": pa.array([{"a": 1}, {"a": 2}]),
        "dictionaries": pa.array(["x", "y"]).dictionary_encode(),
        "runs": pa.RunEndEncodedArray.from_arrays([1, 2], pa.array(["x", "y"])),
    }
    return {f"a dictionary of {name}": _dictionary(each) for name, each in values.items()}


RUNS = pa.RunEndEncodedArray.from_arrays([2, 3, 5], pa.array(["a", None, "b"], pa.string_view()))
ENCODED: dict[str, pa.Array] = {
    **_dictionaries(),
    "runs": RUNS,
    "views of lists": pa.array(LISTS, pa.list_view(pa.string_view())),
    "large views of lists": pa.array(LISTS, pa.large_list_view(pa.string())),
    "lists of views of lists": pa.array([[["a"], None], None], pa.list_(pa.list_view(pa.string()))),
    "lists of runs": pa.ListArray.from_arrays(pa.array([0, 2, 5]), RUNS),
    "large lists": pa.array(LISTS, pa.large_list(pa.string_view())),
    "lists of one size": pa.array([["a", "b"], None, ["c", None]], pa.list_(pa.string_view(), 2)),
    "structs": pa.array([{"a": "x"}, None, {"a": None}], pa.struct([("a", pa.string_view())])),
    "maps": pa.array([[("k", "v")], None, []], pa.map_(pa.string_view(), pa.string_view())),
    "whether": pa.ExtensionArray.from_storage(pa.bool8(), pa.array([5, 0, None], pa.int8())),
    "documents": pa.array(['{"a":1}', None], pa.json_()),
}


@pytest.mark.parametrize("case", ENCODED)
def test_an_encoded_array_keeps_its_values(case: str) -> None:
    whole = ENCODED[case]
    for array in (whole, whole.slice(1), whole.slice(1, 1), whole.slice(0, 0)):
        found = plain(array)
        found.validate(full=True)
        assert _values(found) == _values(array)
        assert not any(word in str(found.type) for word in ("view", "dictionary", "run_end", "extension"))


def test_identifiers_become_text() -> None:
    array = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0123456789abcdef", None], pa.binary(16)))
    assert plain(array).to_pylist() == ["30313233-3435-3637-3839-616263646566", None]


def test_an_array_without_an_encoding_is_the_same_array() -> None:
    array = pa.array([[datetime.date(2026, 3, 1)], None])
    assert plain(array) is array


def _values(array: pa.Array) -> list[Any]:
    if pa.types.is_timestamp(array.type) or "timestamp" in str(array.type):
        return [None if each is None or not each.is_valid else str(each) for each in array]
    return array.to_pylist()
