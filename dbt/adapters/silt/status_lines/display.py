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
from collections.abc import Callable, Iterable, Iterator
from io import TextIOBase
from typing import Any, TextIO, cast

from dbt.adapters.silt.status_lines.line import Running, Stages, counted_text
from dbt.adapters.silt.status_lines.screen import Screen

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
        self._running: Running | None = None
        self._counted: str | None = None

    @property
    def is_running(self) -> bool:
        return self._running is not None

    @contextlib.contextmanager
    def running(self, name: str, text: str) -> Iterator[None]:
        """Shows the line of a statement while the block runs, once it has run for long enough."""
        self._counted = None
        self._running = Running(name, text, self._display.clock())
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
