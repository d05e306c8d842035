"""Replaces spans of SQL text, and maps the positions of the rest of the text."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import NamedTuple


class Edit(NamedTuple):
    """`text[start:end]` becomes `new`."""

    start: int
    end: int
    new: str


def edited(text: str, edits: Iterable[Edit]) -> str:
    """Returns the edited text; an edit inside the span of another edit is lost with that span."""
    pieces: list[str] = []
    done = 0
    for start, end, new in _outermost(edits):
        pieces += (text[done:start], new)
        done = end
    return "".join(pieces) + text[done:]


def moved(positions: Iterable[int], edits: Iterable[Edit]) -> Mapping[int, int]:
    """Maps positions in the text to positions in the edited text; positions in replaced spans are omitted."""
    kept = _outermost(edits)
    ends = [edit.end for edit in kept]
    shifts = [0, *accumulate(len(edit.new) - (edit.end - edit.start) for edit in kept)]
    after = {position: bisect_right(ends, position) for position in positions}
    is_left = {at: count == len(kept) or at < kept[count].start for at, count in after.items()}
    return {position: position + shifts[count] for position, count in after.items() if is_left[position]}


def _outermost(edits: Iterable[Edit]) -> list[Edit]:
    kept: list[Edit] = []
    for edit in sorted(edits, key=lambda each: (each.start, each.start != each.end, -each.end)):
        if not kept or edit.start >= kept[-1].end:
            kept.append(edit)
    return kept
