"""The JSON of statistics after rows of a file were deleted (`tightBounds`)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.silt.engine.kernel.files import stats_json

leaves = st.one_of(
    st.integers(), st.booleans(), st.text(max_size=5), st.decimals(allow_nan=False, allow_infinity=False)
)
names = st.one_of(st.sampled_from(["tightBounds", "numRecords", "a"]), st.text(max_size=3))
objects = st.dictionaries(names, st.one_of(leaves, st.dictionaries(names, leaves, max_size=3)), max_size=4)


def spelled(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + " , ".join(f"{json.dumps(name)} : {spelled(member)}" for name, member in value.items()) + " }"
    return json.dumps(value) if isinstance(value, str | bool | int | None) else format(value, "f")


@given(objects, st.sampled_from(["absent", None, True, False]))
def test_statistics_with_wide_bounds_keep_the_spelling_of_all_other_values(
    document: dict[str, object], tight: bool | str | None
) -> None:
    document = {name: value for name, value in document.items() if name != "tightBounds"}
    given_document = document if tight == "absent" else {**document, "tightBounds": tight}
    found = json.loads(stats_json.widened(spelled(given_document)), parse_float=str, parse_int=str)
    expected = json.loads(spelled(document), parse_float=str, parse_int=str)
    assert found == {**expected, "tightBounds": False}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{}", '{"tightBounds":false}'),
        (' {"numRecords":3} ', '{"numRecords":3,"tightBounds":false}'),
        ('{"tightBounds" : true,"numRecords":3}', '{"tightBounds":false,"numRecords":3}'),
        ('{"minValues":{"d":1.50E0}}', '{"minValues":{"d":1.50E0},"tightBounds":false}'),
        (
            '{"minValues":{"tightBounds":true},"tightBounds":true}',
            '{"minValues":{"tightBounds":true},"tightBounds":false}',
        ),
    ],
)
def test_only_the_flag_changes(text: str, expected: str) -> None:
    assert stats_json.widened(text) == expected
