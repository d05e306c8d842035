"""Checks whether the packages on the module path are unchanged since this process imported them."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from typing import NamedTuple

_OF_PACKAGES = (".dist-info", ".egg-info", ".egg-link", ".pth")


class File(NamedTuple):
    """The state of a file, which differs from any other state of it in at least one member."""

    number: int
    size: int
    changed: int


class Packages(NamedTuple):
    """The imported modules, and the modules that could be imported.

    Attributes:
        modules: the state of each imported file.
        listings: the names in each folder on the module path.
    """

    modules: Mapping[str, File | None]
    listings: Mapping[str, object]

    def are_unchanged(self) -> bool:
        """Returns whether a new process would import the same modules."""
        return all(_file(path) == file for path, file in self.modules.items()) and all(
            _listing(path) == names for path, names in self.listings.items()
        )


def on_path() -> Packages:
    """Returns the packages on the module path, with no module imported yet."""
    return Packages({}, {path: _listing(path) for path in sys.path})


def with_imported(before: Packages, since: int) -> Packages:
    """Returns the packages with the modules that this process has imported by now.

    Args:
        since: the start of this process, in nanoseconds since 1970. If a file was written later, the process may have
            imported an earlier state of it.
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
"""A state that no file has."""


def _listing(path: str) -> object:
    """Returns the names in a folder, with the times of the folders that describe packages; None if it is missing."""
    try:
        with os.scandir(path) as found:
            return frozenset(_described(each) for each in found if each.name != "__pycache__")
    except OSError:
        return None


def _described(entry: os.DirEntry[str]) -> tuple[str, int]:
    is_of_package = entry.name.endswith(_OF_PACKAGES)
    return entry.name, entry.stat().st_mtime_ns if is_of_package else 0
