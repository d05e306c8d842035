"""Maps Spark's failures to errors of this engine, by error condition; nothing else does so."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from dbt.adapters.silt.engine.commands.spark.file_formats import format_of
from dbt.adapters.silt.engine.kernel.errors import (
    ColumnNotFoundError,
    DataFileMissingError,
    DataRejectedError,
    InvalidStatementError,
    RelationNotFoundError,
    StatementSyntaxError,
    TableDamagedError,
)

_STATEMENT: Mapping[str, type[InvalidStatementError]] = {
    "UNRESOLVED_COLUMN": ColumnNotFoundError,
    "UNRESOLVED_FIELD": ColumnNotFoundError,
    "FIELD_NOT_FOUND": ColumnNotFoundError,
    "TABLE_OR_VIEW_NOT_FOUND": RelationNotFoundError,
    "UNRESOLVED_ROUTINE": RelationNotFoundError,
    "ROUTINE_NOT_FOUND": RelationNotFoundError,
    "UNRESOLVABLE_TABLE_VALUED_FUNCTION": RelationNotFoundError,
    "PARSE_SYNTAX_ERROR": StatementSyntaxError,
}
"""What a statement's own text is at fault for, by the first part of Spark's error condition."""

_MISSING = frozenset(("PATH_NOT_FOUND", "FAILED_READ_FILE.FILE_NOT_EXIST"))
_UNREADABLE = "FAILED_READ_FILE"


@contextlib.contextmanager
def mapped(table: str | None = None, version: int | None = None) -> Iterator[None]:
    """Turns Spark's failures to read a data file, or to resolve a statement's names, into errors of this engine.

    All others pass unchanged.

    Args:
        table: the table that is read; None where more than one may be.

    Raises:
        DataFileMissingError: a data file is not there.
        TableDamagedError: a data file cannot be read.
        InvalidStatementError: a name in the statement is unknown.
    """
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        name, parameters = _described(error)
        path = parameters.get("path", "")
        if name in _MISSING:
            raise DataFileMissingError(
                f"the data file {path} is not there", table=table, version=version, details={"path": path}
            ) from error
        family = name.partition(".")[0]
        if family in _STATEMENT:
            raise _STATEMENT[family](first_line(error), table=table, version=version) from error
        if family == _UNREADABLE and (format_of(path) or "parquet") != "parquet":
            raise DataRejectedError(
                f"the file {path} cannot be read as its columns are declared ({_root_cause(error)})",
                remedy="Nothing was written: correct the file, or the types and options that it is read with",
                details={"path": path},
            ) from error
        if family == _UNREADABLE:
            raise TableDamagedError(
                f"the data file {path} cannot be read ({_root_cause(error)})",
                table=table,
                version=version,
                details={"path": path},
            ) from error
        raise


def condition(error: PySparkException | Py4JJavaError) -> str:
    """Spark's error condition; empty where the error has none."""
    return _described(error)[0]


def first_line(error: PySparkException | Py4JJavaError) -> str:
    """Spark's message, without its SQLSTATE, the plan and Java's stack; of the position of a syntax error, the line."""
    text = str(error)
    if isinstance(error, Py4JJavaError):
        with contextlib.suppress(Py4JError):
            text = str(error.java_exception.getMessage())
    said, _, place = text.strip().partition("\n")[0].partition(" SQLSTATE:")
    line = _LINE.search(place)
    return f"{said.rstrip('.')} {line.group()})" if line else said


_LINE = re.compile(r"\(line \d+")


def _described(error: PySparkException | Py4JJavaError) -> tuple[str, Mapping[str, Any]]:
    """The error condition and its parameters; a failure within a task reaches Python as a bare Java exception."""
    if isinstance(error, PySparkException):
        return error.getCondition() or "", error.getMessageParameters() or {}
    with contextlib.suppress(Py4JError, TypeError):
        java = error.java_exception
        return java.getCondition() or "", dict(java.getMessageParameters())
    return "", {}


def _root_cause(error: PySparkException | Py4JJavaError) -> str:
    if isinstance(error, PySparkException):
        return first_line(error)
    java = error.java_exception
    while java.getCause() is not None:
        java = java.getCause()
    return str(java.toString()).partition("\n")[0]


def without_java_stack(text: str) -> str:
    """The message of an error of Spark's, without the lines that say where in Spark it was raised."""
    return text.partition("\nJVM stacktrace:")[0].partition("\n\tat ")[0].strip()
