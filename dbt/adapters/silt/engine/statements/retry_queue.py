"""Lets statements that lost a conflict over a table retry in turn.

If many writers of the same process change rows of the same files, such as windows of a table that was compacted into
few files, only a single writer wins each round. If they retried in parallel, the last writer would lose as often as
there are other writers.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from weakref import WeakValueDictionary


class RetryQueue:
    """A lock for each table. Thread-safe."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, threading.Lock] = WeakValueDictionary()  # locks in use
        self._guard = threading.Lock()

    @contextlib.contextmanager
    def of(self, table: str | None) -> Iterator[None]:
        """Blocks every other loser of a conflict over the table during the `with` block."""
        with self._guard:
            lock = self._locks.setdefault(table or "", threading.Lock())
        with lock:
            yield
