"""How one column's minimum and maximum are spelled in a file's statistics.

Source: the Delta specification, section "Per-file Statistics", and for long strings the reference implementation.
The spellings are JSON texts rather than Python values, because no float may stand between a decimal and its digits.
"""

from __future__ import annotations

import json
import math
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

ASCII_MAX_CHARACTER = "\x7f"
UTF8_MAX_CHARACTER = "\U0010ffff"

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_EPOCH_DAY = date(1970, 1, 1).toordinal()


def integer_literal(value: int) -> str:
    return str(value)


def float_literal(value: float) -> str:
    """A JSON number; Spark's text for what JSON has no number for."""
    if math.isnan(value):
        return '"NaN"'
    if math.isinf(value):
        return '"Infinity"' if value > 0 else '"-Infinity"'
    return repr(value)


def decimal_literal(unscaled: int, scale: int) -> str:
    """A bare JSON number with exactly the type's digits."""
    digits = tuple(int(digit) for digit in str(abs(unscaled)))
    return format(Decimal((int(unscaled < 0), digits, -scale)), "f")


def date_literal(days: int) -> str | None:
    """`days` since 1970-01-01; None for a year outside 1 to 9999, which the text form has no room for."""
    ordinal = days + _EPOCH_DAY
    if not date.min.toordinal() <= ordinal <= date.max.toordinal():
        return None
    return f'"{date.fromordinal(ordinal).isoformat()}"'


def timestamp_literal(microseconds: int, zoned: bool) -> str | None:
    """UTC, cut down to the millisecond, as the specification has it for minimum and maximum alike.

    A reader therefore takes the maximum for one millisecond more. None for a year outside 1 to 9999.
    """
    try:
        moment = _EPOCH + timedelta(milliseconds=microseconds // 1000)
    except OverflowError:
        return None
    text = moment.replace(tzinfo=None).isoformat(timespec="milliseconds")
    return f'"{text}Z"' if zoned else f'"{text}"'


def string_literal(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def truncated_minimum(value: str, prefix_length: int) -> str | None:
    """A string not greater than `value`: its first `prefix_length` UTF-16 units, one more if that splits a character.

    None where no statistics of strings are wanted (length 0).
    """
    return value[: _prefix_end(value, prefix_length)] if prefix_length > 0 else None


def truncated_maximum(value: str, prefix_length: int) -> str | None:
    """A string not less, in UTF-8 order, than any string of which `value` is the greatest.

    A longer value keeps its prefix and takes a character that is above the one it lost: U+007F where that is enough,
    else U+10FFFF; where U+10FFFF itself was lost, the prefix reaches past it. None where that makes the text longer
    than twice the prefix, or where no statistics of strings are wanted (length 0).
    """
    if prefix_length <= 0:
        return None
    end = _prefix_end(value, prefix_length)
    while end < len(value) and value[end] == UTF8_MAX_CHARACTER:
        end += 1
    if _utf16_length(value[:end]) > 2 * prefix_length:
        return None
    if end == len(value):
        return value
    return value[:end] + (ASCII_MAX_CHARACTER if value[end] < ASCII_MAX_CHARACTER else UTF8_MAX_CHARACTER)


def _prefix_end(value: str, units: int) -> int:
    """How many characters the first `units` UTF-16 units of the value make up, a split one counted whole."""
    if len(value) <= units and value.isascii():
        return len(value)
    used = 0
    for position, character in enumerate(value):
        if used >= units:
            return position
        used += _utf16_length(character)
    return len(value)


def _utf16_length(text: str) -> int:
    return len(text) + sum(character > "\uffff" for character in text)
