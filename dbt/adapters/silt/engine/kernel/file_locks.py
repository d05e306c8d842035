"""Locks of open files (flock(2)): a lock is held until its descriptor is closed or its process ends."""

from __future__ import annotations

import errno
import fcntl


def acquire(descriptor: int, *, shared: bool = False, wait: bool = True) -> bool:
    """Takes the lock of a file.

    Args:
        shared: whether other processes may hold the lock shared at the same time.
        wait: whether to wait for the lock; if False, returns False if another process holds it.

    Raises:
        OSError: if the file system has no locks.
    """
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        raise
    return True


def is_held(descriptor: int) -> bool:
    """Returns whether another descriptor holds the lock of this file exclusively; True if it cannot be tested.

    If the lock is free, this descriptor holds it shared until it is closed.
    """
    try:
        return not acquire(descriptor, shared=True, wait=False)
    except OSError:
        return True
