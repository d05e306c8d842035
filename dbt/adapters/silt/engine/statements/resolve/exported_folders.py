"""Recognises the folders that `external` models have written: every session may read their views."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from typing import Final

from dbt.adapters.silt.engine.kernel import owned_folders

MARKER: Final = "_dbt_silt.json"
"""The file in such a folder that names the model that wrote it."""

_OF_PATTERNS: Final = re.compile(r"[*?\[\]{}\\]")


def is_exported(location: str) -> bool:
    """Returns whether it is a folder with a model's marker, in which no link and no other user's file leads elsewhere.

    Another user's view could name any folder; a folder whose files are links to private files does not count.

    Args:
        location: the location as the view's SQL names it.
    """
    if not os.path.isabs(location) or os.path.normpath(location) != location or _OF_PATTERNS.search(location):
        return False
    try:
        if not stat.S_ISREG(os.lstat(os.path.join(location, MARKER)).st_mode) or os.path.islink(location):
            return False
        return owned_folders.problem(location) is None and not any(_is_link(each) for each in _entries(location))
    except OSError:
        return False


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        for each in entries:
            yield each
            if each.is_dir(follow_symlinks=False):
                yield from _entries(each.path)


def _is_link(entry: os.DirEntry[str]) -> bool:
    return entry.is_symlink() or not (entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False))
