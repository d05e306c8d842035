"""Writes a predicate as a condition of Spark SQL that is true for each row for which the predicate is true."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Final

from dbt.adapters.silt.engine.kernel.identifiers import quote, string_literal
from dbt.adapters.silt.engine.kernel.table import expressions

_MOST_VALUES: Final = 10
"""The length of a list up to which Spark compares each value with the statistics of row groups."""

_EPOCH: Final = datetime(1970, 1, 1)
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_TRUE: Final = "true"


def condition_text(predicate: expressions.Expression, alias: str) -> str:
    """Returns a condition on the columns of a relation.

    Parts that Spark cannot use to skip rows are `true`: it is a condition for skipping, and may be true for more rows.

    Args:
        alias: the name of the relation.
    """
    match predicate:
        case expressions.Constant(possible) if True not in possible:
            return "false"
        case expressions.And(parts):
            texts = [text for text in (condition_text(part, alias) for part in parts) if text != _TRUE]
            return f"({' and '.join(texts)})" if texts else _TRUE
        case expressions.Or(parts):
            texts = [condition_text(part, alias) for part in parts]
            return _TRUE if _TRUE in texts or not texts else f"({' or '.join(texts)})"
        case expressions.IsNull(column):
            return f"{_name(column, alias)} is null"
        case expressions.IsNotNull(column):
            return f"{_name(column, alias)} is not null"
        case expressions.Comparison(operator, column, value):
            return _compared(operator, _name(column, alias), value)
        case expressions.In(column, values) if 0 < len(values) <= _MOST_VALUES:
            literals = [_literal(value) for value in values if value is not None]
            known = [each for each in literals if each is not None]
            return f"{_name(column, alias)} in ({', '.join(known)})" if known and len(known) == len(literals) else _TRUE
    return _TRUE


def _compared(operator: str, name: str, value: expressions.Value | None) -> str:
    literal = None if value is None else _literal(value)
    return _TRUE if literal is None else f"{name} {operator} {literal}"


def _name(column: expressions.Column, alias: str) -> str:
    return ".".join((alias, *map(quote, column.parts)))


def _literal(value: expressions.Value) -> str | None:
    """Returns a literal, regardless of the session's time zone; None for floating-point numbers and binary values."""
    match value:
        case bool():
            return str(value).lower()
        case int():
            return str(value)
        case Decimal():
            return f"{value:f}BD"
        case str():
            return string_literal(value)
        case datetime(tzinfo=None):
            return f"timestampadd(microsecond, {_microseconds(value)}, timestamp_ntz'1970-01-01 00:00:00')"
        case datetime():
            return f"timestamp_micros({_microseconds(value.astimezone(timezone.utc).replace(tzinfo=None))})"
        case date():
            return f"date_from_unix_date({value.toordinal() - _EPOCH_DAY})"
    return None


def _microseconds(value: datetime) -> int:
    return (value - _EPOCH) // timedelta(microseconds=1)
