"""Opens files and folders below a trusted folder without following symbolic links.

Each component of a path is opened relative to the descriptor of the folder above it, so that a link that another
process creates in its place at the same time is not followed either. A path with `..` is refused. The path of the
trusted folder may contain links.
Source: openat(2), open(2) `O_NOFOLLOW`.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from dbt.adapters.silt.engine.kernel.errors import SymbolicLinkError, UnusableFileError

SEARCH: Final = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
"""Opens a folder to reach its content; on Linux, needs no permission to list it."""
READ: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
"""Opens a folder to list it, or to force it to disk."""

_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_MADE: Final = 0o777


@contextlib.contextmanager
def folder(top: str, path: str, flags: int = SEARCH) -> Iterator[int]:
    """Yields the descriptor of a folder.

    Args:
        top: the trusted folder, absolute.
        path: the folder relative to `top`; empty for `top` itself.
        flags: `SEARCH` or `READ`.

    Raises:
        SymbolicLinkError: if a component of the path is a symbolic link.
        UnusableFileError: if a component of the path is `..`.
        OSError: if the folder is missing or cannot be opened.
    """
    names = _names(top, path)
    descriptor = os.open(top, SEARCH if names else flags)
    try:
        for position, name in enumerate(names):
            above, descriptor = descriptor, -1
            try:
                descriptor = _inner_folder(above, name, flags if position == len(names) - 1 else SEARCH)
            except NotADirectoryError:
                raise_if_link(above, name, f"{top}/{path}")
                raise
            finally:
                os.close(above)
        yield descriptor
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def make_folder(top: str, path: str) -> None:
    """Creates a folder below an existing folder, and the folders between them, durably; it may already exist.

    Raises:
        SymbolicLinkError: if a component of the path is a symbolic link.
        OSError: if the folder cannot be created.
    """
    names = _names(top, path)
    for depth, name in enumerate(names):
        with folder(top, "/".join(names[:depth]), READ) as above:
            try:
                os.mkdir(name, _MADE, dir_fd=above)
            except FileExistsError:
                raise_if_link(above, name, f"{top}/{path}")
            else:
                os.fsync(above)


@contextlib.contextmanager
def file(folder_descriptor: int, name: str, shown: str) -> Iterator[int]:
    """Yields the descriptor of a regular file, open for reading; never blocks, not even on a named pipe.

    Args:
        shown: the file's path, for messages.

    Raises:
        SymbolicLinkError: if the file is a symbolic link.
        UnusableFileError: if it is a folder, a pipe, a socket or a device.
        OSError: if the file is missing or cannot be opened.
    """
    try:
        descriptor = os.open(name, _FILE, dir_fd=folder_descriptor)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK):
            raise_if_link(folder_descriptor, name, shown)
        if error.errno == errno.ENXIO:  # a socket
            raise _not_regular(shown) from error
        raise
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise _not_regular(shown)
        yield descriptor
    finally:
        os.close(descriptor)


def _not_regular(shown: str) -> UnusableFileError:
    return UnusableFileError(f"{shown} is not a regular file")


def status(folder_descriptor: int, name: str) -> os.stat_result:
    """Returns the status of a directory entry; for a link, that of the link itself.

    Raises:
        OSError: if the name does not exist, or the system refuses the status.
    """
    return os.stat(name, dir_fd=folder_descriptor, follow_symlinks=False)


def raise_if_link(folder_descriptor: int, name: str, shown: str) -> None:
    """Raises SymbolicLinkError if the name is a symbolic link.

    Args:
        shown: the path that contains the name, for the message.
    """
    with contextlib.suppress(OSError):
        if not stat.S_ISLNK(status(folder_descriptor, name).st_mode):
            return
        raise link_error(shown, name)


def link_error(shown: str, name: str | None = None) -> SymbolicLinkError:
    """Returns the error for a path that is a link, or that contains a link with this name."""
    is_whole = name is None or shown.endswith(f"/{name}")
    what = f"{shown} is a symbolic link" if is_whole else f"`{name}` in the path {shown} is a symbolic link"
    return SymbolicLinkError(f"{what}, and links in a table's folder are not followed", details={"path": shown})


def delete_tree(above: int, name: str) -> None:
    """Deletes a folder with its content, and no file behind a link, also while other processes move or replace folders.

    Each entry is deleted relative to the descriptor of its folder. The depth of the folders is not limited: only a
    single folder is open at a time.

    Args:
        above: the descriptor of the folder that contains the folder.

    Raises:
        OSError: if an entry cannot be deleted; `ENOTEMPTY` if a file was added meanwhile, `ESTALE` if a folder was
            moved meanwhile. Other entries may have been deleted.
    """
    descriptor = _inner_folder(above, name, READ)
    try:
        trail = [_Level(name, _identity(above), _emptied(descriptor))]
        while len(trail) > 1 or trail[0].folders:
            level = trail[-1]
            if level.folders:
                inner = level.folders.pop()
                descriptor, left = _inner_folder(descriptor, inner, READ), descriptor
                trail.append(_Level(inner, _closed(left), _emptied(descriptor)))
            else:
                descriptor, left = os.open("..", READ, dir_fd=descriptor), descriptor
                _closed(left)
                _check_same(descriptor, trail.pop().above)
                os.rmdir(level.name, dir_fd=descriptor)
    finally:
        os.close(descriptor)
    os.rmdir(name, dir_fd=above)


@dataclass(frozen=True)
class _Level:
    """A folder that is being deleted.

    Attributes:
        name: its name in the folder above it.
        above: the device and the inode of the folder above it.
        folders: the names of its folders that are not deleted yet.
    """

    name: str
    above: tuple[int, int]
    folders: list[str]


def _emptied(descriptor: int) -> list[str]:
    """Deletes the files and links directly in a folder, and returns the names of its folders."""
    with os.scandir(descriptor) as entries:
        found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_folder in found:
        if not is_folder:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=descriptor)
    return [name for name, is_folder in found if is_folder]


def _identity(descriptor: int) -> tuple[int, int]:
    found = os.fstat(descriptor)
    return found.st_dev, found.st_ino


def _closed(descriptor: int) -> tuple[int, int]:
    """Closes a folder and returns its identity."""
    try:
        return _identity(descriptor)
    finally:
        os.close(descriptor)


def _check_same(descriptor: int, expected: tuple[int, int]) -> None:
    if _identity(descriptor) != expected:
        raise OSError(errno.ESTALE, "a folder was moved while it was deleted")


def _names(top: str, path: str) -> list[str]:
    names = [name for name in path.split("/") if name not in ("", ".")]
    if ".." in names:
        raise UnusableFileError(f"the path {path} leads out of the folder {top}", details={"path": path})
    return names


def _inner_folder(above: int, name: str, flags: int) -> int:
    try:
        return os.open(name, flags | os.O_NOFOLLOW, dir_fd=above)
    except OSError as error:
        # Systems without O_PATH return ELOOP for a link.
        if error.errno in (errno.ELOOP, errno.EMLINK):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), name) from error
        raise
