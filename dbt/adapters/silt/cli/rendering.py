"""Prints the answer of a subcommand: as JSON, as plain text for another program, or for a person.

On a terminal rows are drawn as a table as wide as the terminal. Elsewhere a row is a line, with two or more spaces
between its cells, never cut. Times are in UTC and say so.
"""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TextIO, TypeAlias

from dbt.adapters.silt.engine.kernel.clock import utc_moment, utc_text
from dbt.adapters.silt.records.lazily import lazily

terminal = lazily("dbt.adapters.silt.cli.terminal")

UNKNOWN = "-"
"""The cell of a value that is unknown or has no meaning."""

UTC = "(UTC)"
"""The end of the name of a column of times."""

_GAP = "  "
_SURROGATE = re.compile("[\ud800-\udfff]")
"""Half of a character, as JSON and names of files may hold it: no encoding can write it."""


@dataclass(frozen=True)
class Rows:
    """Cells below their columns' names.

    Attributes:
        title: a line above the rows; none where it is empty.
        columns: their names; `#` at the beginning stands for numbers, which are aligned to the right.
        empty: the line that is shown where there are no rows.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""
    empty: str = ""


@dataclass(frozen=True)
class Facts:
    """Names and values, a line each."""

    facts: Mapping[str, str]
    title: str = ""


Block: TypeAlias = Rows | Facts | str


@dataclass(frozen=True)
class Answer:
    """What a subcommand found.

    Attributes:
        document: the answer as one JSON value.
        blocks: the answer for people, in order.
        exit_code: of the command.
    """

    document: Any
    blocks: Sequence[Block]
    exit_code: int = 0


def show(answer: Answer, as_json: bool, out: TextIO | None = None) -> int:
    """Prints an answer; returns its exit code."""
    out = out or sys.stdout
    if as_json:
        text = json.dumps(answer.document, ensure_ascii=False, indent=2, default=str)
        out.write(_SURROGATE.sub(lambda half: json.dumps(half[0])[1:-1], text) + "\n")
    elif out.isatty():
        terminal.draw(answer.blocks, out)
    else:
        out.write("\n".join(_plain(block) for block in answer.blocks))
    out.flush()
    return answer.exit_code


def is_number(column: str) -> bool:
    return column.startswith("#")


def heading(column: str) -> str:
    """Returns the name of a column as it is shown."""
    return column.removeprefix("#")


def line(text: str) -> str:
    """Returns a text as part of one line: characters that would break it, or move the cursor, are escaped."""
    return text if text.isprintable() else "".join(map(_printable, text))


def count(number: int | None) -> str:
    """Formats a number for people."""
    return UNKNOWN if number is None else f"{number:,}"


def duration(seconds: float | None) -> str:
    """Formats a length of time for people."""
    return UNKNOWN if seconds is None else f"{seconds:.1f}s"


def number_of(number: int, thing: str) -> str:
    """Formats a number of things, such as "1 table" and "2 tables"."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def size(number: int | None) -> str:
    """Formats bytes for people."""
    if number is None:
        return UNKNOWN
    amount, unit = float(number), "B"
    for unit in ("B", "KB", "MB", "GB", "TB"):
        if amount < 1000 or unit == "TB":
            break
        amount /= 1000
    return f"{number} B" if unit == "B" else f"{amount:.1f} {unit}"


def utc(milliseconds: int | None) -> str:
    """Formats a time for people; the column or the line says that it is in UTC."""
    return UNKNOWN if milliseconds is None else utc_text(milliseconds, zone="")


def iso(milliseconds: int | None) -> str | None:
    """Formats a time for programs: ISO 8601, in UTC; None outside the years 1 to 9999."""
    moment = None if milliseconds is None else utc_moment(milliseconds)
    return None if moment is None else moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _plain(block: Block) -> str:
    if isinstance(block, str):
        return f"{block}\n"
    title = f"{block.title}\n" if block.title else ""
    if isinstance(block, Facts):
        return title + _aligned([[name, line(value)] for name, value in block.facts.items()], ())
    if not block.rows:
        return f"{title}{block.empty}\n" if title or block.empty else ""
    names = [heading(column) for column in block.columns]
    right = [index for index, column in enumerate(block.columns) if is_number(column)]
    return title + _aligned([names, *([line(cell) for cell in row] for row in block.rows)], right)


def _aligned(rows: Sequence[Sequence[str]], right: Sequence[int]) -> str:
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    return "".join(f"{_joined(row, widths, right)}\n" for row in rows)


def _joined(row: Sequence[str], widths: Sequence[int], right: Sequence[int]) -> str:
    cells = enumerate(zip(row, widths, strict=True))
    return _GAP.join(_padded(cell, width, index in right) for index, (cell, width) in cells).rstrip()


def _padded(cell: str, width: int, right: bool) -> str:
    space = " " * (width - _width(cell))
    return space + cell if right else cell + space


def _width(text: str) -> int:
    """Returns how many columns of a terminal the text takes."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(unicodedata.combining(character) > 0 for character in text)


def _printable(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
