"""Reads JSON that another program may have written: unusable text of any form raises a ValueError.

Python's own reader raises a RecursionError on deep nesting, and a value that it still reads may be too deep for the
functions that traverse it. It also accepts half of a surrogate pair (RFC 8259, section 8.2), which no encoding can
write, and `NaN` and `Infinity`, which are not JSON.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, Final, NoReturn

DEEPEST: Final = 200
"""The greatest depth of nested objects and arrays. A level of a nested column takes three."""

_TOO_DEEP: Final = f"it is nested more than {DEEPEST} levels deep"
_HALF: Final = "it contains half of a surrogate pair, which is not a character"


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON number")


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse(text)


# Created once: `json.loads` with an argument creates a decoder per call, which takes as long as a short line.
_PLAIN: Final = json.JSONDecoder(parse_float=_finite, parse_constant=_refuse)
_EXACT: Final = json.JSONDecoder(parse_float=Decimal, parse_constant=_refuse)
_SHOWN: Final = json.JSONDecoder(parse_float=Decimal, parse_constant=str)


def loads(text: str | bytes) -> Any:
    """Parses JSON.

    Raises:
        ValueError: if the text is not JSON, not UTF-8, nested too deeply, or contains half of a surrogate pair, or a
            number that is not finite or has more digits than Python converts.
    """
    return _parsed(_PLAIN, text if isinstance(text, str) else text.decode("utf-8-sig"))


def loads_exactly(text: str, is_only_shown: bool = False) -> Any:
    """Parses JSON as `loads` does; a number with a fraction becomes a Decimal, never a float.

    Args:
        is_only_shown: whether its values are never written again, so that strings may contain half of a surrogate pair,
            and `NaN` and `Infinity` are strings.
    """
    return _parsed(_SHOWN if is_only_shown else _EXACT, text, is_only_shown)


def _parsed(decoder: json.JSONDecoder, text: str, is_only_shown: bool = False) -> Any:
    try:
        value = decoder.decode(text)
    except RecursionError as error:
        raise ValueError(_TOO_DEEP) from error
    except ArithmeticError as error:  # the exponent of a Decimal has a limit
        raise ValueError("it contains a number whose exponent is too long") from error
    # Counting and searching are fast, and very few texts have so many brackets, or escaped surrogates.
    if text.count("{") + text.count("[") > DEEPEST and _is_too_deep(value):
        raise ValueError(_TOO_DEEP)
    if not is_only_shown and ("\\ud" in text or "\\uD" in text) and not _is_writable(value):
        raise ValueError(_HALF)
    return value


def _is_writable(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False, default=str).encode()
    except UnicodeEncodeError:
        return False
    return True


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
