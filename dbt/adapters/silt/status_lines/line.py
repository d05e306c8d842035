"""Writes a status line: the statement that a connection runs now, and its progress."""

from __future__ import annotations

from dataclasses import dataclass

from dbt.adapters.silt.engine.kernel.errors import SiltError
from dbt.adapters.silt.engine.kernel.printable import line
from dbt.adapters.silt.engine.sql.tokens import tokenize

_QUERIES = ("SELECT", "WITH", "VALUES", "FROM", "TABLE", "(")
_UNITS = ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k"))


@dataclass(frozen=True)
class Stages:
    """The progress of the stages that Spark runs for a session.

    Attributes:
        tasks_done, tasks: the number of finished tasks and of all tasks.
        rows: the rows that the stages have read, or else written; 0 if Spark does not know.
        size: the bytes that the stages have read; 0 if Spark does not know.
    """

    tasks_done: int = 0
    tasks: int = 0
    rows: int = 0
    size: int = 0


@dataclass(frozen=True)
class Running:
    """A running statement.

    Attributes:
        name: the name of the node or of another part of dbt that runs the statement.
        text: the statement; empty for Python.
        started: the time of the start, in seconds of the display's clock.
    """

    name: str
    text: str
    started: float

    def line(self, now: float, stages: Stages, counted: str | None = None) -> str:
        """Returns the line: elapsed time, name and kind of the statement, and its progress.

        Args:
            counted: the progress of work outside of Spark.
        """
        parts = (_kind(self.text), counted, *_of_spark(stages))
        return line(f"{_clock(now - self.started):>8}  {self.name}: {', '.join(part for part in parts if part)}")


@dataclass(frozen=True)
class Starting:
    """The start of Spark, for which a statement waits.

    Attributes:
        stays: whether this Spark is kept for later commands.
        started: the time of the beginning of the wait, in seconds of the display's clock.
    """

    stays: bool
    started: float

    def line(self, now: float, stages: Stages, counted: str | None = None) -> str:  # noqa: ARG002 - as `Running`
        """Returns the line: elapsed time, and how it is saved."""
        seconds = now - self.started
        advice = "it stays for later commands" if self.stays else "`keep_alive` saves this"
        return f"{_clock(seconds):>8}  starting Spark, {int(seconds)} s; {advice}"


def counted_text(what: str, done: int, total: int | None = None) -> str:
    """Returns progress as text, such as `31 of 80 files copied`; the arguments are those of a `Progress`."""
    return f"{done:,} {what}" if total is None else f"{done:,} of {total:,} {what}"


def _of_spark(stages: Stages) -> list[str]:
    parts = [f"{stages.tasks_done:,} of {stages.tasks:,} tasks"] if stages.tasks else []
    parts += [f"{_short(stages.rows).strip()} rows"] if stages.rows else []
    return parts + ([f"{_short(stages.size)}B read"] if stages.size and not stages.rows else [])


def _kind(text: str) -> str:
    """Returns the first word of a statement, or a better name if the word is too general."""
    if not text:
        return "python"
    try:
        word = tokenize(text)[0].word
    except SiltError:
        return "statement"
    return "query" if word in _QUERIES else word.lower() or "statement"


def _short(number: int) -> str:
    for unit, letter in _UNITS:
        if number >= unit:
            return f"{number / unit:.1f} {letter}"
    return f"{number} "


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
