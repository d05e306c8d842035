"""Lengths of time that people write, and that answers show."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.silt.engine.kernel.lengths_of_time import length_of_time, time_text


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("5 minutes", timedelta(minutes=5)),
        ("1 Hour", timedelta(hours=1)),
        ("90s", timedelta(seconds=90)),
        ("1h30m", timedelta(hours=1, minutes=30)),
        (" 1 hour 30 min ", timedelta(hours=1, minutes=30)),
        ("1.5 hours", timedelta(minutes=90)),
        ("interval 2 weeks", timedelta(weeks=2)),
        ("0 minutes", timedelta()),
    ],
)
def test_a_length_of_time_is_written_in_words_or_letters(text: str, length: timedelta) -> None:
    assert length_of_time(text) == length


@pytest.mark.parametrize(
    "text",
    [
        *("", "5", "minutes", "5 months", "1 year", "-5 minutes", "1 hour -5 minutes", "5 minutes or so", "1.2.3 days"),
        *("\u0665 days", "interval", "intervals 5 minutes", "1" * 18 + " weeks", "1" * 400 + "m"),
    ],
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a length of time|is too long"):
        length_of_time(text)


@given(st.integers(0, 10**7))
def test_a_shown_length_of_time_is_read_again(seconds: int) -> None:
    assert length_of_time(time_text(seconds)) == timedelta(seconds=seconds)
