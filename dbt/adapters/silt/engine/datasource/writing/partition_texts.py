"""Spells partition values as in the log.

Source: the Delta specification, section "Partition Value Serialization"; a timestamp as `YYYY-MM-DDThh:mm:ss.ffffffZ`.
"""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from dbt.adapters.silt.engine.kernel.errors import PartitionValueError


def partition_text(value: Any, name: str, table: str) -> str | None:
    """Returns the spelling of a value in the log, or None for null.

    Args:
        value: value in Python.
        name: name of the column.

    Raises:
        PartitionValueError: if the log cannot hold the value.
    """
    if value is None:
        return None
    text = _text(value)
    if text == "" or "\0" in text:
        what = "an empty string, which the format does not distinguish from null" if text == "" else "the character NUL"
        raise PartitionValueError(f"the partition column `{name}` would hold {what}", table=table)
    return text


def _text(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case datetime():
            return _time(value)
        case date():
            return value.isoformat()
        case Decimal():
            return format(value, "f")
        case float():
            return _float(value)
    return str(value)


def _time(moment: datetime) -> str:
    if moment.tzinfo is not None:
        return moment.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
    return moment.isoformat(sep=" ", timespec="microseconds" if moment.microsecond else "seconds")


def _float(number: float) -> str:
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    return repr(number)
