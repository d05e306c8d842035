"""Sends the output of a python model to dbt's log: models run on several threads, which share standard output."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

_lock = threading.Lock()
_handing_on = threading.local()
"""Whether this thread is logging a line; output that appears meanwhile is the log's own, and is not collected."""


@contextlib.contextmanager
def printed(on_output: Callable[[str], None], on_error: Callable[[str], None]) -> Iterator[None]:
    """Calls the functions with each line that this thread writes to standard output and to standard error."""
    with _routed("stdout", on_output), _routed("stderr", on_error):
        yield


class _ByThread:
    """A stream that redirects the output of some threads, and passes on the output of all other threads."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.lines: dict[int, _Lines] = {}

    def write(self, text: str) -> int:
        lines = self.lines.get(threading.get_ident())
        if lines is None or getattr(_handing_on, "now", False):
            return int(self.stream.write(text))
        lines.write(text)
        return len(text)

    def writelines(self, texts: Iterable[str]) -> None:
        for text in texts:
            self.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


class _Lines:
    """Collects whole lines; for a line that is overwritten, such as a progress bar, its last state."""

    def __init__(self, take: Callable[[str], None]) -> None:
        self._take = take
        self._begun = ""

    def write(self, text: str) -> None:
        *whole, self._begun = (self._begun + text).split("\n")
        _handing_on.now = True
        try:
            for line in whole:
                self._take(line.rstrip("\r").rpartition("\r")[2])
        finally:
            _handing_on.now = False

    def end(self) -> None:
        if self._begun:
            self.write("\n")


@contextlib.contextmanager
def _routed(name: str, take: Callable[[str], None]) -> Iterator[None]:
    lines = _Lines(take)
    with _lock:
        below = getattr(sys, name)
        stream = below if isinstance(below, _ByThread) else _ByThread(below)
        stream.lines[threading.get_ident()] = lines
        setattr(sys, name, stream)
    try:
        yield
    finally:
        with _lock:
            del stream.lines[threading.get_ident()]
            if not stream.lines and getattr(sys, name) is stream:
                setattr(sys, name, stream.stream)
        lines.end()
