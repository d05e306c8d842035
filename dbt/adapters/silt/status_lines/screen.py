"""Draws the last lines of a terminal: below the printed text, and erased before more text is printed.

The cursor is always in the first column of the row below the lines, so that the echo of a key or of Ctrl-C is erased
with them. The cursor is never hidden: a killed process leaves the terminal usable.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TextIO

from dbt.adapters.silt.lazy import lazy_module

if TYPE_CHECKING:
    from rich import cells
else:
    cells = lazy_module("rich.cells")

_SIZE = os.terminal_size((80, 24))
"""The size of a terminal that reports no size or 0 columns."""
_MOST_OF_ROWS = 2


class Screen:
    """Draws lines at the end of a terminal. Thread-safe.

    Args:
        out: the terminal.
        size: returns the columns and rows, which change with the window.
    """

    def __init__(self, out: TextIO, size: Callable[[], os.terminal_size]) -> None:
        self._out = out
        self._size = size
        self._lock = threading.RLock()
        self._lines: Sequence[str] = ()
        self._drawn: list[int] = []
        self._is_at_start = True

    def draw(self, lines: Sequence[str]) -> None:
        """Draws the lines in place of the previous lines.

        Raises:
            OSError, ValueError: if the terminal is closed.
        """
        with self._lock:
            if lines or self._lines:
                self._lines = lines
                self._write(self._erased() + self._shown())

    def write(self, stream: TextIO, text: str) -> int:
        """Writes text to a stream of the terminal, above the lines, which return when the text has ended its line."""
        with self._lock:
            erased = self._erased()
            if erased:
                self._write(erased)
            written = stream.write(text)
            if text:
                self._is_at_start = text.endswith("\n")
            if self._lines:
                stream.flush()
                self._write(self._shown())
            return written

    def _erased(self) -> str:
        """Returns the characters that erase the lines, which may take more rows since the terminal became narrower."""
        if not self._drawn:
            return ""
        columns = self._now().columns
        rows = sum(max(1, -(-width // columns)) for width in self._drawn)
        self._drawn = []
        return f"\r\x1b[{rows}A\x1b[J"

    def _shown(self) -> str:
        """Returns the lines that fit on the terminal; empty while a printed line is incomplete."""
        if not self._is_at_start:
            return ""
        size = self._now()
        lines = [self._cut(line, size.columns - 1) for line in _fitting(self._lines, size.lines)]
        self._drawn = [cells.cell_len(line) for line in lines]
        return "".join(f"{line}\n" for line in lines)

    def _cut(self, line: str, width: int) -> str:
        encoding = self._out.encoding or "utf-8"
        plain = "".join(each if each.isprintable() else " " for each in line)
        text = plain.encode(encoding, "replace").decode(encoding)
        return text if cells.cell_len(text) <= width else cells.set_cell_size(text, max(0, width)).rstrip()

    def _now(self) -> os.terminal_size:
        size = self._size()
        return os.terminal_size((size.columns or _SIZE.columns, size.lines or _SIZE.lines))

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()


def _fitting(lines: Sequence[str], rows: int) -> Sequence[str]:
    """Returns the lines that leave half of the rows to printed text; the last line counts the omitted lines."""
    most = max(1, rows // _MOST_OF_ROWS)
    if len(lines) <= most:
        return lines
    return [*lines[: most - 1], f"{len(lines) - most + 1:>8}  more statements run"]
