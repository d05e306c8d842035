"""JSON of another program is parsed, or refused with a ValueError, and every value that is parsed can be written."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.silt.engine.kernel import foreign_json

_TEXTS = st.text(st.characters(exclude_categories=()), max_size=6)
_VALUES = st.recursive(_TEXTS | st.integers() | st.none(), lambda inner: st.dictionaries(_TEXTS, inner, max_size=3))


@given(_VALUES, st.booleans())
def test_a_value_is_parsed_unless_no_encoding_can_write_it(value: object, escapes: bool) -> None:
    text = json.dumps(value, ensure_ascii=escapes)
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        with pytest.raises(ValueError):
            foreign_json.loads(text.encode("utf-8", "surrogatepass"))
    else:
        assert foreign_json.loads(text) == foreign_json.loads(text.encode()) == value
        assert foreign_json.loads_exactly(text) == value


@pytest.mark.parametrize("text", [r'"\ud83d"', r'{"\uDE00": 1}', r'["\ude00\ud83d"]'])
def test_half_of_a_surrogate_pair_is_refused(text: str) -> None:
    for parse in (foreign_json.loads, foreign_json.loads_exactly):
        with pytest.raises(ValueError, match="half of a surrogate pair"):
            parse(text)


def test_an_escaped_backslash_before_the_letters_of_a_surrogate_is_text() -> None:
    assert foreign_json.loads(r'"\\ud83d"') == r"\ud83d"


def test_a_document_may_start_with_a_byte_order_mark() -> None:
    assert foreign_json.loads(b"\xef\xbb\xbf[1]") == [1]


@pytest.mark.parametrize("depth", [foreign_json.DEEPEST + 1, 100_000])
def test_deep_nesting_is_refused(depth: int) -> None:
    with pytest.raises(ValueError, match="levels deep"):
        foreign_json.loads("[" * depth + "]" * depth)
