"""A terminal for tests: shows the output of a program as a user sees it, and provides a device to run a program on."""

from __future__ import annotations

import fcntl
import os
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

_PART = re.compile(r"\x1b\[(?P<number>\d*)(?P<command>[AJ])|\x1b\[[\d;]*m|(?P<text>[^\x1b])", re.DOTALL)


class Terminal:
    """Interprets new lines, colors, cursor-up and erase-to-end sequences; keeps the lines that scroll out."""

    def __init__(self, columns: int = 80, rows: int = 24) -> None:
        self.columns = columns
        self.rows = rows
        self._lines = [""]
        self._row = self._column = 0

    @property
    def lines(self) -> list[str]:
        """Returns the lines that were printed and not erased, without the cursor's row if it is empty."""
        return self._lines if self._lines[-1] else self._lines[:-1]

    def feed(self, text: str) -> None:
        """Takes output, and raises an error for an unknown sequence."""
        position = 0
        while position < len(text):
            part = _PART.match(text, position)
            assert part is not None, f"an unknown sequence: {text[position : position + 10]!r}"
            position = part.end()
            if part["command"]:
                self._do(part["command"], int(part["number"] or 1))
            elif part["text"]:
                self._type(part["text"])

    def resize(self, columns: int) -> None:
        """Makes it narrower, which breaks lines that do not fit into several."""
        below = len(self._lines) - self._row
        self._lines = [
            line[start : start + columns] for line in self._lines for start in range(0, max(1, len(line)), columns)
        ]
        self.columns, self._row = columns, len(self._lines) - below

    def _do(self, command: str, number: int) -> None:
        if command == "A":
            self._row = max(self._row - number, len(self._lines) - self.rows, 0)
        else:
            self._lines = [*self._lines[: self._row], self._lines[self._row][: self._column]]

    def _type(self, letter: str) -> None:
        if letter == "\r":
            self._column = 0
        elif letter == "\n":
            self._next_row()
        else:
            if self._column == self.columns:
                self._next_row()
                self._column = 0
            line = self._lines[self._row].ljust(self._column)
            self._lines[self._row] = line[: self._column] + letter + line[self._column + 1 :]
            self._column += 1

    def _next_row(self) -> None:
        self._row += 1
        if self._row == len(self._lines):
            self._lines.append("")


def run_on_terminal(
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    terminal: Terminal,
    on_output: Callable[[subprocess.Popen[bytes], str], object] = lambda _process, _text: None,
    seconds: float = 240,
) -> tuple[int, str]:
    """Runs a program on a terminal; returns its exit code and all of its output.

    Args:
        on_output: called with the program and all output so far, whenever the program prints more.
    """
    screen, device = os.openpty()
    fcntl.ioctl(device, termios.TIOCSWINSZ, struct.pack("HHHH", terminal.rows, terminal.columns, 0, 0))
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdin=device, stdout=device, stderr=device, start_new_session=True
    )
    os.close(device)
    written, deadline = b"", time.monotonic() + seconds
    try:
        while time.monotonic() < deadline:
            if not select.select([screen], [], [], 0.2)[0]:
                continue
            part = os.read(screen, 65536)
            if not part:
                break
            written += part
            on_output(process, written.decode(errors="replace"))
    except OSError:  # the end of the output, on Linux
        pass
    finally:
        os.close(screen)
        _end(process)
    text = written.decode()
    terminal.feed(text)
    return process.returncode, text


def _end(process: subprocess.Popen[bytes]) -> None:
    """Waits for a program to end, and kills it if it does not."""
    try:
        process.wait(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
