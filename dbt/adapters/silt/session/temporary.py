"""The folder of a Spark's log and leftovers, and the deletion of those that killed processes have left.

A process that is killed deletes nothing. Each folder holds a file that its process keeps locked, which the system
releases however the process ends: process ids say nothing where containers share a temporary folder.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import tempfile
import time
from pathlib import Path

_PREFIX = "silt-spark-"
_LOCK = "alive.lock"
_UNLOCKED_SECONDS = 86_400
"""How old a folder without the file has to be: its process may be about to make it."""


def make() -> str:
    """A new folder, which goes when this process ends; those of processes that are gone are deleted."""
    _sweep(Path(tempfile.gettempdir()))
    folder = tempfile.mkdtemp(prefix=_PREFIX)
    held = os.open(Path(folder, _LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(held, fcntl.LOCK_EX)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _sweep(temporary: Path) -> None:
    for folder in temporary.glob(f"{_PREFIX}*"):
        if _is_left(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _is_left(folder: Path) -> bool:
    """Whether the folder is this user's and its process is gone."""
    try:
        found = folder.lstat()
    except OSError:  # another process has deleted it meanwhile
        return False
    try:
        if found.st_uid != os.geteuid() or not folder.is_dir() or folder.is_symlink():
            return False
        descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return time.time() - found.st_mtime > _UNLOCKED_SECONDS
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True
