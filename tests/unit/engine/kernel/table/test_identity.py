"""Numbers of identity columns."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbt.adapters.silt.engine.kernel.errors import CorruptLogError, UnsupportedStatementError
from dbt.adapters.silt.engine.kernel.table.actions import Metadata
from dbt.adapters.silt.engine.kernel.table.identity import START, STEP, Identity, identities, identity_of, moved
from dbt.adapters.silt.engine.kernel.table.schema import PrimitiveType, StructField, StructType
from tests.examples import examples

LONG = PrimitiveType("long")


@settings(deadline=None, max_examples=examples(100))
@given(st.integers(-50, 50), st.integers(-7, 7).filter(bool), st.lists(st.integers(0, 4), max_size=6))
def test_numbers_follow_start_and_step_and_are_unique(start: int, step: int, counts: list[int]) -> None:
    column = StructField("n", LONG).with_metadata(**Identity(start, step).metadata)
    now, numbers = Metadata("id", StructType((column,)).to_json()), []  # type: ignore[var-annotated]
    for count in counts:
        identity = identities(StructType.from_json(now.schema_string))["n"]
        numbers.extend(identity.first + place * step for place in range(count))
        now = moved(now, {"n": count})
    assert numbers == [start + place * step for place in range(sum(counts))]


@given(st.integers(-50, 50), st.integers(-7, 7).filter(bool), st.integers(-90, 90))
def test_after_a_high_water_mark_off_the_sequence_the_next_number_of_the_sequence_follows(
    start: int, step: int, mark: int
) -> None:
    first = Identity(start, step, mark=mark).first
    assert (first - start) % step == 0 and (first - start) // step >= 0
    assert (first - mark) * step > 0
    assert first == start or abs(first - mark) <= abs(step)


def test_numbers_end_with_the_range_of_the_type() -> None:
    assert Identity(2**63 - 2).last(2) == 2**63 - 1
    for identity, count in ((Identity(2**63 - 2), 3), (Identity(-(2**63), -1, mark=-(2**63)), 1)):
        with pytest.raises(UnsupportedStatementError, match="no numbers left"):
            identity.last(count)


def test_a_broken_identity_is_a_damaged_log() -> None:
    for entries in ({START: 1}, {START: 1, STEP: "much"}, {START: 1, STEP: 0}):
        with pytest.raises(CorruptLogError, match="`n`"):
            identity_of(StructField("n", LONG, metadata=entries))
