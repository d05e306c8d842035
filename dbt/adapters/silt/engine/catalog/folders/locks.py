"""Locks a folder of the catalog, so that creating, renaming and dropping tables exclude each other.

The lock is on a file in the folder that only users with write access to the folder can open: a user who can open a file
can lock it, and a reader would block all writers.

A drop ends a table's log and then moves its folder. A table of that name that is created in between would be moved
away. The lock closes that gap among all processes that share a local file system; it ends with the process that holds
it, so a crash never leaves it behind. Commits to tables do not take it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from dbt.adapters.silt.engine.kernel import file_locks
from dbt.adapters.silt.engine.kernel.clock import Clock
from dbt.adapters.silt.engine.kernel.errors import StorageError, UnusableFileError
from dbt.adapters.silt.engine.kernel.storage import storage_errors
from dbt.adapters.silt.engine.kernel.storage.store import ObjectMissing, Store

TIMEOUT_MS = 60_000
LOCK_FILE = ".silt.lock"
_PAUSE_S = 0.02
_FLAGS = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK

_held: dict[tuple[str, str], int] = {}
_held_changed = threading.Condition()


@contextmanager
def exclusive(store: Store, folder: str, clock: Clock, keep_file: bool = True) -> Iterator[None]:
    """Locks a folder of the store against every other thread and process.

    Args:
        keep_file: whether the lock's file is kept in the folder; deleting it costs waiting processes another try.

    Raises:
        ObjectMissing: if the folder does not exist.
        StorageError: if another thread or process held the lock for longer than TIMEOUT_MS, or this thread holds it.
    """
    with _among_threads(store.root, folder), _among_processes(store.local_path(folder), clock, keep_file):
        yield


@contextmanager
def _among_threads(root: str, folder: str) -> Iterator[None]:
    key = (root, folder)
    with _held_changed:
        is_own = _held.get(key) == threading.get_ident()
        if is_own or not _held_changed.wait_for(lambda: key not in _held, TIMEOUT_MS / 1000):
            raise _in_use(root, folder)
        _held[key] = threading.get_ident()
    try:
        yield
    finally:
        with _held_changed:
            del _held[key]
            _held_changed.notify_all()


def _in_use(root: str, folder: str) -> StorageError:
    return StorageError(
        f"another statement of this process is changing names in {root}/{folder}", remedy="Run it again"
    )


@contextmanager
def _among_processes(path: str | None, clock: Clock, keep_file: bool) -> Iterator[None]:
    if path is None or "://" in path:
        yield
        return
    descriptor = _locked_descriptor(path, clock)
    try:
        yield
    finally:
        if not keep_file:
            with contextlib.suppress(OSError):  # the folder was moved or deleted
                os.unlink(os.path.join(path, LOCK_FILE))
        os.close(descriptor)


def _locked_descriptor(folder: str, clock: Clock) -> int:
    path = os.path.join(folder, LOCK_FILE)
    while True:
        descriptor = _opened(folder, path)
        try:
            _lock(descriptor, folder, clock)
            if _is_at(descriptor, path):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # the folder was moved away during the wait


def _opened(folder: str, path: str) -> int:
    try:
        try:
            descriptor = os.open(path, _FLAGS)
        except FileNotFoundError:
            descriptor = _made(folder, path)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ObjectMissing(folder) from error
    except OSError as error:
        raise _unusable(path, error) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UnusableFileError(f"{path} is not a regular file")
    return descriptor


def _made(folder: str, path: str) -> int:
    """Creates the file for all users who may write in the folder: its owner, its group, or everyone."""
    above = os.stat(folder)
    writers = above.st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH)
    mode = stat.S_IRUSR | stat.S_IWUSR | writers | writers << 1
    descriptor = os.open(path, _FLAGS | os.O_CREAT, mode)
    with contextlib.suppress(PermissionError):  # created by another user, or for a group that this user is not in
        os.fchown(descriptor, -1, above.st_gid)
        os.fchmod(descriptor, mode)
    return descriptor


def _unusable(path: str, error: OSError) -> StorageError:
    text = f"{path} cannot be opened ({error.strerror})"
    if error.errno == errno.ELOOP:
        return StorageError(
            f"{path} is a symbolic link", remedy="Remove it: the next change of a name creates the file"
        )
    return storage_errors.refused_write(text, error) or StorageError(text)


def _is_at(descriptor: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path, follow_symlinks=False))
    except OSError:
        return False


def _lock(descriptor: int, path: str, clock: Clock) -> None:
    deadline = clock.now_ms() + TIMEOUT_MS
    while True:
        try:
            if file_locks.acquire(descriptor, wait=False):
                return
        except OSError as error:
            raise StorageError(f"the folder {path} cannot be locked ({error.strerror})") from error
        if clock.now_ms() >= deadline:
            raise StorageError(
                f"another process has been changing names in {path} for {TIMEOUT_MS // 1000} seconds",
                remedy="Stop that process, then run it again",
            )
        clock.sleep(_PAUSE_S)
