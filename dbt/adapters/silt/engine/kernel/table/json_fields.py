"""Reading the fields of an action's JSON, each as the type that the specification gives it.

Source: the Delta specification, section "Actions". A field that is absent or null is None; one of another type is a
ValueError that names it, so that no log is read as something that it does not say. Where a checkpoint's rows are read
the same way, a map may be a list of pairs, as Arrow has it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeVar

Body: TypeAlias = Mapping[str, Any]

T = TypeVar("T")

_LONG: Final = range(-(1 << 63), 1 << 63)


def required(value: T | None, key: str) -> T:
    """The value.

    Raises:
        ValueError: it is None.
    """
    if value is None:
        raise ValueError(f"`{key}` is missing")
    return value


def text(body: Body, key: str) -> str | None:
    """A string."""
    value = body.get(key)
    if value is None or isinstance(value, str):
        return value
    raise _other_type(key, "a string", value)


def long(body: Body, key: str) -> int | None:
    """A 64-bit integer."""
    value = body.get(key)
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value in _LONG):
        return value
    raise _other_type(key, "a whole number of 64 bits", value)


def boolean(body: Body, key: str) -> bool | None:
    """True or false."""
    value = body.get(key)
    if value is None or isinstance(value, bool):
        return value
    raise _other_type(key, "a boolean", value)


def struct(body: Body, key: str) -> Body | None:
    """An object."""
    value = body.get(key)
    if value is None or isinstance(value, Mapping):
        return value
    raise _other_type(key, "an object", value)


def strings(body: Body, key: str) -> tuple[str, ...] | None:
    """An array of strings."""
    value = body.get(key)
    if value is None:
        return None
    if not isinstance(value, list | tuple) or not all(isinstance(member, str) for member in value):
        raise _other_type(key, "an array of strings", value)
    return tuple(value)


def text_map(body: Body, key: str) -> dict[str, str | None] | None:
    """A map from strings to strings or null."""
    value = body.get(key)
    if value is None:
        return None
    pairs = list(value.items()) if isinstance(value, Mapping) else value
    if not isinstance(pairs, list) or not all(map(_is_pair, pairs)):
        raise _other_type(key, "a map of strings", value)
    return dict(pairs)


def full_map(body: Body, key: str) -> dict[str, str] | None:
    """A map from strings to strings."""
    found = text_map(body, key)
    if found is not None and None in found.values():
        raise _other_type(key, "a map of strings", found)
    return found  # type: ignore[return-value]


def _is_pair(pair: Any) -> bool:
    if not isinstance(pair, Sequence) or isinstance(pair, str) or len(pair) != 2:
        return False
    return isinstance(pair[0], str) and (pair[1] is None or isinstance(pair[1], str))


def _other_type(key: str, wanted: str, value: Any) -> ValueError:
    return ValueError(f"`{key}` is not {wanted}: {str(value)[:80]}")
