"""Finds the remedy for a mistake in a statement that Spark refuses, such as a type or a call of another platform."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from dbt.adapters.silt.engine.commands.spark.failures.causes import Cause
from dbt.adapters.silt.engine.sql import mistakes
from dbt.adapters.silt.engine.sql.foreign_names import CALLS, type_remedy
from dbt.adapters.silt.engine.sql.tokens import double_quotes_remedy

_AT: Final = re.compile(r"""at or near '(?P<text>"[^"]+"|[^']+)'""")
_PATTERN: Final = "Spark's patterns are those of Java, as in 'yyyy-MM-dd HH:mm:ss'"
_UNITS: Final = frozenset("year quarter month week isoweek day hour minute second millisecond microsecond".split())
_INTERVAL: Final = re.compile(r'"date_(?P<word>add|sub)\(')


def remedy_of(cause: Cause) -> str | None:
    """Returns the remedy for the mistake that an error condition of Spark is about, if a remedy is known."""
    family = cause.condition.partition(".")[0]
    if family == "PARSE_SYNTAX_ERROR":
        return syntax_remedy(cause.message, cause.sql)
    if family in ("UNSUPPORTED_DATATYPE", "DATATYPE_MISSING_SIZE"):
        said = str(cause.parameters.get("typeName") or cause.parameters.get("type") or "")
        return type_remedy(said.strip('"'))
    if family == "UNSUPPORTED_TIME_TYPE":
        return type_remedy("time")
    if family == "WRONG_NUM_ARGS" and str(cause.parameters.get("actualNum")) == "1":
        spark = CALLS.get(str(cause.parameters.get("functionName", "")).strip("`"))
        return None if spark is None else f"In Spark, write {spark}"
    if family in ("INVALID_DATETIME_PATTERN", "INCONSISTENT_BEHAVIOR_CROSS_VERSION"):
        return _PATTERN if "PATTERN" in cause.condition else None
    if family == "NOT_A_TABLE_FUNCTION" and "flatten" in cause.message:
        return "In Spark, write `lateral explode(a)`, or `lateral posexplode(a)` with the positions"
    return _of_time(cause.condition, cause.parameters)


def syntax_remedy(said: str, sql: str) -> str | None:
    """Returns the remedy for the likely mistake in a text that Spark cannot parse, if it is known.

    Args:
        said: the message of Spark's parser.
        sql: the text; may be empty.
    """
    found = _AT.search(said)
    at = "" if found is None else found["text"]
    return double_quotes_remedy(at) if at.startswith('"') else mistakes.remedy(sql, at)


def _of_time(condition: str, parameters: Mapping[str, Any]) -> str | None:
    """Returns the remedy for a mistake with dates, times and their units."""
    family = condition.partition(".")[0]
    if family == "UNRESOLVED_COLUMN":
        name = str(parameters.get("objectName", "")).strip("`")
        if name.lower() in _UNITS:
            return (
                f"Check the column's name; if `{name}` is a unit of time, write `date_trunc('{name}', t)` or "
                f"`datediff({name}, start, end)`"
            )
    if family == "INVALID_PARAMETER_VALUE" and "DATETIME_UNIT" in condition:
        return "Write the unit without quotes, as in `datediff(day, start, end)`"
    if family == "INVALID_EXTRACT_FIELD" and "epoch" in str(parameters.get("field", "")).lower():
        return "In Spark, write unix_timestamp(t)"
    found = _INTERVAL.match(str(parameters.get("sqlExpr", "")))
    if family == "DATATYPE_MISMATCH" and found is not None and "INTERVAL" in str(parameters.get("inputType", "")):
        return f"In Spark, write `d {'+' if found['word'] == 'add' else '-'} interval 1 day`"
    return None
