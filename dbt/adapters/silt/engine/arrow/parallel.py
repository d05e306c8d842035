"""Reads several files at the same time, and yields their batches in the order of the files.

The reader of a file is at most a few batches ahead of the caller, so memory is bounded by the number of files that are
read at a time, whatever their size.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

import pyarrow as pa

from dbt.adapters.silt.engine.kernel.table.actions import AddFile

Read: TypeAlias = Callable[[AddFile], Iterator[pa.RecordBatch]]

_AHEAD: Final = 4
"""The number of batches that are read ahead from each file."""

_LOOK_SECONDS: Final = 0.1


class _Ended(Exception):
    """The caller has stopped reading batches."""


class _Reader:
    """Reads a file on its own thread."""

    def __init__(self, read: Read, file: AddFile, ended: threading.Event) -> None:
        self._found: queue.Queue[pa.RecordBatch | BaseException | None] = queue.Queue(_AHEAD)
        self._ended = ended
        self._thread = threading.Thread(target=self._run, args=(read, file), name="silt-arrow", daemon=True)
        self._thread.start()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yields the batches of the file; re-raises an exception of the reader's thread."""
        while (found := self._found.get()) is not None:
            if isinstance(found, BaseException):
                raise found
            yield found

    def join(self) -> None:
        self._thread.join()

    def _run(self, read: Read, file: AddFile) -> None:
        try:
            for batch in read(file):
                self._put(batch)
            self._put(None)
        except _Ended:
            return
        except BaseException as error:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        try:
            self._put(error)
        except _Ended:
            return

    def _put(self, found: pa.RecordBatch | BaseException | None) -> None:
        while not self._ended.is_set():
            try:
                self._found.put(found, timeout=_LOOK_SECONDS)
            except queue.Full:
                continue
            return
        raise _Ended


def in_order(read: Read, files: Sequence[AddFile], at_once: int) -> Iterator[pa.RecordBatch]:
    """Yields the batches of the files, file by file.

    Args:
        read: returns the batches of a file; called in threads.
        at_once: number of files read at the same time.
    """
    if at_once <= 1 or len(files) <= 1:
        for file in files:
            yield from read(file)
        return
    ended = threading.Event()
    readers: deque[_Reader] = deque()
    waiting = iter(files)
    try:
        readers.extend(_Reader(read, file, ended) for _, file in zip(range(at_once), waiting, strict=False))
        while readers:
            yield from readers[0].batches()
            readers.popleft()
            readers.extend(_Reader(read, file, ended) for _, file in zip(range(1), waiting, strict=False))
    finally:
        ended.set()
        for reader in readers:
            reader.join()
