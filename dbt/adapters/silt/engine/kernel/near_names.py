"""Finds the known names that are similar to a mistyped name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_MOST = 3
_SIMILAR = 0.6


def near_names(name: str, known: Iterable[str], most: int = _MOST) -> list[str]:
    """Returns the names whose spelling is similar to a name, in any case, the nearest first.

    Args:
        most: greatest number of names.
    """
    by_lower = {each.lower(): each for each in known}
    near = difflib.get_close_matches(name.lower(), list(by_lower), n=most, cutoff=_SIMILAR)
    return [by_lower[each] for each in near]


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Returns the name whose spelling is most similar to a name, or None if no name is similar."""
    found = near_names(name, known, 1)
    return found[0] if found else None
