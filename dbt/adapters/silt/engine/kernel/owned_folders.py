"""Tells folders in which another user of the machine could put files, or others in the place of folders."""

from __future__ import annotations

import os
import stat

_ROOT = 0


def problem(path: str) -> str | None:
    """Why what is in the folder may be another user's; None for a folder that only this user, or root, changes.

    Writing by a group is not looked at: many systems give each user a group of their own. In a folder with the sticky
    bit, others can put files, and cannot replace those of this user.

    Raises:
        OSError: the folder cannot be looked at.
    """
    found = os.stat(path)
    if found.st_uid not in (os.geteuid(), _ROOT):
        return f"{path} belongs to another user"
    if found.st_mode & stat.S_IWOTH and not found.st_mode & stat.S_ISVTX:
        return f"every user can change {path}"
    return None
