"""Replaces spans of a text, and says where the rest of the text moves to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Edit(NamedTuple):
    """`text[start:end]` becomes `new`."""

    start: int
    end: int
    new: str


def edited(text: str, edits: Iterable[Edit]) -> str:
    """The text with the edits made; one inside the span of another is lost with that span."""
    pieces: list[str] = []
    done = 0
    for start, end, new in _outermost(edits):
        pieces += (text[done:start], new)
        done = end
    return "".join(pieces) + text[done:]


def moved(position: int, edits: Iterable[Edit]) -> int | None:
    """Where a position of the text is once it is edited; None where its span is replaced."""
    shift = 0
    for start, end, new in _outermost(edits):
        if start <= position < end:
            return None
        if end <= position:
            shift += len(new) - (end - start)
    return position + shift


def _outermost(edits: Iterable[Edit]) -> list[Edit]:
    kept: list[Edit] = []
    for edit in sorted(edits, key=lambda each: (each.start, each.start != each.end, -each.end)):
        if not kept or edit.start >= kept[-1].end:
            kept.append(edit)
    return kept
