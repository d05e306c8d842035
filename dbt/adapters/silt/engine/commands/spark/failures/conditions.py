"""Maps error conditions of Spark, or the classes of their SQLSTATEs, to errors of this engine and to remedies.

Source: Spark's `error-conditions.json`, with the SQLSTATE of each condition; its first two characters are the class.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from dbt.adapters.silt.engine.commands.spark.failures.causes import Cause
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.sql import mistakes
from dbt.adapters.silt.engine.sql.foreign_names import CALLS
from dbt.adapters.silt.engine.sql.portable_types import type_remedy
from dbt.adapters.silt.engine.sql.tokens import double_quotes_remedy

_AT: Final = re.compile(r"""at or near '(?P<text>"[^"]+"|[^']+)'""")
_PATTERN: Final = "Spark's patterns are those of Java, as in 'yyyy-MM-dd HH:mm:ss'"
_UNITS: Final = frozenset("year quarter month week isoweek day hour minute second millisecond microsecond".split())
_UNIT_FIRST: Final[Mapping[str, str]] = {"dateadd": "dateadd(day, 1, t)", "timestampadd": "timestampadd(day, 1, t)"}

_PARTS: Final[Mapping[str, str]] = {
    "date": "to_date(t)",
    "time": "date_format(t, 'HH:mm:ss')",
    "isoweek": "extract(week from t)",
    "weekday": "weekday(t), which is 0 on Monday",
    "day_of_week": "extract(dayofweek from t), which is 1 on Sunday",
    "day_of_year": "extract(dayofyear from t)",
    "epoch": "unix_timestamp(t)",
    "epoch_second": "unix_timestamp(t)",
    "epoch_millisecond": "unix_millis(t)",
}
"""Spark's equivalents of the fields that EXTRACT has elsewhere."""
_ABBREVIATION: Final = re.compile(r"\d [A-Z]{3,4}'?$")
_INTERVAL: Final = re.compile(r'"date_(?P<word>add|sub)\(')


@dataclass(frozen=True)
class Kind:
    """The error for a condition.

    Attributes:
        error: the class of the error.
        remedy: the remedy; by default the class's own.
    """

    error: type[errors.SiltError]
    remedy: str | None = None


SYNTAX: Final = frozenset(("PARSE_SYNTAX_ERROR", "INVALID_IDENTIFIER"))
"""Spark's error conditions for text that is not valid SQL."""

_RAISED: Final = Kind(
    errors.DataRejectedError, "Nothing was written: correct the data, or the check that the statement makes"
)
_FUNCTION: Final = Kind(
    errors.InvalidStatementError, "Nothing was written: correct the function, or the data that it is called with"
)
_BY_FAMILY: Final[Mapping[str, Kind]] = {
    "UNRESOLVED_COLUMN": Kind(errors.ColumnNotFoundError),
    "UNRESOLVED_FIELD": Kind(errors.ColumnNotFoundError),
    "FIELD_NOT_FOUND": Kind(errors.ColumnNotFoundError),
    "TABLE_OR_VIEW_NOT_FOUND": Kind(errors.RelationNotFoundError),
    "CAST_INVALID_INPUT": Kind(errors.ValueNotCastableError),
    "CAST_OVERFLOW": Kind(errors.ValueNotCastableError),
    "CAST_OVERFLOW_IN_TABLE_INSERT": Kind(errors.ValueNotCastableError),
    "NUMERIC_VALUE_OUT_OF_RANGE": Kind(errors.ValueNotCastableError),
    "INVALID_CONF_VALUE": Kind(errors.InvalidSettingError),
    "CANNOT_MODIFY_CONFIG": Kind(errors.InvalidSettingError),
    "CANNOT_MODIFY_STATIC_CONFIG": Kind(errors.InvalidSettingError),
    "INVALID_PARAMETER_VALUE": Kind(errors.InvalidStatementError),
    **dict.fromkeys(SYNTAX, Kind(errors.StatementSyntaxError)),
}
_BY_CLASS: Final[Mapping[str, Kind]] = {
    "07": Kind(errors.InvalidStatementError),
    "0A": Kind(errors.UnsupportedStatementError),
    "21": Kind(errors.DataRejectedError),
    "22": Kind(errors.DataRejectedError),
    "23": Kind(errors.DataRejectedError),
    "38": _FUNCTION,
    "39": _FUNCTION,
    "42": Kind(errors.InvalidStatementError),
    "54": Kind(errors.InvalidStatementError),
    "P0": _RAISED,
}
_BY_EXCEPTION: Final[Mapping[str, Kind]] = {
    "AnalysisException": Kind(errors.InvalidStatementError),
    "ParseException": Kind(errors.InvalidStatementError),
    "ArithmeticException": Kind(errors.DataRejectedError),
    "ArrayIndexOutOfBoundsException": Kind(errors.DataRejectedError),
    "DateTimeException": Kind(errors.DataRejectedError),
    "NumberFormatException": Kind(errors.DataRejectedError),
    "IllegalArgumentException": Kind(errors.InvalidStatementError),
    "UnsupportedOperationException": Kind(errors.InvalidStatementError),
    "PatternSyntaxException": Kind(errors.InvalidStatementError),
    "UnknownFormatConversionException": Kind(errors.InvalidStatementError),
    "IllegalFormatConversionException": Kind(errors.InvalidStatementError),
    "MissingFormatArgumentException": Kind(errors.InvalidStatementError),
    "PythonException": _FUNCTION,
}
"""The errors for exceptions without an SQLSTATE, by the name of their class in Java or PySpark."""

