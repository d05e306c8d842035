"""Detects folders in which another user of the machine could create files or replace folders."""

from __future__ import annotations

import os
import stat

_ROOT = 0


def problem(path: str) -> str | None:
    """Returns why another user may own the folder's contents, or None if only this user or root can change it.

    Group permissions are ignored: many systems give each user a private group. In a folder with the sticky bit, another
    user can create files, but cannot replace this user's files.

    Raises:
        OSError: if the folder cannot be read.
    """
    found = os.stat(path)
    if found.st_uid not in (os.geteuid(), _ROOT):
        return f"{path} belongs to another user"
    if found.st_mode & stat.S_IWOTH and not found.st_mode & stat.S_ISVTX:
        return f"every user can change {path}"
    return None
