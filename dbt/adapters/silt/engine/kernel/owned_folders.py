"""Creates folders of this user alone, and detects folders in which another user could create or replace files."""

from __future__ import annotations

import os
import stat

_ROOT = 0


def create(path: str) -> None:
    """Creates a folder and the missing folders above it; only this user can use the new folders, whatever the umask.

    Raises:
        OSError: if a folder cannot be created.
    """
    above = os.path.dirname(path)
    if above and not os.path.isdir(above):
        create(above)
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        if not os.path.isdir(path):
            raise


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
