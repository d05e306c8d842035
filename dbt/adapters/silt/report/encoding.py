"""Shortens the page's data: repeated strings become numbers, and rows end with their last value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class Texts:
    """The strings of the page without duplicates, numbered in the order in which they were first requested."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, text: str | None) -> int | None:
        """Returns the number of a string, if there is a string."""
        return None if text is None else self._numbers.setdefault(text, len(self._numbers))

    def all(self) -> list[str]:
        """Returns the strings in the order of their numbers."""
        return list(self._numbers)


def row(*values: Any) -> list[Any]:
    """Returns the values without trailing nulls."""
    last = len(values)
    while last and values[last - 1] is None:
        last -= 1
    return list(values[:last])


def present(**fields: Any) -> dict[str, Any]:
    """Returns the fields that are neither null nor empty."""
    return {name: value for name, value in fields.items() if value is not None and not _is_empty(value)}


def _is_empty(value: Any) -> bool:
    return isinstance(value, str | Sequence | dict) and not value
