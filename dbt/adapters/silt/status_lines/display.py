"""Keeps the lines of running statements, and draws them twice a second on a separate thread.

Output of the process is printed above the lines.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import TextIOBase
from typing import TYPE_CHECKING, Any, TextIO, cast

from dbt.adapters.silt.lazy import lazy_module
from dbt.adapters.silt.status_lines.line import Running, Stages, Starting, counted_text

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


_logger = logging.getLogger(__name__)

_SECONDS_BETWEEN = 0.5
_SHOWN_AFTER_SECONDS = 1.0
_DBTS_LOGGER = "stdout_log"


class StatusLine:
    """The line of a connection, which runs a single statement at a time.

    Args:
        display: the display that shows the line.
        stages: returns the progress of the Spark jobs of the connection's session.
    """

    def __init__(self, display: Display, stages: Callable[[], Stages]) -> None:
        self._display = display
        self._stages = stages
        self._running: Running | Starting | None = None
        self._counted: str | None = None

    @property
    def is_running(self) -> bool:
        return self._running is not None

    @contextlib.contextmanager
    def running(self, name: str, text: str) -> Iterator[None]:
        """Shows the line of a statement while the block runs, once it has run for long enough."""
        with self._shown(Running(name, text, self._display.clock())):
            yield

    @contextlib.contextmanager
    def starting(self, stays: bool) -> Iterator[None]:
        """Shows the start of Spark while the block runs.

        Args:
            stays: whether this Spark is kept for later commands.
        """
        with self._shown(Starting(stays, self._display.clock())):
            yield

    @contextlib.contextmanager
    def _shown(self, running: Running | Starting) -> Iterator[None]:
        self._counted = None
        self._running = running
        self._display.begin(self)
        try:
            yield
        finally:
            self._running = None
            self._display.end(self)

    def report(self, what: str, done: int, total: int | None = None, /) -> None:
        """Takes the progress of the statement, as a `Progress`."""
        self._counted = counted_text(what, done, total)

    def text(self, now: float) -> str | None:
        """Returns the line to show, or None if no statement has run for long enough."""
        running = self._running
        if running is None or now - running.started < _SHOWN_AFTER_SECONDS:
            return None
        return running.line(now, self._stages(), self._counted)


class Display:
    """The lines of the statements of a dbt command. Thread-safe.

    Args:
        screen: the screen that the lines are drawn on.
        streams: the streams that lead to the same terminal.
        clock: returns seconds.
    """

    def __init__(self, screen: Screen, streams: Streams, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._screen = screen
        self._streams = streams
        self._lock = threading.Lock()
        self._lines: list[StatusLine] = []
        self._waiting = 0
        self._showing = threading.Lock()
        self._shown: list[tuple[StatusLine, str]] = []
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def line(self, stages: Callable[[], Stages]) -> StatusLine:
        """Returns a line for a new connection.

        Args:
            stages: returns the progress of the Spark jobs of the connection's session.
        """
        return StatusLine(self, stages)

    @contextlib.contextmanager
    def starting(self, stays: bool) -> Iterator[None]:
        """Shows, in a single line, that Spark starts while the block runs, in which several threads may be.

        Args:
            stays: whether this Spark is kept for later commands.
        """
        with self._lock:
            self._waiting += 1
            is_first = self._waiting == 1
        try:
            with self.line(Stages).starting(stays) if is_first else contextlib.nullcontext():
                yield
        finally:
            with self._lock:
                self._waiting -= 1

    def begin(self, line: StatusLine) -> None:
        """Adds the line of a statement that begins; the first line starts the thread."""
        with self._lock:
            self._lines.append(line)
            if self._thread is None:
                self._stopped = threading.Event()
                self._thread = threading.Thread(
                    target=self._keep_drawing, args=(self._stopped,), name="silt-status-lines", daemon=True
                )
                self._thread.start()
                atexit.register(self.stop)

    def end(self, line: StatusLine) -> None:
        """Removes a line, and erases it at once."""
        with self._lock:
            self._lines.remove(line)
        with self._showing:
            others = [each for each in self._shown if each[0] is not line]
            if len(others) < len(self._shown):
                self._show(others)

    def stop(self) -> None:
        """Erases all lines, and ends the thread; the next statement starts it again."""
        with self._lock:
            thread, self._thread = self._thread, None
            self._stopped.set()
        if thread is not None:
            atexit.unregister(self.stop)
            with self._showing:
                self._show([])
                self._streams.restore()

    def draw(self) -> None:
        """Draws the lines of the statements that have run for long enough, with their progress in Spark."""
        now = self.clock()
        texts = [(line, line.text(now)) for line in self._running()]
        with self._showing:
            if not self._stopped.is_set():
                self._show([(line, text) for line, text in texts if text is not None and line.is_running])

    def _running(self) -> list[StatusLine]:
        with self._lock:
            return list(self._lines)

    def _keep_drawing(self, stopped: threading.Event) -> None:
        while not stopped.wait(_SECONDS_BETWEEN):
            self.draw()

    def _show(self, shown: list[tuple[StatusLine, str]]) -> None:
        """Draws the lines; a closed terminal does not disturb the statements."""
        self._shown = shown
        try:
            if shown:
                self._streams.guard()
            self._screen.draw([text for _, text in shown])
        except (OSError, ValueError) as error:
            self._stopped.set()
            _logger.debug("status lines are no longer drawn: %s", error)


def on_terminal(terminal: TextIO) -> Display:
    """Returns a display on a terminal that has a file descriptor."""
    screen = Screen(terminal, lambda: os.get_terminal_size(terminal.fileno()))
    return Display(screen, Streams(screen))


class _Guarded:
    """A stream of the terminal that writes text above the lines."""

    def __init__(self, stream: TextIO, screen: Screen) -> None:
        self._stream = stream
        self._screen = screen

    def write(self, text: str) -> int:
        return self._screen.write(self._stream, text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class Streams:
    """The streams of this process whose output appears on the terminal."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._handlers: list[tuple[logging.StreamHandler[TextIO], TextIO, TextIO]] = []
        self._standard: dict[str, tuple[TextIO, TextIO]] = {}

    def guard(self) -> None:
        """Replaces each unguarded stream by a guarded stream; call it whenever lines are drawn."""
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            if name not in self._standard and _is_terminal(stream):
                self._standard[name] = stream, self._guarded(stream)
                setattr(sys, name, self._standard[name][1])
        for handler in logging.getLogger(_DBTS_LOGGER).handlers:
            if isinstance(handler, logging.StreamHandler) and _is_terminal(handler.stream):
                guarded = self._guarded(handler.stream)
                self._handlers.append((handler, handler.stream, guarded))
                handler.setStream(guarded)

    def restore(self) -> None:
        """Restores the streams, unless other code has replaced them meanwhile."""
        handlers, self._handlers = self._handlers, []
        standard, self._standard = self._standard, {}
        for handler, stream, guarded in handlers:
            if handler.stream is guarded:
                handler.setStream(stream)
        for name, (stream, guarded) in standard.items():
            if getattr(sys, name) is guarded:
                setattr(sys, name, stream)

    def _guarded(self, stream: TextIO) -> TextIO:
        return cast("TextIO", _Guarded(stream, self._screen))


def _is_terminal(stream: object) -> bool:
    """Returns whether a stream is Python's own, on a terminal.

    A substitute, as during a python model, may log its text, which must not happen within the screen's lock.
    """
    return isinstance(stream, TextIOBase) and not stream.closed and stream.isatty()
