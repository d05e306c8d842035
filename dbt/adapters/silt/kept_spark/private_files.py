"""Creates, reads and locks files that only this user can use: they hold a server's token."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path

from dbt.adapters.silt.engine.kernel import file_locks, owned_folders
from dbt.adapters.silt.engine.kernel.errors import KeptSparkError

_OTHERS = 0o077

_FLAGS = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW


def base_folder() -> Path:
    """Returns the folder of all kept Sparks of this user.

    It is not in XDG_RUNTIME_DIR: a scheduler's commands have no such folder, and it is deleted when the user's last
    login ends.
    """
    named = os.environ.get("XDG_CACHE_HOME", "")
    cache = Path(named) if os.path.isabs(named) else Path.home() / ".cache"
    return cache / "dbt-silt" / "spark"


def private_folder(folder: Path) -> Path:
    """Creates the folder if it is missing; no other user can list it.

    Raises:
        KeptSparkError: if the folder cannot be created, or belongs to another user.
    """
    try:
        owned_folders.create(os.fspath(folder.parent))
        for above in (folder.parent.parent, folder.parent):
            if (problem := owned_folders.problem(os.fspath(above))) is not None:
                raise _not_used(folder, problem)
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        if stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and found.st_mode & _OTHERS:
            folder.chmod(0o700)
    except OSError as error:
        raise _not_used(folder, str(error.strerror)) from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise _foreign(folder)
    return folder


def write(path: Path, content: bytes) -> None:
    """Writes a file atomically; only this user can read it.

    Raises:
        KeptSparkError: if the file cannot be written.
    """
    try:
        _write(path, content)
    except OSError as error:
        raise KeptSparkError(
            f"{path} cannot be written ({error.strerror})",
            remedy="Free space there, or set XDG_CACHE_HOME to a folder that you own on another disk",
        ) from error


def _write(path: Path, content: bytes) -> None:
    descriptor, unfinished = tempfile.mkstemp(dir=path.parent, prefix=".")  # of mode 0600
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.replace(unfinished, path)
    except BaseException:
        os.unlink(unfinished)
        raise


def read(path: Path) -> bytes | None:
    """Reads a file, or returns None if it is missing.

    Raises:
        KeptSparkError: if the file belongs to another user, or another user can read or write it.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _foreign(path) from error
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & _OTHERS:
            raise _foreign(path)
        return file.read()


def _not_used(folder: Path, problem: str) -> KeptSparkError:
    return KeptSparkError(
        f"the folder {folder} of the kept Spark cannot be used ({problem})",
        remedy="Set XDG_CACHE_HOME to a folder that you own, or remove `keep_alive` from the profile",
    )


def _foreign(path: Path) -> KeptSparkError:
    return KeptSparkError(
        f"{path} is not a regular file that only you can access",
        remedy="Find out who created it, and delete it; or set XDG_CACHE_HOME to a folder that you own",
    )


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
    while True:
        lock = Lock(_open(path, os.O_CREAT))
        try:
            acquired = file_locks.acquire(lock.descriptor, shared=shared, wait=wait)
        except OSError as error:
            lock.release()
            raise _unlockable(path, error) from error
        if not acquired:
            lock.release()
            return None
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
        return file_locks.is_held(descriptor)
    finally:
        os.close(descriptor)


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
