"""Locks a folder of the catalog, so that creating, renaming and dropping tables exclude one another.

A drop ends a table's log and then moves its folder. A table of that name which is created between the two would be
moved away. A lock closes that gap among all processes that share a local file system; it ends with the process that
holds it, so a crash never leaves it behind. Commits to tables do not take it.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from dbt.adapters.silt.engine.kernel.clock import Clock
from dbt.adapters.silt.engine.kernel.errors import StorageError
from dbt.adapters.silt.engine.kernel.storage.store import ObjectMissing, Store

TIMEOUT_MS = 60_000
_PAUSE_S = 0.02

_held: set[tuple[str, str]] = set()
_held_changed = threading.Condition()


@contextmanager
def exclusive(store: Store, folder: str, clock: Clock) -> Iterator[None]:
    """Locks a folder of the store against every other thread and process.

    Raises:
        ObjectMissing: there is no such folder.
        StorageError: another process held it for longer than TIMEOUT_MS.
    """
    with _among_threads(store.root, folder), _among_processes(store.local_path(folder), clock):
        yield


@contextmanager
def _among_threads(root: str, folder: str) -> Iterator[None]:
    key = (root, folder)
    with _held_changed:
        _held_changed.wait_for(lambda: key not in _held)
        _held.add(key)
    try:
        yield
    finally:
        with _held_changed:
            _held.remove(key)
            _held_changed.notify_all()


@contextmanager
def _among_processes(path: str | None, clock: Clock) -> Iterator[None]:
    if path is None or "://" in path:
        yield
        return
    descriptor = _locked_descriptor(path, clock)
    try:
        yield
    finally:
        os.close(descriptor)


def _locked_descriptor(path: str, clock: Clock) -> int:
    while True:
        descriptor = _open(path)
        try:
            _lock(descriptor, path, clock)
            if _is_at(descriptor, path):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # the folder was moved away while we waited for it


def _open(path: str) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ObjectMissing(path) from error
    except OSError as error:
        raise StorageError(f"the folder {path} cannot be opened ({error.strerror})") from error


def _is_at(descriptor: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except OSError:
        return False


def _lock(descriptor: int, path: str, clock: Clock) -> None:
    deadline = clock.now_ms() + TIMEOUT_MS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError as error:
            if clock.now_ms() >= deadline:
                raise StorageError(
                    f"another process has been changing names in {path} for {TIMEOUT_MS // 1000} seconds",
                    remedy="End that process, then run it again",
                ) from error
        except OSError as error:
            raise StorageError(f"the folder {path} cannot be locked ({error.strerror})") from error
        clock.sleep(_PAUSE_S)
