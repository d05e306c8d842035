"""Locks files. The system releases a lock however its process ends; process ids are used again."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from pathlib import Path

from dbt.adapters.silt.engine.kernel.errors import KeptSparkError

_FLAGS = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW


class Lock:
    """A lock that is held until it is released or its process ends.

    Attributes:
        descriptor: the descriptor of the open file; a process that inherits it holds the lock, too.
    """

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def release(self) -> None:
        """Releases the lock; the second call does nothing."""
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def acquire(path: Path, *, shared: bool = False, wait: bool = True) -> Lock | None:
    """Locks a file, and creates it if it is missing.

    Args:
        shared: whether other processes may hold the lock shared at the same time.
        wait: whether to wait for the lock; if False, returns None if another process holds it.

    Raises:
        KeptSparkError: if the file or its file system cannot be locked.
    """
    operation = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB)
    while True:
        lock = Lock(_open(path, os.O_CREAT))
        try:
            fcntl.flock(lock.descriptor, operation)
        except OSError as error:
            lock.release()
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                return None
            raise _unlockable(path, error) from error
        if _is_still_there(path, lock.descriptor):
            return lock
        lock.release()  # another process deleted the file before it was locked


def is_held(path: Path) -> bool:
    """Returns whether a process holds the file's lock exclusively."""
    try:
        descriptor = _open(path)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def _open(path: Path, flags: int = 0) -> int:
    try:
        return os.open(path, _FLAGS | flags, 0o600)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _unlockable(path, error) from error


def _is_still_there(path: Path, descriptor: int) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    return False


def _unlockable(path: Path, error: OSError) -> KeptSparkError:
    return KeptSparkError(
        f"{path} cannot be locked ({error.strerror})",
        remedy="Set XDG_CACHE_HOME to a folder that you own on a local disk, or remove `keep_alive` from the profile",
    )
