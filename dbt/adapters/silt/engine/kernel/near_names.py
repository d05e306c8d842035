"""Finds the known names that are similar to a mistyped name, and refuses options that do not exist."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable

from dbt.adapters.silt.engine.kernel.errors import InvalidArgumentError

_MOST = 3
_SIMILAR = 0.6


def near_names(name: str, known: Iterable[str], most: int = _MOST, similar: float = _SIMILAR) -> list[str]:
    """Returns the names whose spelling is similar to a name, in any case, the nearest first.

    Args:
        most: greatest number of names.
        similar: least similarity, from 0 to 1.
    """
    by_lower = {each.lower(): each for each in known}
    near = difflib.get_close_matches(name.lower(), list(by_lower), n=most, cutoff=similar)
    return [by_lower[each] for each in near]


def some_of(names: Collection[str], most: int = 30) -> str:
    """Returns the names for a message; of more than `most` names, the first and the number of the rest."""
    shown = ", ".join(list(names)[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most:,} more"


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Returns the name whose spelling is most similar to a name, or None if no name is similar."""
    found = near_names(name, known, 1)
    return found[0] if found else None


def check(given: Iterable[str], known: Collection[str], what: str) -> None:
    """Raises an error unless every name is known, in its exact spelling.

    Args:
        what: owner of the options in the message, such as `a read`.

    Raises:
        InvalidArgumentError: if a name is not known.
    """
    for name in sorted(given):
        if name not in known:
            raise unknown(name, known, what)


def unknown(name: str, known: Collection[str], what: str) -> InvalidArgumentError:
    """Returns the error for an option that does not exist; its remedy is the nearest name, or all names."""
    near = nearest(name, known)
    remedy = f"The options are {', '.join(known)}" if near is None else f"Did you mean `{near}`?"
    return InvalidArgumentError(f"{what} has no option `{name}`", remedy=remedy)
