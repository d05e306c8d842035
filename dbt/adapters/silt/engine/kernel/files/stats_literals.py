"""Writes minimum and maximum values as the JSON literals of a file's statistics.

Source: the Delta specification, section "Per-file Statistics", and for long strings delta-spark.
The literals are strings of JSON rather than Python values, so that decimals are not converted to floats.
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
    """Returns a JSON number, or for NaN and infinities the string that Spark writes."""
    return float_text(value) if math.isfinite(value) else f'"{float_text(value)}"'


def float_text(value: float) -> str:
    """Returns the spelling of a number in a log, outside of JSON."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(value)


def decimal_literal(unscaled: int, scale: int) -> str:
    """Returns a JSON number with exactly the type's digits."""
    digits = tuple(int(digit) for digit in str(abs(unscaled)))
    return format(Decimal((int(unscaled < 0), digits, -scale)), "f")


def date_literal(days: int) -> str | None:
    """Returns a date from days since 1970-01-01, or None for a year outside 1 to 9999, which has no literal."""
    ordinal = days + _EPOCH_DAY
    if not date.min.toordinal() <= ordinal <= date.max.toordinal():
        return None
    return f'"{date.fromordinal(ordinal).isoformat()}"'


def timestamp_literal(microseconds: int, zoned: bool) -> str | None:
    """Returns a timestamp in UTC, truncated to milliseconds as the specification requires for minimum and maximum.

    A reader therefore adds 1 ms to the maximum. Returns None for a year outside 1 to 9999.
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
    """Returns a lower bound of `value`: its first `prefix_length` UTF-16 units plus the rest of a split character.

    Returns None if the table disables statistics of strings (length 0).
    """
    return value[: _prefix_end(value, prefix_length)] if prefix_length > 0 else None


def truncated_maximum(value: str, prefix_length: int) -> str | None:
    """Returns a string not less, in UTF-8 order, than any string of which `value` is the greatest.

    A longer value is shortened to its prefix, followed by a character above the first removed character: U+007F if that
    suffices, or else U+10FFFF. If U+10FFFF itself would be removed, the prefix extends past it. Returns None if the
    prefix then exceeds twice the prefix length, or if the table disables statistics of strings (length 0).
    """
    if prefix_length <= 0:
        return None
    end = _prefix_end(value, prefix_length)
    while end < len(value) and value[end] == UTF8_MAX_CHARACTER:
        end += 1
    if utf16_length(value[:end]) > 2 * prefix_length:
        return None
    if end == len(value):
        return value
    return value[:end] + (ASCII_MAX_CHARACTER if value[end] < ASCII_MAX_CHARACTER else UTF8_MAX_CHARACTER)


def _prefix_end(value: str, units: int) -> int:
    """Returns the number of characters in the first `units` UTF-16 units of the value; a split character counts."""
    if len(value) <= units and value.isascii():
        return len(value)
    used = 0
    for position, character in enumerate(value):
        if used >= units:
            return position
        used += utf16_length(character)
    return len(value)


def utf16_length(text: str) -> int:
    """Returns the number of UTF-16 units, by which bounds are shortened: a character beyond U+FFFF has two."""
    return len(text) + sum(character > "\uffff" for character in text)
