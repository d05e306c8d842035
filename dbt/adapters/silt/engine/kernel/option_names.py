"""Refuses options that do not exist: one that is left out without a word gives other rows than were asked for."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable

from dbt.adapters.silt.engine.kernel.errors import InvalidArgumentError


def check(given: Iterable[str], known: Collection[str], what: str) -> None:
    """Passes when every name is known, as it is written.

    Args:
        what: has the options, for the message: `a read`.

    Raises:
        InvalidArgumentError: a name is not known.
    """
    for name in sorted(given):
        if name not in known:
            raise unknown(name, known, what)


def unknown(name: str, known: Collection[str], what: str) -> InvalidArgumentError:
    """The error for an option that does not exist; its remedy is the nearest name, or all of them."""
    by_lower = {each.lower(): each for each in known}
    near = difflib.get_close_matches(name.lower(), by_lower, n=1)
    remedy = f"Did you mean `{by_lower[near[0]]}`?" if near else f"The options are {', '.join(known)}"
    return InvalidArgumentError(f"{what} has no option `{name}`", remedy=remedy)
