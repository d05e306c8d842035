"""Determines whether and how the Java process of this process's Spark has ended, and the remedy."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from pyspark.errors import PySparkException

from dbt.adapters.silt.engine import spark_seams
from dbt.adapters.silt.engine.kernel.errors import SparkEndedError

_SETTLING_SECONDS: Final = 5.0
"""The longest wait for the end of a process that no longer answers."""

_UNCAUGHT = "an uncaught error"
_OUT_OF_MEMORY: Final = 52
_EXIT_CODES: Final[Mapping[int, str]] = {50: _UNCAUGHT, 51: _UNCAUGHT, _OUT_OF_MEMORY: "out of memory"}
"""Source: Spark's SparkExitCode."""

_SIGNAL_CODES: Final = 128
"""The number that Java adds to a signal's number if it shuts down on the signal."""


@dataclass(frozen=True)
class End:
    """The end of a Spark that is not this process's child.

    Attributes:
        code: the exit code of its Java process; None if unknown.
        reason: the reason if it was stopped on purpose, else None.
    """

    code: int | None = None
    reason: str | None = None


class SparkGone(PySparkException):
    """Raised for a request to a Spark that is not this process's child and has ended."""

    def __init__(self, end: End) -> None:
        super().__init__("Spark's Java process ended")
        self.end = end


_told: list[Callable[[], End | None]] = []


def register_end(ask: Callable[[], End | None]) -> None:
    """Registers the function that returns how a Spark that is not this process's child has ended.

    Args:
        ask: returns None while that Spark runs.
    """
    _told[:] = [ask]


def ended(is_silent: bool, table: str | None = None, version: int | None = None) -> SparkEndedError | None:
    """Returns the error that describes how Spark's Java process ended, or None if it is not known to have ended.

    Args:
        is_silent: whether the process just failed to answer, and may need time to end.
    """
    process: subprocess.Popen[bytes] | None = getattr(spark_seams.gateway(), "proc", None)
    if process is None:
        return _ended_elsewhere(table, version)
    try:
        code = process.wait(_SETTLING_SECONDS if is_silent else 0)
    except subprocess.TimeoutExpired:
        return None
    how, remedy = _explained(code)
    return SparkEndedError(
        f"Spark's Java process {how}", remedy=remedy, table=table, version=version, details={"code": code}
    )


def _ended_elsewhere(table: str | None, version: int | None) -> SparkEndedError | None:
    end = _told[0]() if _told else None
    return None if end is None else of_end(end, table, version)


def of_end(end: End, table: str | None = None, version: int | None = None) -> SparkEndedError:
    """Returns the error that describes how a Spark that is not this process's child ended."""
    how, remedy = _explained(end.code) if end.code is not None else ("ended", None)
    if end.reason is not None:
        how, remedy = f"was stopped: {end.reason}", "Run it again: a new process is started"
    return SparkEndedError(
        f"Spark's Java process {how}", remedy=remedy, table=table, version=version, details={"code": end.code}
    )


def _explained(code: int) -> tuple[str, str | None]:
    """Returns how the process ended, as the end of a sentence, and a remedy, or None for the usual remedy."""
    number = -code if code < 0 else code - _SIGNAL_CODES
    named = _name(number)
    if number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        return f"was stopped on request ({named})", "Run it again"
    if number == signal.SIGKILL:
        remedy = (
            "Let it use less memory (`spark.driver.memory` in the profile's `spark_conf`, fewer `threads`), or give "
            "the machine or container more memory, then run it again"
        )
        return f"was killed ({named}), most likely by the system because memory ran out", remedy
    if named is not None:
        return f"was ended by {named}; a likely reason is memory", None
    if code == _OUT_OF_MEMORY:
        return f"ended with exit code {code}: {_EXIT_CODES[code]}", None
    return f"ended with exit code {code} ({_EXIT_CODES.get(code, 'unknown')}); a likely reason is memory", None


def _name(number: int) -> str | None:
    try:
        return signal.Signals(number).name
    except ValueError:
        return None
