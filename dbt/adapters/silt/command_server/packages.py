"""Finds out whether the packages on the path of modules are still those that this process has imported."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from typing import NamedTuple

_OF_PACKAGES = (".dist-info", ".egg-info", ".egg-link", ".pth")


class File(NamedTuple):
    """What tells one state of a file from another."""

    number: int
    size: int
    changed: int


class Packages(NamedTuple):
    """What was imported, and what could have been.

    Attributes:
        modules: the files of the modules.
        listings: of each folder on the path of modules, the names in it.
    """

    modules: Mapping[str, File | None]
    listings: Mapping[str, object]

    def are_unchanged(self) -> bool:
        """Whether a new process would import the same."""
        return all(_file(path) == file for path, file in self.modules.items()) and all(
            _listing(path) == names for path, names in self.listings.items()
        )


def on_path() -> Packages:
    """What can be imported, of which nothing counts as imported yet."""
    return Packages({}, {path: _listing(path) for path in sys.path})


def with_imported(before: Packages, since: int) -> Packages:
    """The same packages, with what this process has imported by now.

    Args:
        since: when it began, in nanoseconds of the time of files. A file that was written after that may have been
            imported as it was before.
    """
    files = (getattr(module, "__file__", None) for module in tuple(sys.modules.values()))
    new = {path for path in files if isinstance(path, str)} - before.modules.keys()
    states = {path: _file(path) for path in new}
    now = time.time_ns()
    written = {path for path, state in states.items() if state is not None and since <= state.changed <= now}
    return before._replace(modules={**before.modules, **states, **dict.fromkeys(written, _UNKNOWN)})


def _file(path: str) -> File | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return File(found.st_ino, found.st_size, found.st_mtime_ns)


_UNKNOWN = File(0, 0, 0)
"""No file is like it."""


def _listing(path: str) -> object:
    """The names in a folder, and when the folders that describe packages were written; None where there is none."""
    try:
        with os.scandir(path) as found:
            return frozenset(_described(each) for each in found if each.name != "__pycache__")
    except OSError:
        return None


def _described(entry: os.DirEntry[str]) -> tuple[str, int]:
    is_of_package = entry.name.endswith(_OF_PACKAGES)
    return entry.name, entry.stat().st_mtime_ns if is_of_package else 0
