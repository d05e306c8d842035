"""The columns, values and conditions of random projects, with Spark's comparisons in plain Python."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final, TypeAlias

Row: TypeAlias = Mapping[str, Any]

CORE: Final = {
    "k": "bigint",
    "g": "string",
    "d": "date",
    "at": "timestamp",
    "n": "decimal(10,2)",
    "x": "double",
}
"""The columns that every relation has, with their types. Times are in UTC and have no zone in Python."""


def literal(value: Any, kind: str) -> str:
    """The value as an SQL literal of a type."""
    if value is None:
        return f"cast(null as {kind})"
    if kind == "string":
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n") + "'"
    if kind == "date":
        return f"date'{value}'"
    if kind == "timestamp":
        return f"timestamp'{value}'"
    return f"cast('{value}' as {kind})"


def field(value: Any) -> str:
    """The value as a field of a CSV file."""
    if value is None:
        return ""
    text = str(value)
    return '"' + text.replace('"', '""') + '"' if any(each in text for each in '",\n') else text


def as_key(value: Any) -> Any:
    """Equal for values that Spark regards as equal: null and null, NaN and NaN, 0.0 and -0.0."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value


def key_of(row: Row, columns: Sequence[str]) -> tuple[Any, ...]:
    return tuple(as_key(row.get(column)) for column in columns)


def as_stored(value: Any) -> str:
    """Equal for values that a table stores alike: 0.0 and -0.0 differ."""
    if isinstance(value, dict):
        return str(sorted((name, as_stored(each)) for name, each in value.items()))
    return f"{value:.2f}" if isinstance(value, Decimal) else repr(value)


def in_order(value: Any) -> Any:
    """Sorts values other than null as Spark does: strings by their bytes, NaN last."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value)
    return value


_COMPARISONS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "=": lambda left, right: left == right,
    "<>": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    ">=": lambda left, right: left >= right,
}


@dataclass(frozen=True)
class Condition:
    """A comparison of a column with a value.

    Attributes:
        operator: `=`, `<>`, `<`, `>=`, `<=>` or `is null`.
        negated: whether `not` precedes the comparison.
    """

    column: str
    operator: str
    value: Any = None
    negated: bool = False

    def sql(self, prefix: str = "") -> str:
        name = prefix + self.column
        compared = "" if self.operator == "is null" else " " + literal(self.value, CORE[self.column])
        return f"not ({name} {self.operator}{compared})" if self.negated else f"{name} {self.operator}{compared}"

    def of(self, row: Row) -> bool | None:
        """True, false, or null."""
        value = row[self.column]
        if self.operator == "is null":
            result = value is None
        elif self.operator == "<=>":
            result = as_key(value) == as_key(self.value)
        elif value is None:
            return None
        else:
            result = _COMPARISONS[self.operator](in_order(value), in_order(self.value))
        return result is not self.negated


Value: TypeAlias = int | str | date | datetime | Decimal | float | None
