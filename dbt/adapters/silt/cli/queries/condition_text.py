"""Formats predicates as SQL, for display."""

from __future__ import annotations

from datetime import date, datetime

from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.table.expressions import (
    And,
    Column,
    Comparison,
    Constant,
    Expression,
    In,
    IsNotNull,
    IsNull,
    Not,
    Or,
    StartsWith,
    Value,
)

_FEW = 5


def condition_text(condition: Expression) -> str:
    """Returns the condition; its unknown parts become `...`."""
    match condition:
        case Constant():
            return "..."
        case And(parts):
            return " and ".join(map(_inner, parts)) or "true"
        case Or(parts):
            return " or ".join(map(_inner, parts)) or "false"
        case Not(part):
            return f"not {_inner(part)}"
        case IsNull(column):
            return f"{column_text(column)} is null"
        case IsNotNull(column):
            return f"{column_text(column)} is not null"
        case StartsWith(column, prefix):
            return f"{column_text(column)} like {_value(prefix + '%')}"
        case Comparison(operator, column, value):
            return f"{column_text(column)} {operator} {_value(value)}"
        case In(column, values):
            shown = [*map(_value, values[:_FEW]), *(["..."] if len(values) > _FEW else [])]
            return f"{column_text(column)} in ({', '.join(shown)})"


def column_text(column: Column) -> str:
    return ".".join(part if part.isidentifier() else quote(part) for part in column.parts)


def _inner(part: Expression) -> str:
    text = condition_text(part)
    return f"({text})" if isinstance(part, And | Or) else text


def _value(value: Value | None) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, datetime):
        return f"'{value.isoformat(sep=' ').replace('+00:00', 'Z')}'"
    if isinstance(value, date | str):
        return "'" + str(value).replace("'", "\\'") + "'"
    return f"X'{value.hex()}'" if isinstance(value, bytes) else str(value)
