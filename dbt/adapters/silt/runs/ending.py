"""Shortens the end of dbt's process, in which Python looks through all objects of the project for cycles."""

from __future__ import annotations

import atexit
import contextlib
import gc
import io
import sys
from pathlib import PurePath
from typing import Final

_COMMANDS: Final = ("dbt", "dbt.exe", "silt", "silt.exe")
_MODULES: Final = ("dbt.cli.main", "dbt.__main__", "dbt.adapters.silt.cli.main")
_WRITERS: Final = frozenset((io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom))


def end_quickly() -> None:
    """Keeps Python from freeing cycles at exit, if this process is a command of dbt or of this package.

    The system frees the memory. Functions registered with `atexit` still run, and open files are flushed. The exit of
    another program that runs dbt is unchanged, since its objects may have finalizers with an effect.
    """
    if _is_command():
        atexit.unregister(_leave_to_the_system)
        atexit.register(_leave_to_the_system)


def _is_command() -> bool:
    main = sys.modules["__main__"]
    module = getattr(getattr(main, "__spec__", None), "name", None)
    return module in _MODULES or PurePath(getattr(main, "__file__", None) or "").name in _COMMANDS


def _leave_to_the_system() -> None:
    # Text files are flushed first, because that fills the buffers of the binary files below them.
    for file in sorted((each for each in gc.get_objects() if type(each) in _WRITERS), key=_is_below):
        with contextlib.suppress(OSError, ValueError):  # the file is closed, or its reader has ended
            file.flush()
    gc.freeze()


def _is_below(file: io.IOBase) -> bool:
    return not isinstance(file, io.TextIOBase)
