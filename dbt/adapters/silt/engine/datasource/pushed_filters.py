"""Turns filters that Spark pushes down into predicates that rule out files, row groups and rows.

Spark filters the rows again, so it alone applies filters that have no exact translation.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

from dbt.adapters.silt.engine.kernel.table import expressions
from dbt.adapters.silt.engine.kernel.table.schema import DataType, DecimalType, StructType
from dbt.adapters.silt.engine.sql.conditions.predicates import compares_otherwise, field_at

_OPERATORS: Final[dict[str, expressions.Operator]] = {
    "EqualTo": "=",
    "EqualNullSafe": "<=>",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
}
_KINDS: Final[dict[str, type]] = {
    **dict.fromkeys(("byte", "short", "integer", "long"), int),
    **dict.fromkeys(("float", "double"), float),
    "boolean": bool,
    "string": str,
    "date": date,
    "timestamp": datetime,
    "timestamp_ntz": datetime,
}
_PUSHING: Final = "pyspark.sql.worker.data_source_pushdown_filters"


def is_pushing() -> bool:
    """Returns whether Spark pushes its filters to this process.

    Spark raises an error for a reader with filters in a session that does not push them
    (`spark.sql.python.filterPushdown.enabled`), and only the name of the running module reveals which kind of session
    it is.
    """
    return _PUSHING in sys.modules


def predicate(filters: Iterable[Any], schema: StructType) -> expressions.Expression:
    """Returns the conjunction of the filters that translate exactly."""
    parts = tuple(part for each in filters if (part := _understood(each, schema)) is not None)
    return expressions.And(parts) if parts else expressions.TRUE


def _understood(given: Any, schema: StructType) -> expressions.Expression | None:
    kind = type(given).__name__
    if kind == "Not":
        inner = _understood(given.child, schema)
        return None if inner is None else expressions.Not(inner)
    path = tuple(given.attribute)
    field = field_at(schema, path)
    if field is None or compares_otherwise(schema, path):
        return None
    column = expressions.Column(path)
    if kind in ("IsNull", "IsNotNull"):
        return expressions.IsNull(column) if kind == "IsNull" else expressions.IsNotNull(column)
    if kind == "In":
        return expressions.In(column, given.value) if all(_fits(each, field.type) for each in given.value) else None
    if not _fits(given.value, field.type):
        return None
    if kind == "StringStartsWith":
        return expressions.StartsWith(column, given.value)
    return expressions.Comparison(_OPERATORS[kind], column, given.value) if kind in _OPERATORS else None


def _fits(value: expressions.Value | None, data_type: DataType) -> bool:
    """Returns whether a value has the column's own type."""
    if isinstance(data_type, DecimalType):
        return type(value) in (int, Decimal)
    name = getattr(data_type, "name", "")
    if name not in _KINDS or type(value) is not _KINDS[name]:
        return False
    return not isinstance(value, datetime) or (value.tzinfo is not None) == (name == "timestamp")
