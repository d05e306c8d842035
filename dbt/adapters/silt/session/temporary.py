"""Creates the folders of a Spark's log, rows and leftovers, and deletes the folders of killed processes.

Only this user can read these files: Spark lets every user of the machine read the rows that it writes for its own use.

A process that is killed deletes nothing. Each folder contains a file that its process keeps locked until it ends in any
way. A process id would not do, because containers may share a temporary folder.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

_PREFIX = "silt-spark-"
_LOCK = "alive.lock"
_UNLOCKED_SECONDS = 86_400
"""The age after which a folder without the file is deleted: until then, its process may be about to create the file."""


def make(parent: str | None = None) -> str:
    """Creates a folder for this process, which only this user can read; deletes folders of ended processes.

    Args:
        parent: the parent folder, which is created if it is missing; by default the system's temporary folder.

    Raises:
        OSError: if the folder cannot be created.
    """
    above = Path(tempfile.gettempdir() if parent is None else parent)
    above.mkdir(parents=True, exist_ok=True)
    _sweep(above)
    folder = tempfile.mkdtemp(prefix=_PREFIX, dir=above)  # of mode 0700
    held = os.open(Path(folder, _LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(held, fcntl.LOCK_EX)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


LOCAL: Final = "spark.local.dir"
LOCAL_VARIABLE: Final = "SPARK_LOCAL_DIRS"
"""The environment variable that Spark prefers to the setting."""


def make_below(folders: str) -> tuple[str, ...]:
    """Creates a folder in each folder that the setting lists; raises as `make` does."""
    return tuple(make(each) for each in _listed(folders))


def is_below(folders: str, above: str) -> bool:
    """Returns whether the first setting's folders are below the second setting's, as `make_below` creates them."""
    return [Path(each).parent for each in _listed(folders)] == [Path(each) for each in _listed(above)]


def local_conf(folders: Sequence[str]) -> dict[str, str]:
    """Returns Spark's setting for these folders; empty without folders."""
    return {LOCAL: ",".join(folders)} if folders else {}


@contextlib.contextmanager
def local_environment(conf: Mapping[str, str]) -> Iterator[None]:
    """Replaces the value of the variable, if it is set, by the setting's, for processes that the block starts."""
    named = os.environ.get(LOCAL_VARIABLE)
    if named is None or LOCAL not in conf:
        yield
        return
    os.environ[LOCAL_VARIABLE] = conf[LOCAL]
    try:
        yield
    finally:
        os.environ[LOCAL_VARIABLE] = named


def _listed(folders: str) -> list[str]:
    return [each.strip() for each in folders.split(",")]


def _sweep(temporary: Path) -> None:
    for folder in temporary.glob(f"{_PREFIX}*"):
        if _is_left(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _is_left(folder: Path) -> bool:
    """Returns whether the folder is this user's and its process has ended."""
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
