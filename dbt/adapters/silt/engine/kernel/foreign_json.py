"""Reads JSON that another program may have written: unusable text of any form raises a ValueError.

Python's own reader raises a RecursionError on deep nesting, and a value that it still reads may be too deep for the
functions that traverse it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, Final

DEEPEST: Final = 200
"""The greatest depth of nested objects and arrays. A level of a nested column takes three."""

_TOO_DEEP: Final = f"it is nested more than {DEEPEST} levels deep"
_EXACT: Final = json.JSONDecoder(parse_float=Decimal)
"""Created once: `json.loads` with an argument creates a decoder per call, which takes as long as a short line."""


def loads(text: str | bytes) -> Any:
    """Parses JSON.

    Raises:
        ValueError: if the text is not JSON, not UTF-8, or nested too deeply.
    """
    try:
        return _checked(json.loads(text), text)
    except RecursionError as error:
        raise ValueError(_TOO_DEEP) from error


def loads_exactly(text: str) -> Any:
    """Parses JSON as `loads` does; a number with a fraction becomes a Decimal, never a float."""
    try:
        return _checked(_EXACT.decode(text), text)
    except RecursionError as error:
        raise ValueError(_TOO_DEEP) from error


def _checked(value: Any, text: str | bytes) -> Any:
    # Counting is fast, and very few texts have so many brackets.
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
