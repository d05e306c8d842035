"""Replaced spans of a text, and the new positions of the rest."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.silt.engine.sql.spans import Edit, edited, moved

TEXT = "abcdefghij"


def _edits() -> st.SearchStrategy[list[Edit]]:
    """Draws edits of TEXT that do not overlap, in any order."""
    bounds = st.lists(st.integers(0, len(TEXT)), unique=True, max_size=6).map(sorted)
    spans = bounds.map(lambda found: list(zip(found[::2], found[1::2], strict=False)))
    return st.tuples(spans, st.lists(st.sampled_from(("", "-", "----")), min_size=3, max_size=3)).map(
        lambda pair: [Edit(*span, new) for span, new in zip(reversed(pair[0]), pair[1], strict=False)]
    )


@given(_edits())
def test_unreplaced_text_is_found_at_its_new_position(edits: list[Edit]) -> None:
    text = edited(TEXT, edits)
    replaced = {position for start, end, _ in edits for position in range(start, end)}
    for position, character in enumerate(TEXT):
        there = moved([position], edits).get(position)
        assert there is None if position in replaced else there is not None and text[there] == character
    assert len(text) == len(TEXT) - len(replaced) + sum(len(new) for *_, new in edits)


def test_an_insertion_is_placed_before_a_replacement_at_the_same_position() -> None:
    edits = [Edit(2, 4, "XY"), Edit(2, 2, "+"), Edit(4, 4, "!")]
    assert edited(TEXT, edits) == "ab+XY!efghij"
    assert moved([1, 2, 4], edits) == {1: 1, 4: 6}


def test_an_edit_inside_a_replaced_span_is_dropped() -> None:
    edits = [Edit(3, 5, "inner"), Edit(2, 8, "O")]
    assert edited(TEXT, edits) == "abOij"
    assert moved([4, 6, 8], edits) == {8: 3}
