"""The literals of statistics. The examples of the string rules are from delta-spark's StatsCollectionSuite."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.silt.engine.kernel.files import stats_json
from dbt.adapters.silt.engine.kernel.files.stats_json import truncated_maximum, truncated_minimum

TOP = "\U0010ffff"
DEL = "\x7f"
BAD = "\ufffd"
EMOJI = "abcdefghijklm\U0001f49e\U0001f609\U0001f495\n\U0001f940\U0001f339\U0001f490\U0001f33a\U0001f337\U0001f33c"
HAN = "\u6f22\u5b57\u4eee\u540d\ud55c\uae00"

MAXIMA = [
    ("abcd", 0, None),
    (f"a{TOP}d", 2, f"a{TOP}{DEL}"),
    ("abcd", 6, "abcd"),
    ("abcdef", 6, "abcdef"),
    (f"abcde{BAD}", 6, f"abcde{BAD}"),
    (f"abcd{BAD}abcd", 6, f"abcd{BAD}a{DEL}"),
    (f"{BAD}abcd", 6, f"{BAD}abcd"),
    (f"abcdef{BAD}", 6, f"abcdef{TOP}"),
    (f"abcdef{BAD}{BAD}", 6, f"abcdef{TOP}"),
    (f"abcdef-abcdef{BAD}", 6, f"abcdef{DEL}"),
    (f"abcdef{BAD}abcdef", 6, f"abcdef{TOP}"),
    (f"abcde{BAD}abcdef{BAD}abcdef{BAD}abcdef", 6, f"abcde{BAD}{DEL}"),
    (f"{HAN}\u0ba4\u0bae\u0bbf", 6, f"{HAN}{TOP}"),
    (f"{HAN}{BAD}{BAD}", 6, f"{HAN}{TOP}"),
    (HAN, 6, HAN),
    ("abcdef\U0001f680", 6, f"abcdef{TOP}"),
    (TOP * 4, 1, None),
    (TOP * 4, 4, TOP * 4),
    (BAD * 4, 2, f"{BAD}{BAD}{TOP}"),
    (BAD * 3, 1, f"{BAD}{TOP}"),
    (f"{EMOJI}\U0001f33b\U0001f337\U0001f940", 32, f"{EMOJI}{TOP}"),
]
MINIMA = [
    ("abcd", 3, "abc"),
    ("abcdef", 6, "abcdef"),
    (f"abcde{BAD}", 6, f"abcde{BAD}"),
    (TOP * 4, 1, TOP),
    (TOP * 2, 1, TOP),
    ("abcd", 0, None),
]


@pytest.mark.parametrize(("value", "length", "expected"), MAXIMA)
def test_a_long_maximum_is_truncated_and_raised(value: str, length: int, expected: str | None) -> None:
    assert truncated_maximum(value, length) == expected


@pytest.mark.parametrize(("value", "length", "expected"), MINIMA)
def test_a_long_minimum_is_truncated(value: str, length: int, expected: str | None) -> None:
    assert truncated_minimum(value, length) == expected


EDGES = ["a", "b", "\x7e", DEL, "\x80", BAD, "\uffff", "\U00010000", TOP]
CHARACTERS = st.sampled_from(EDGES) | st.characters(codec="utf-8")


@given(st.text(CHARACTERS, max_size=12), st.text(CHARACTERS, max_size=12), st.integers(1, 5))
def test_truncated_bounds_are_still_bounds_in_utf8_order(one: str, other: str, length: int) -> None:
    low, high = sorted((one, other), key=str.encode)
    minimum, maximum = truncated_minimum(low, length), truncated_maximum(high, length)
    assert minimum is not None
    assert minimum.encode() <= low.encode()
    assert maximum is None or maximum.encode() >= high.encode()


@pytest.mark.parametrize(
    ("unscaled", "scale", "text"),
    [
        (0, 2, "0.00"),
        (5, 3, "0.005"),
        (-12345, 2, "-123.45"),
        (10**37, 0, "1" + "0" * 37),
        (-1, 38, "-0." + "0" * 37 + "1"),
    ],
)
def test_a_decimal_is_a_bare_number_with_all_its_digits(unscaled: int, scale: int, text: str) -> None:
    assert stats_json.decimal_literal(unscaled, scale) == text
    assert json.loads(text, parse_float=Decimal) == Decimal(text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (float("nan"), '"NaN"'),
        (float("inf"), '"Infinity"'),
        (float("-inf"), '"-Infinity"'),
        (-0.0, "-0.0"),
        (1e300, "1e+300"),
    ],
)
def test_numbers_that_json_lacks_are_spelled_as_spark_spells_them(value: float, text: str) -> None:
    assert stats_json.float_literal(value) == text


def test_a_timestamp_is_rounded_down_to_the_millisecond_before_1970_too() -> None:
    assert stats_json.timestamp_literal(1_999, zoned=True) == '"1970-01-01T00:00:00.001Z"'
    assert stats_json.timestamp_literal(-1, zoned=True) == '"1969-12-31T23:59:59.999Z"'
    assert stats_json.timestamp_literal(-1, zoned=False) == '"1969-12-31T23:59:59.999"'


def test_years_without_a_text_form_have_no_statistic() -> None:
    assert stats_json.timestamp_literal(10**18, zoned=True) is None
    assert stats_json.date_literal(10_000_000) is None
    assert stats_json.date_literal(-719_162) == '"0001-01-01"'