_OF_JAVA: Final = frozenset(("java.lang.IllegalArgumentException", "java.lang.UnsupportedOperationException"))
"""Any library raises these, for any reason, so they do not prove a mistake in the statement."""


def kind_of(condition: str, state: str, exception: str) -> Kind | None:
    """Returns the error for a failure, or None if neither the statement nor the data is at fault.

    Args:
        condition: Spark's error condition, such as `UNRESOLVED_COLUMN.WITH_SUGGESTION`; may be empty.
        state: its SQLSTATE; may be empty.
        exception: the name of the exception's class; for a Java exception, with the package.
    """
    family = condition.partition(".")[0]
    if family in _BY_FAMILY:
        return _BY_FAMILY[family]
    if state:
        return _BY_CLASS.get(state[:2])
    name = exception.rpartition(".")[2].removeprefix("Spark").removeprefix("Extended")
    return None if exception in _OF_JAVA else _BY_EXCEPTION.get(name)


def remedy_of(cause: Cause) -> str | None:
    """Returns the remedy for the mistake that an error condition of Spark is about, if a remedy is known."""
    family = cause.condition.partition(".")[0]
    if family == "PARSE_SYNTAX_ERROR":
        return syntax_remedy(cause.message, cause.sql)
    if family in ("UNSUPPORTED_DATATYPE", "DATATYPE_MISSING_SIZE"):
        said = str(cause.parameters.get("typeName") or cause.parameters.get("type") or "")
        return type_remedy(said.strip('"'))
    if family == "TABLE_OR_VIEW_NOT_FOUND":
        # The engine itself reports names of its schemas; all others reach Spark.
        schema, dot, _ = str(cause.parameters.get("relationName") or "").partition(".")
        return f"The warehouse has no schema {schema}: check the name, or read a model or a source" if dot else None
    if family == "DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION":
        return type_remedy(f"decimal({cause.parameters.get('precision')})")
    if family == "UNSUPPORTED_TIME_TYPE":
        return type_remedy("time")
    if family == "WRONG_NUM_ARGS":
        name, given = (str(cause.parameters.get(key, "")) for key in ("functionName", "actualNum"))
        spark = CALLS.get((name.strip("`"), int(given))) if given.isdigit() else None
        return None if spark is None else f"In Spark, write {spark}"
    if family in ("INVALID_DATETIME_PATTERN", "INCONSISTENT_BEHAVIOR_CROSS_VERSION"):
        return _PATTERN if "PATTERN" in cause.condition else None
    if family == "NOT_A_TABLE_FUNCTION" and "flatten" in cause.message:
        return "In Spark, write `lateral explode(a)`, or `lateral posexplode(a)` with the positions"
    if family == "COLUMN_IS_NOT_VARIANT_TYPE":
        return "For JSON in a string, write `get_json_object(x, '$.name')` or `parse_json(x):name`"
    if "UNSUPPORTED_SYNTAX" in cause.condition and "WITHIN GROUP" in cause.message:
        return "In Spark, write `array_sort(array_agg(x))`, or `listagg(x, ',') within group (order by y)`"
    return _of_a_sum(cause) or _of_time(cause.condition, cause.parameters)


def _of_a_sum(cause: Cause) -> str | None:
    """Returns the remedy for `+` between texts, or between a time and a number."""
    said = str(cause.parameters.get("sqlExpr", ""))
    types = "".join(str(cause.parameters.get(key, "")) for key in ("actualDataType", "left", "right"))
    if not cause.condition.startswith("DATATYPE_MISMATCH.BINARY_OP") or not re.search(" [+-] ", said):
        return None
    if "TIMESTAMP" in types:
        return "Write `t + interval 1 day`"
    return "To join texts, write `a || b`" if "STRING" in types and " + " in said else None


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
        unit = name.lower() if name.lower() in _UNITS else name.lower().removesuffix("s")
        if unit in _UNITS:
            return (
                f"Check the column's name; if `{name}` is a unit of time, write `date_trunc('{unit}', t)` or "
                f"`datediff({unit}, start, end)`"
            )
    if family == "INVALID_PARAMETER_VALUE" and "DATETIME_UNIT" in condition:
        called = str(parameters.get("functionName", "")).strip("`")
        return f"Write the unit without quotes, as in `{_UNIT_FIRST.get(called, 'datediff(day, start, end)')}`"
    if family == "INVALID_EXTRACT_FIELD":
        part = _PARTS.get(str(parameters.get("field", "")).strip("`").lower())
        return None if part is None else f"In Spark, write {part}"
    if family == "INVALID_TYPED_LITERAL" and _ABBREVIATION.search(str(parameters.get("value", ""))):
        return "Write the zone as a name or an offset, such as `America/Los_Angeles` or `-08:00`"
    found = _INTERVAL.match(str(parameters.get("sqlExpr", "")))
    if family == "DATATYPE_MISMATCH" and found is not None and "INTERVAL" in str(parameters.get("inputType", "")):
        return f"In Spark, write `d {'+' if found['word'] == 'add' else '-'} interval 1 day`"
    return None
