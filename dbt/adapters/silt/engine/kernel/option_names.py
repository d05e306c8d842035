"""Refuses options that do not exist: silently ignoring an option would return other rows than requested."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from dbt.adapters.silt.engine.kernel.errors import InvalidArgumentError
from dbt.adapters.silt.engine.kernel.near_names import nearest


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
