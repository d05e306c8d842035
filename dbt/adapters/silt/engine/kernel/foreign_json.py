"""Reads JSON that another program may have written: text that cannot be used is a ValueError, however it is built.

Python's own reader gives up on deep nesting with a RecursionError, and what it still reads may be too deep for the
functions that walk through it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, Final

DEEPEST: Final = 200
"""How many objects and arrays may be inside one another. A level of a nested column takes three."""

_TOO_DEEP: Final = f"it is nested more than {DEEPEST} levels deep"
_EXACT: Final = json.JSONDecoder(parse_float=Decimal)
"""Made once: `json.loads` with an argument makes one for each line, which takes as long as a short line itself."""


def loads(text: str | bytes) -> Any:
    """The value that the text is the JSON of.

    Raises:
        ValueError: the text is no JSON, no UTF-8, or nested too deeply.
    """
    try:
        return _checked(json.loads(text), text)
    except RecursionError as error:
        raise ValueError(_TOO_DEEP) from error


def loads_exactly(text: str) -> Any:
    """The same; a number with a fraction becomes a Decimal, never a float."""
    try:
        return _checked(_EXACT.decode(text), text)
    except RecursionError as error:
        raise ValueError(_TOO_DEEP) from error


def _checked(value: Any, text: str | bytes) -> Any:
    # Counting is fast, and almost no text has so many brackets.
    opened = text.count(b"{") + text.count(b"[") if isinstance(text, bytes) else text.count("{") + text.count("[")
    if opened > DEEPEST and _is_too_deep(value):
        raise ValueError(_TOO_DEEP)
    return value


def _is_too_deep(value: Any) -> bool:
    level = [value]
    for _ in range(DEEPEST):
        level = [member for each in level for member in _members(each) if isinstance(member, dict | list)]
        if not level:
            return False
    return True


def _members(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
