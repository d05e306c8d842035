"""Maps error conditions of Spark, or the classes of their SQLSTATEs, to errors of this engine.

Source: Spark's `error-conditions.json`, with the SQLSTATE of each condition; its first two characters are the class.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from dbt.adapters.silt.engine.kernel.errors import (
    ColumnNotFoundError,
    DataRejectedError,
    InvalidSettingError,
    InvalidStatementError,
    RelationNotFoundError,
    SiltError,
    StatementSyntaxError,
    UnsupportedStatementError,
    ValueNotCastableError,
)


@dataclass(frozen=True)
class Kind:
    """The error for a condition.

    Attributes:
        error: the class of the error.
        remedy: the remedy; by default the class's own.
    """

    error: type[SiltError]
    remedy: str | None = None


SYNTAX: Final = frozenset(("PARSE_SYNTAX_ERROR", "INVALID_IDENTIFIER"))
"""Spark's error conditions for text that is not valid SQL."""

_RAISED: Final = Kind(DataRejectedError, "Nothing was written: correct the data, or the check that the statement makes")
_FUNCTION: Final = Kind(
    InvalidStatementError, "Nothing was written: correct the function, or the data that it is called with"
)
_BY_FAMILY: Final[Mapping[str, Kind]] = {
    "UNRESOLVED_COLUMN": Kind(ColumnNotFoundError),
    "UNRESOLVED_FIELD": Kind(ColumnNotFoundError),
    "FIELD_NOT_FOUND": Kind(ColumnNotFoundError),
    "TABLE_OR_VIEW_NOT_FOUND": Kind(RelationNotFoundError),
    "CAST_INVALID_INPUT": Kind(ValueNotCastableError),
    "CAST_OVERFLOW": Kind(ValueNotCastableError),
    "CAST_OVERFLOW_IN_TABLE_INSERT": Kind(ValueNotCastableError),
    "NUMERIC_VALUE_OUT_OF_RANGE": Kind(ValueNotCastableError),
    "INVALID_CONF_VALUE": Kind(InvalidSettingError),
    "CANNOT_MODIFY_CONFIG": Kind(InvalidSettingError),
    "CANNOT_MODIFY_STATIC_CONFIG": Kind(InvalidSettingError),
    "INVALID_PARAMETER_VALUE": Kind(InvalidStatementError),
    **dict.fromkeys(SYNTAX, Kind(StatementSyntaxError)),
}
_BY_CLASS: Final[Mapping[str, Kind]] = {
    "07": Kind(InvalidStatementError),
    "0A": Kind(UnsupportedStatementError),
    "21": Kind(DataRejectedError),
    "22": Kind(DataRejectedError),
    "23": Kind(DataRejectedError),
    "38": _FUNCTION,
    "39": _FUNCTION,
    "42": Kind(InvalidStatementError),
    "54": Kind(InvalidStatementError),
    "P0": _RAISED,
}
_BY_EXCEPTION: Final[Mapping[str, Kind]] = {
    "AnalysisException": Kind(InvalidStatementError),
    "ParseException": Kind(InvalidStatementError),
    "ArithmeticException": Kind(DataRejectedError),
    "ArrayIndexOutOfBoundsException": Kind(DataRejectedError),
    "DateTimeException": Kind(DataRejectedError),
    "NumberFormatException": Kind(DataRejectedError),
    "IllegalArgumentException": Kind(InvalidStatementError),
    "UnsupportedOperationException": Kind(InvalidStatementError),
    "PatternSyntaxException": Kind(InvalidStatementError),
    "UnknownFormatConversionException": Kind(InvalidStatementError),
    "IllegalFormatConversionException": Kind(InvalidStatementError),
    "MissingFormatArgumentException": Kind(InvalidStatementError),
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
