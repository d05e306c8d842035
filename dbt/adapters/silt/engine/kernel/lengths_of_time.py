"""Lengths of time, as people write them in profiles, configs, statements and commands, and as answers show them."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_PART: Final = re.compile(
    r"([0-9]{1,18}(?:\.[0-9]{1,18})?)\s*(s|sec(?:ond)?s?|m|min(?:ute)?s?|h|hrs?|hours?|d|days?|w|weeks?)(?![a-z])\s*"
)


def length_of_time(text: str) -> timedelta:
    """Parses a length of time: `5 minutes`, `1 hour 30 minutes`, `7d`, or as `time_text` shows it, `2m10s`.

    Raises:
        ValueError: if the text is not a length of time.
    """
    rest = re.sub(r"^\s*interval\b", "", text.lower()).strip()
    parts = [] if _PART.sub("", rest) else _PART.findall(rest)
    if not parts:
        raise ValueError(f"`{text}` is not a length of time")
    try:
        return sum((timedelta(**{_UNITS[unit[0]]: float(number)}) for number, unit in parts), timedelta())
    except OverflowError as error:
        raise ValueError(f"`{text}` is too long") from error


def time_text(seconds: float) -> str:
    """Formats a length of time in whole seconds, such as `2m10s`, `5m` or `1h`."""
    minutes, rest = divmod(round(seconds), 60)
    parts = ((minutes // 60, "h"), (minutes % 60, "m"), (rest, "s"))
    return "".join(f"{number}{unit}" for number, unit in parts if number) or "0s"
