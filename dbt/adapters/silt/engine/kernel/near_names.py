"""Finds the known names that a mistyped one may stand for."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_MOST = 3
_SIMILAR = 0.6


def near_names(wanted: str, known: Iterable[str], most: int = _MOST) -> list[str]:
    """Returns the names that are spelled nearly as the wanted one, in any case, the nearest first.

    Args:
        most: how many at most.
    """
    by_lower = {name.lower(): name for name in known}
    near = difflib.get_close_matches(wanted.lower(), list(by_lower), n=most, cutoff=_SIMILAR)
    return [by_lower[each] for each in near]


def nearest(wanted: str, known: Iterable[str]) -> str | None:
    """Returns the name that is spelled most like the wanted one; None if none is like it."""
    found = near_names(wanted, known, 1)
    return found[0] if found else None
