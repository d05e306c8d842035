"""Finds the socket of a command server in a folder that only this user can use, or starts a server."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from dbt.adapters.silt.engine.kernel import file_locks, owned_folders

SOCKET, LOCK, LOG = ".socket", ".lock", ".log"
"""The endings of a server's files, after its name."""

_FOLDERS: Final = ("dbt-silt", "commands")
_LONGEST_PATH: Final = 107
"""The most bytes of the address of a Unix socket."""
_WAITING: Final = 128


class UnsafeFolderError(Exception):
    """Another user could reach the sockets of this user."""


def folder() -> str:
    """Creates the folder of this user's sockets if it is missing, and returns it.

    Raises:
        UnsafeFolderError: if another user can use the folder.
        OSError: if the folder cannot be created.
    """
    path = _parent_folder()
    owned_folders.create(path)
    for name in _FOLDERS:
        problem = owned_folders.problem(path)
        if problem is not None:
            raise UnsafeFolderError(problem)
        path = os.path.join(path, name)
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700)
    found = os.lstat(path)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise UnsafeFolderError(f"{path} is not a folder that only this user can use (chmod 700)")
    return path


def _parent_folder() -> str:
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if os.path.isabs(runtime) and os.path.isdir(runtime) and os.stat(runtime).st_uid == os.geteuid():
        return runtime
    cache = os.environ.get("XDG_CACHE_HOME", "")
    return cache if os.path.isabs(cache) else os.path.join(os.path.expanduser("~"), ".cache")


def connect(folder: str, name: str) -> socket.socket | None:
    """Connects to the server of a name; returns None if no server listens.

    Raises:
        UnsafeFolderError: if another user listens.
        OSError: if the server cannot be reached.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _address(folder, name + SOCKET) as address:
            connection.connect(address)
    except (FileNotFoundError, ConnectionRefusedError):
        connection.close()
        return None
    if peer_user(connection) != os.geteuid():
        raise UnsafeFolderError(f"another user listens on {os.path.join(folder, name + SOCKET)}")
    return connection


def connect_or_start(folder: str, name: str, start: Callable[[socket.socket], None]) -> socket.socket:
    """Connects to the server with that name. If no server listens, starts it; only the first of several clients does.

    Args:
        start: starts a server that accepts from the given socket. A client that connects earlier waits.

    Raises:
        UnsafeFolderError, OSError: see `connect`.
    """
    connection = connect(folder, name)
    if connection is not None:
        return connection
    with locked(folder, name):
        connection = connect(folder, name)
        if connection is None:
            with _listen(folder, name) as listener:
                start(listener)
            connection = connect(folder, name)
    if connection is None:
        raise ConnectionRefusedError("the command server ended as it started")
    return connection


@contextmanager
def locked(folder: str, name: str) -> Iterator[None]:
    """Prevents other processes from starting or ending the server of a name."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    file = os.open(os.path.join(folder, name + LOCK), flags, 0o600)
    try:
        file_locks.acquire(file)
        yield
    finally:
        os.close(file)


def _listen(folder: str, name: str) -> socket.socket:
    """Listens on a new socket, which replaces the file of a server that has ended."""
    path = os.path.join(folder, name + SOCKET)
    if os.path.lexists(path):
        os.unlink(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        with _address(folder, name + SOCKET) as address:
            listener.bind(address)
    finally:
        os.umask(before)
    listener.listen(_WAITING)
    return listener


def file_of(folder: str, name: str) -> tuple[int, int] | None:
    """Returns the device and the inode of the file of a server's socket, or None if it is missing."""
    try:
        found = os.stat(os.path.join(folder, name + SOCKET))
    except OSError:
        return None
    return found.st_dev, found.st_ino


def remove(folder: str, name: str, file: tuple[int, int] | None) -> None:
    """Deletes the file of a server's socket, unless another server has replaced it. Call it `locked`."""
    if file is not None and file_of(folder, name) == file:
        os.unlink(os.path.join(folder, name + SOCKET))


@contextmanager
def _address(folder: str, name: str) -> Iterator[str]:
    """Returns an address of the socket that is short enough, however long the path of the folder is."""
    path = os.path.join(folder, name)
    if len(os.fsencode(path)) <= _LONGEST_PATH:
        yield path
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}/{name}"
    finally:
        os.close(descriptor)


def peer_user(connection: socket.socket) -> int:
    """Returns the user at the other end, as the kernel knows it."""
    size = struct.calcsize("3i")
    _, user, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return int(user)
