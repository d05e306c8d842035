"""Routes text for a terminal with status lines through the screen: dbt's log, and `print`."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable
from io import TextIOBase
from typing import Any, TextIO, cast

from dbt.adapters.silt.status_lines.screen import Screen

_DBTS_LOGGER = "stdout_log"


class Guarded:
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
    """The streams of this process that lead to the terminal."""

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
        return cast("TextIO", Guarded(stream, self._screen))


def _is_terminal(stream: object) -> bool:
    """Returns whether a stream is Python's own, on a terminal.

    A substitute, as during a python model, may log its text, which must not happen within the screen's lock.
    """
    return isinstance(stream, TextIOBase) and not stream.closed and stream.isatty()
