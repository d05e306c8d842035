"""Finds the socket of a command server, in a folder that is this user's alone; makes one where nobody listens."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import stat
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from dbt.adapters.silt.engine.kernel import owned_folders

SOCKET, LOCK, LOG = ".socket", ".lock", ".log"
"""The endings of a server's files, after its name."""

_FOLDERS: Final = ("dbt-silt", "commands")
_LONGEST_PATH: Final = 107
"""Bytes that the address of a Unix socket has room for."""
_WAITING: Final = 128


class UnsafePlaceError(Exception):
    """Another user could reach the sockets of this user."""


def folder() -> str:
    """The folder of this user's sockets, which is made here.

    Raises:
        UnsafePlaceError: it is not this user's alone.
        OSError: it cannot be made.
    """
    path = _above()
    os.makedirs(path, mode=0o700, exist_ok=True)
    for name in _FOLDERS:
        problem = owned_folders.problem(path)
        if problem is not None:
            raise UnsafePlaceError(problem)
        path = os.path.join(path, name)
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700)
    found = os.lstat(path)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise UnsafePlaceError(f"{path} is not a folder that only this user can use (chmod 700)")
    return path


def _above() -> str:
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if os.path.isabs(runtime) and os.path.isdir(runtime) and os.stat(runtime).st_uid == os.geteuid():
        return runtime
    cache = os.environ.get("XDG_CACHE_HOME", "")
    return cache if os.path.isabs(cache) else os.path.join(os.path.expanduser("~"), ".cache")


def connect(folder: str, name: str) -> socket.socket | None:
    """A connection to the server of that name; None where nothing listens.

    Raises:
        UnsafePlaceError: another user listens.
        OSError: it cannot be reached.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _address(folder, name + SOCKET) as address:
            connection.connect(address)
    except (FileNotFoundError, ConnectionRefusedError):
        connection.close()
        return None
    if peer_user(connection) != os.geteuid():
        raise UnsafePlaceError(f"another user listens on {os.path.join(folder, name + SOCKET)}")
    return connection


def connect_or_start(folder: str, name: str, start: Callable[[socket.socket], None]) -> socket.socket:
    """A connection to the server of that name, which is started if none listens; of two starts at once one does it.

    Args:
        start: starts a server that accepts from the socket it is given. Whoever connects before it does, waits.

    Raises:
        UnsafePlaceError, OSError: see `connect`.
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
    """Keeps others from starting or ending the server of that name."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    file = os.open(os.path.join(folder, name + LOCK), flags, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)


def _listen(folder: str, name: str) -> socket.socket:
    """A socket in the place of one that nobody listens on."""
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
    """The device and the number of the file of a server's socket; None where there is none."""
    try:
        found = os.stat(os.path.join(folder, name + SOCKET))
    except OSError:
        return None
    return found.st_dev, found.st_ino


def remove(folder: str, name: str, file: tuple[int, int] | None) -> None:
    """Removes the file of a server's socket, unless another server has put its own there. Call it `locked`."""
    if file is not None and file_of(folder, name) == file:
        os.unlink(os.path.join(folder, name + SOCKET))


@contextmanager
def _address(folder: str, name: str) -> Iterator[str]:
    """An address that is short enough, whatever the folder's path."""
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
    """The user at the other end, from the kernel."""
    size = struct.calcsize("3i")
    _, user, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return int(user)
