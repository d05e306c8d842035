"""Refuses options that do not exist: one that is left out without a word gives other rows than were asked for."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from dbt.adapters.silt.engine.kernel.errors import InvalidArgumentError
from dbt.adapters.silt.engine.kernel.near_names import nearest


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
    near = nearest(name, known)
    remedy = f"The options are {', '.join(known)}" if near is None else f"Did you mean `{near}`?"
    return InvalidArgumentError(f"{what} has no option `{name}`", remedy=remedy)
