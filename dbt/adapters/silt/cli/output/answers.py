"""The answers of subcommands, and the formats of numbers, sizes and times. Times are in UTC and labelled so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from dbt.adapters.silt.engine.kernel.clock import utc_moment, utc_text
from dbt.adapters.silt.engine.kernel.printable import size_text

UNKNOWN = "-"
"""The cell of a value that is unknown or has no meaning."""

RESULT = "result"
"""The heading of columns and facts whose values begin with a state, which a terminal shows in colour."""

MARKS = {"succeeded": "✓", "failed": "✗", "broken off": "✗", "interrupted": "!", "running": "…"}
"""The mark of each state; any other or unknown state has a dot."""

UTC = "(UTC)"
"""The ending of the names of columns that contain times."""


@dataclass(frozen=True)
class Rows:
    """Cells below their column names.

    Attributes:
        title: the line above the rows, unless empty.
        columns: the column names; a leading `#` marks numbers, which are aligned to the right.
        empty: the line that is shown if the table has no rows.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""
    empty: str = ""


@dataclass(frozen=True)
class Facts:
    """Names and values, each pair on a line."""

    facts: Mapping[str, str]
    title: str = ""


@dataclass(frozen=True)
class States:
    """The states of several items, as a line of marks below a title."""

    title: str
    states: Sequence[str | None]


Block: TypeAlias = Rows | Facts | States | str


@dataclass(frozen=True)
class Answer:
    """The answer of a subcommand.

    Attributes:
        document: the answer as a JSON value.
        blocks: the answer for people, in order.
        exit_code: the exit code of the command.
    """

    document: Any
    blocks: Sequence[Block]
    exit_code: int = 0


def is_number(column: str) -> bool:
    return column.startswith("#")


def heading(column: str) -> str:
    """Returns the displayed name of a column."""
    return column.removeprefix("#")


def mark(state: str | None) -> str:
    """Returns the mark of a state."""
    return MARKS.get(state or "", "·")


def count(number: int | None) -> str:
    """Formats a number for display."""
    return UNKNOWN if number is None else f"{number:,}"


def duration(seconds: float | None) -> str:
    """Formats a length of time for display."""
    return UNKNOWN if seconds is None else f"{seconds:.1f}s"


def size(number: int | None) -> str:
    """Formats a number of bytes for display."""
    return UNKNOWN if number is None else size_text(number)


def utc(milliseconds: int | None) -> str:
    """Formats a time for display; the label of the column or line contains the time zone, UTC."""
    return UNKNOWN if milliseconds is None else utc_text(milliseconds, zone="")


def iso(milliseconds: int | None) -> str | None:
    """Formats a time for programs: ISO 8601, in UTC; None outside the years 1 to 9999."""
    moment = None if milliseconds is None else utc_moment(milliseconds)
    return None if moment is None else moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
