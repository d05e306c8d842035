"""Walks from a failure of Spark to the last of its causes in Java."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from dbt.adapters.silt.engine import spark_seams
from dbt.adapters.silt.engine.commands.spark.failures.texts import located, quoted_sql, sentence, without_java_stack

_DEEPEST: Final = 30
"""Longer chains of causes are cut: Java does not forbid a cycle."""


@dataclass(frozen=True)
class Cause:
    """An exception in the chain.

    Attributes:
        text: the exception's class and the first line of its message.
        message: its message, reworded for the author of the statement.
        condition: Spark's error condition; empty if it has no condition.
        state: the condition's SQLSTATE; empty if it has no SQLSTATE.
        parameters: the parameters of the condition.
        exception: the name of the exception's class; for a Java exception, with the package.
        code: the error code of a service of AWS that refused a request; empty if unknown.
        sql: the SQL that its message quotes; may be empty.
    """

    text: str
    message: str
    condition: str = ""
    state: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    exception: str = ""
    code: str = ""
    sql: str = ""


def causes(error: Exception) -> list[Cause]:
    """Returns the failure and its causes, the root cause last; empty for a failure outside of Java and PySpark."""
    java = error.java_exception if isinstance(error, Py4JJavaError) else spark_seams.java_error(error)
    if java is not None:
        with contextlib.suppress(Py4JError):
            return list(_chain(java))
    return [_described(error), *_in_text(str(error))] if isinstance(error, PySparkException) else []


def first_line(error: Exception) -> str:
    """Returns Spark's message without SQLSTATE, plan and Java's stack; a syntax error keeps its line number."""
    text = str(error)
    if isinstance(error, Py4JJavaError):
        with contextlib.suppress(Py4JError):
            text = str(error.java_exception.getMessage())
    return _first_line(text)


_OF_AWS: Final = "software.amazon.awssdk."
_LINE = re.compile(r"\(line \d+")


def _first_line(text: str) -> str:
    said, _, rest = text.strip().partition("\n")[0].partition(" SQLSTATE:")
    line = _LINE.search(rest)
    return f"{said.rstrip('.')} {line.group()})" if line else said


def _chain(java: Any) -> Iterator[Cause]:
    for _ in range(_DEEPEST):
        told, text = str(java.getMessage()), str(java.toString()).partition("\n")[0]
        condition, state, parameters = _condition(java)
        exception = str(java.getClass().getName())
        message = located(_message(told, exception), _part(java))
        yield Cause(text, message, condition, state, parameters, exception, _code(java, text), quoted_sql(told))
        java = java.getCause()
        if java is None:
            yield from _in_text(told)
            return


def _in_text(told: str) -> Iterator[Cause]:
    """Yields the causes that reached the driver only in the message of the job's failure."""
    for each in (*_LOST_TASK.findall(told), *_CAUSED_BY.findall(told)):
        exception, _, message = each.partition(": ")
        yield Cause(each, sentence(message), exception=exception)


def _message(told: str, exception: str) -> str:
    """Returns the message of an exception, with the failing lines if Python raised it in a function of the user."""
    if exception.endswith("PythonException"):
        return _STATE.sub("", without_java_stack(told[max(told.find("[PYTHON_"), 0) :]))
    return sentence(told)


def _condition(java: Any) -> tuple[str, str, Mapping[str, Any]]:
    with contextlib.suppress(Py4JError, TypeError):  # only Spark's own exceptions have these methods
        return java.getCondition() or "", java.getSqlState() or "", dict(java.getMessageParameters())
    return "", "", {}


def _part(java: Any) -> str:
    """Returns the part of the statement that an exception of Java names; empty if it names none."""
    with contextlib.suppress(Py4JError, TypeError):  # only Spark's own exceptions have this method
        return _fragment(java.getQueryContext())
    return ""


def _fragment(contexts: Iterable[Any] | None) -> str:
    """Returns the SQL of the first context; empty without SQL, as for a method of a DataFrame."""
    return next((str(each.fragment()) for each in contexts or () if _SQL in str(each.contextType())), "")


def _code(java: Any, text: str) -> str:
    if text.startswith(_OF_AWS):
        with contextlib.suppress(Py4JError):  # raised if the exception is not a response of the service
            details = java.awsErrorDetails()
            return (details and details.errorCode()) or ""
    return ""


def _described(error: PySparkException) -> Cause:
    """Returns the cause that a Spark Connect server describes."""
    exception = type(error).__name__
    message = located(_message(str(error), exception), _fragment(error.getQueryContext()))
    condition, state = error.getCondition() or "", error.getSqlState() or ""
    parameters = error.getMessageParameters() or {}
    return Cause(message, message, condition, state, parameters, exception, sql=quoted_sql(str(error)))


_SQL: Final = "SQL"
_CAUSED_BY = re.compile(r"^Caused by: (.*)$", re.MULTILINE)
_LOST_TASK = re.compile(r"Lost task [^\n]*?\): ([\w.$]+(?:Exception|Error)\b[^\n]*)")
_STATE = re.compile(r"\s*SQLSTATE: [0-9A-Z]{5}\s*$")
