"""Parses the values of table properties; an invalid value raises ValueError, which names the allowed values.

Source: the Delta specification, section "Table Properties", and delta-spark's DeltaConfig.
"""

from __future__ import annotations

import enum
import re
from decimal import Decimal

_UNITS_MS = {
    "microsecond": Decimal("0.001"),
    "millisecond": Decimal(1),
    "second": Decimal(1_000),
    "minute": Decimal(60_000),
    "hour": Decimal(3_600_000),
    "day": Decimal(86_400_000),
    "week": Decimal(604_800_000),
}
_INTERVAL_PART = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-z]+)\s*")


class IsolationLevel(enum.Enum):
    """Which concurrent commits conflict (specification: "Isolation Levels"; spelled as in `delta.isolationLevel`)."""

    SERIALIZABLE = "Serializable"
    WRITE_SERIALIZABLE = "WriteSerializable"
    SNAPSHOT = "SnapshotIsolation"


def boolean(text: str) -> bool:
    folded = text.strip().lower()
    if folded not in ("true", "false"):
        raise ValueError("it must be true or false")
    return folded == "true"


def _integer(text: str, least: int) -> int:
    if not re.fullmatch(r"\s*[+-]?[0-9]+\s*", text) or int(text) < least:
        raise ValueError(f"it must be a whole number, at least {least}")
    return int(text)


def positive(text: str) -> int:
    return _integer(text, 1)


def not_negative(text: str) -> int:
    return _integer(text, 0)


def at_least_minus_one(text: str) -> int:
    return _integer(text, -1)


def isolation_level(text: str) -> IsolationLevel:
    for level in IsolationLevel:
        if level.value.lower() == text.strip().lower():
            return level
    raise ValueError("it must be one of " + ", ".join(level.value for level in IsolationLevel))


def mapping_mode(text: str) -> str:
    if text.lower() not in ("none", "name", "id"):
        raise ValueError("it must be one of none, name, id")
    return text.lower()


def checkpoint_policy(text: str) -> str:
    if text.lower() not in ("classic", "v2"):
        raise ValueError("it must be one of classic, v2")
    return text.lower()


def columns(text: str) -> tuple[str, ...]:
    """Splits at commas outside backticks; a name keeps its backticks and dots."""
    names = [name.strip() for name in re.findall(r"((?:`(?:[^`]|``)*`|[^,`])+)", text)]
    return tuple(name for name in names if name)


def interval_ms(text: str) -> int:
    """Parses an interval without months and years, such as `interval 1 week 2 days`."""
    rest = re.sub(r"^\s*interval\s+", "", text.lower())
    total = Decimal(0)
    position = 0
    while position < len(rest):
        match = _INTERVAL_PART.match(rest, position)
        unit = None if match is None else _UNITS_MS.get(match[2].removesuffix("s"))
        if match is None or unit is None:
            raise ValueError(
                "it must be an interval such as `interval 7 days`, in weeks, days, hours, minutes, seconds"
            )
        total += Decimal(match[1]) * unit
        position = match.end()
    if not rest.strip():
        raise ValueError("it must be an interval such as `interval 7 days`")
    return int(total)


def byte_size(text: str) -> int:
    """Parses a number of bytes, with or without one of Spark's units: `256mb` is `268435456`."""
    match = re.fullmatch(r"\s*([0-9]+)\s*([kmgtp]?)b?\s*", text.lower())
    if match is None or int(match[1]) == 0:
        raise ValueError("it must be a number of bytes above 0, or a number with a unit, such as `256mb`")
    return int(match[1]) << 10 * " kmgtp".index(match[2] or " ")


def any_text(text: str) -> str:
    return text
