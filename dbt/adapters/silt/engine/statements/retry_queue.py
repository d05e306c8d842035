"""Lets statements that lost a conflict over a table run again one after the other.

Where many writers of one process change rows of the same files, such as windows of a table that was compacted into few,
all but one lose each round. Run again side by side, the last of them would lose as often as there are others.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from weakref import WeakValueDictionary


class RetryQueue:
    """A lock for each table. Safe for threads."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, threading.Lock] = WeakValueDictionary()  # those that somebody waits for
        self._guard = threading.Lock()

    @contextlib.contextmanager
    def of(self, table: str | None) -> Iterator[None]:
        """Holds back every other loser of a conflict over the table for the time of the block."""
        with self._guard:
            lock = self._locks.setdefault(table or "", threading.Lock())
        with lock:
            yield
