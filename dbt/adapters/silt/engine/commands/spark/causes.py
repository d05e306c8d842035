"""Walks from a failure of Spark's to the last of its causes in Java."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException, UnknownException
from pyspark.errors.exceptions import captured

_DEEPEST: Final = 30
"""Longer chains of causes are cut: Java does not forbid a ring."""


@dataclass(frozen=True)
class Cause:
    """One exception in the chain.

    Attributes:
        text: its class and the first line of its message.
        message: the first line of its message, as a statement's author needs it.
        condition: Spark's error condition; empty where it has none.
        parameters: those of the condition.
        java: the exception itself; None where Python sees its description only.
        code: what a service of AWS has refused, by its error code; empty where that is not known.
    """

    text: str
    message: str
    condition: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    java: Any = None
    code: str = ""

    def converted(self) -> PySparkException | None:
        """As PySpark's own error; None where that has no class for it, and for Java's own errors."""
        if self.java is None or not self.text.startswith("org.apache.spark."):
            return None
        with contextlib.suppress(Py4JError):
            converted = captured.convert_exception(self.java)
            return None if isinstance(converted, UnknownException) else converted
        return None


def causes(error: Exception) -> list[Cause]:
    """The failure and its causes, the last one at the end; none of a failure that is not Java's."""
    java = error.java_exception if isinstance(error, Py4JJavaError) else getattr(error, "_origin", None)
    if java is not None:
        with contextlib.suppress(Py4JError):
            return list(_chain(java))
    return [_described(error)] if isinstance(error, PySparkException) else []


def first_line(error: Exception) -> str:
    """Spark's message, without its SQLSTATE, the plan and Java's stack; of the position of a syntax error, the line."""
    text = str(error)
    if isinstance(error, Py4JJavaError):
        with contextlib.suppress(Py4JError):
            text = str(error.java_exception.getMessage())
    return _first_line(text)


_OF_AWS: Final = "software.amazon.awssdk."
_LINE = re.compile(r"\(line \d+")


def _first_line(text: str) -> str:
    said, _, place = text.strip().partition("\n")[0].partition(" SQLSTATE:")
    line = _LINE.search(place)
    return f"{said.rstrip('.')} {line.group()})" if line else said


def _chain(java: Any) -> Iterator[Cause]:
    for _ in range(_DEEPEST):
        condition, parameters = _condition(java)
        text = str(java.toString()).partition("\n")[0]
        yield Cause(text, _first_line(str(java.getMessage())), condition, parameters, java, _code(java, text))
        told = str(java.getMessage())
        java = java.getCause()
        if java is None:
            # What Spark could not bring from a task to here is in the text of the job's failure only.
            yield from (Cause(each, _first_line(each.partition(": ")[2])) for each in _CAUSED_BY.findall(told))
            return


def _condition(java: Any) -> tuple[str, Mapping[str, Any]]:
    with contextlib.suppress(Py4JError, TypeError):  # it is not Spark's own, and has no such methods
        return java.getCondition() or "", dict(java.getMessageParameters())
    return "", {}


def _code(java: Any, text: str) -> str:
    if text.startswith(_OF_AWS):
        with contextlib.suppress(Py4JError):  # it is not of a service's answer
            details = java.awsErrorDetails()
            return (details and details.errorCode()) or ""
    return ""


def _described(error: PySparkException) -> Cause:
    """As a server of Spark Connect describes a failure; its text ends with the causes."""
    last = _CAUSED_BY.findall(str(error))
    message = first_line(error)
    return Cause(last[-1] if last else message, message, error.getCondition() or "", error.getMessageParameters() or {})


_CAUSED_BY = re.compile(r"^Caused by: (.*)$", re.MULTILINE)
