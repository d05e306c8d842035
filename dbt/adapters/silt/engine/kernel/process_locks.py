"""Tells the processes of this user on this machine which of them still work: each holds the lock of a file.

The system releases a lock however its process ends, and the file of a killed process remains. If the file is missing,
the process may work on another machine, in another container, or for another user.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
import time
from pathlib import Path
from typing import Final

from dbt.adapters.silt.engine.kernel import file_locks

_SUFFIX: Final = ".lock"
_OLDEST: Final = 8 * 24 * 60 * 60
"""The age, in seconds, at which the files of killed processes are deleted: no run is continued then."""
_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


class ProcessLock:
    """The lock of a process, by a name that is a plain file name.

    Args:
        name: the same in all processes.
    """

    def __init__(self, name: str) -> None:
        self._path = _folder() / f"{name}{_SUFFIX}"
        self._descriptor: int | None = None

    def hold(self) -> None:
        """Takes the lock; a process that cannot take it is known by its signs of life only."""
        with contextlib.suppress(OSError):
            _make_folder(self._path.parent)
            descriptor = os.open(self._path, _FLAGS, 0o600)
            if file_locks.acquire(descriptor, wait=False):
                self._descriptor = descriptor
            else:
                os.close(descriptor)

    def release(self, keeps_file: bool = False) -> None:
        """Releases the lock, and deletes its file, if this process holds it.

        Args:
            keeps_file: whether the file remains, as if the process had been killed.
        """
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            if not keeps_file:
                with contextlib.suppress(OSError):
                    self._path.unlink(missing_ok=True)
            os.close(descriptor)

    def is_held(self) -> bool | None:
        """Returns whether a process, possibly this process, holds the lock; or None if this machine cannot tell."""
        try:
            _check_own(self._path.parent)
            descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            return None
        try:
            return file_locks.is_held(descriptor)
        finally:
            os.close(descriptor)


def _folder() -> Path:
    # Not in the home folder, which several machines may share.
    return Path(tempfile.gettempdir(), f"dbt-silt-{os.geteuid()}", "runs")


def _make_folder(folder: Path) -> None:
    for each in (folder.parent, folder):
        each.mkdir(mode=0o700, exist_ok=True)
    _check_own(folder)
    for path in folder.glob(f"*{_SUFFIX}"):
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_mtime < time.time() - _OLDEST:
                path.unlink()


def _check_own(folder: Path) -> None:
    """Checks that no other user can replace the files of a folder.

    Raises:
        OSError: if another user can, or the folder does not exist.
    """
    for each in (folder.parent, folder):
        found = each.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
            raise PermissionError(f"{each} does not belong to this user alone")
