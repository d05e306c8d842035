"""Reads the fields of an action's JSON as the types that the specification defines.

Source: the Delta specification, section "Actions". An absent or null field is None; a field of another type raises a
ValueError with its name, so that a damaged log is never misread. A map may be a list of pairs, as in the rows that
Arrow reads from a checkpoint.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeVar

from dbt.adapters.silt.engine.kernel.errors import UnsupportedFeatureError

FORMAT: Final = 1
"""The format of the documents of a warehouse: of publications, branches, runs and tests."""

Body: TypeAlias = Mapping[str, Any]

T = TypeVar("T")

_LONG: Final = range(-(1 << 63), 1 << 63)
_TEXTS: Final = frozenset((str,))
_TEXTS_OR_NULL: Final = frozenset((str, type(None)))


def required(value: T | None, key: str) -> T:
    """Returns the value.

    Raises:
        ValueError: if it is None.
    """
    if value is None:
        raise ValueError(f"`{key}` is missing")
    return value


def text(body: Body, key: str) -> str | None:
    """Returns a string field."""
    value = body.get(key)
    if value is None or isinstance(value, str):
        return value
    raise _other_type(key, "a string", value)


def long(body: Body, key: str) -> int | None:
    """Returns a 64-bit integer field."""
    value = body.get(key)
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value in _LONG):
        return value
    raise _other_type(key, "a whole number of 64 bits", value)


def boolean(body: Body, key: str) -> bool | None:
    """Returns a Boolean field."""
    value = body.get(key)
    if value is None or isinstance(value, bool):
        return value
    raise _other_type(key, "a boolean", value)


def struct(body: Body, key: str) -> Body | None:
    """Returns an object field."""
    value = body.get(key)
    # The check of the class `Mapping` itself is slow.
    if value is None or type(value) is dict or isinstance(value, Mapping):
        return value
    raise _other_type(key, "an object", value)


def strings(body: Body, key: str) -> tuple[str, ...] | None:
    """Returns a field that is an array of strings."""
    value = body.get(key)
    if value is None:
        return None
    if not isinstance(value, list | tuple) or not all(isinstance(member, str) for member in value):
        raise _other_type(key, "an array of strings", value)
    return tuple(value)


def text_map(body: Body, key: str) -> dict[str, str | None] | None:
    """Returns a field that is a map from strings to strings or null."""
    value = body.get(key)
    if value is None:
        return None
    if (
        type(value) is dict
        and _TEXTS.issuperset(map(type, value))
        and _TEXTS_OR_NULL.issuperset(map(type, value.values()))
    ):
        return value.copy()
    pairs = list(value.items()) if isinstance(value, Mapping) else value
    if not isinstance(pairs, list) or not all(map(_is_pair, pairs)):
        raise _other_type(key, "a map of strings", value)
    return dict(pairs)


def full_map(body: Body, key: str) -> dict[str, str] | None:
    """Returns a field that is a map from strings to strings."""
    found = text_map(body, key)
    if found is not None and None in found.values():
        raise _other_type(key, "a map of strings", found)
    return found  # type: ignore[return-value]


def _is_pair(pair: Any) -> bool:
    if not isinstance(pair, Sequence) or isinstance(pair, str) or len(pair) != 2:
        return False
    return isinstance(pair[0], str) and (pair[1] is None or isinstance(pair[1], str))


def _other_type(key: str, expected: str, value: Any) -> ValueError:
    return ValueError(f"`{key}` is not {expected}: {str(value)[:80]}")


def check_format(body: Any, where: str) -> None:
    """Checks the format of a document of this package; a document without a format has the first.

    Args:
        where: the document, for messages.

    Raises:
        ValueError: if its format is not a positive integer.
        UnsupportedFeatureError: if a later version of this package has written it.
    """
    written = body.get("format", FORMAT) if isinstance(body, dict) else FORMAT
    if isinstance(written, bool) or not isinstance(written, int) or written < FORMAT:
        raise ValueError(f"its format is {written!r:.50}")
    if written > FORMAT:
        raise UnsupportedFeatureError(
            f"{where} was written by a later version of dbt-silt, in format {written}", remedy="Use that version"
        )
