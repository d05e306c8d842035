"""Passes a command to the command server of its environment, which is started if it does not run."""

from __future__ import annotations

import importlib
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from typing import Final

from dbt.adapters.silt.command_server import sockets
from dbt.adapters.silt.command_server.remote_command import RemoteCommand
from dbt.adapters.silt.command_server.request import (
    READY,
    REFUSED,
    RUN,
    STALE,
    STANDARD,
    Request,
    limits,
    send,
    server_key,
    short_name,
    valid_signals,
)

_ATTEMPTS: Final = 3
_ANSWER_SECONDS: Final = 120
"""The time until a server must be ready: it imports dbt first, perhaps on a busy machine."""


Start = Callable[[socket.socket, str, str], None]
"""Starts a server that accepts from a socket; the other arguments are the folder and the name of its files."""


def _start(listener: socket.socket, folder: str, name: str) -> None:
    # The module imports packages that are needed only to start a server.
    importlib.import_module("dbt.adapters.silt.command_server.starting").start(listener, folder, name)


def run(program: str, arguments: Sequence[str], start: Start = _start) -> str:
    """Lets a server run dbt, and ends this process as dbt ends. Returns the reason if no server takes the command.

    Args:
        program: the file of dbt's own command.
        start: starts a server.
    """
    try:
        connection, reason = _accepted((program, *arguments), start)
    except (OSError, sockets.UnsafeFolderError) as error:
        return str(error)
    if connection is None:
        return reason
    # Python's normal exit takes time, and nothing is left for it to do.
    os._exit(RemoteCommand(connection).end())


def _accepted(command: tuple[str, ...], start: Start) -> tuple[socket.socket | None, str]:
    """Returns the connection to a server that waits for START to run the command, or None and the reason."""
    answer = b""
    for _ in range(_ATTEMPTS):
        connection = _send(command, start)
        answer = connection.recv(len(READY))
        if answer == READY:
            connection.settimeout(None)
            return connection, ""
        connection.close()
        if answer != STALE:
            break
    if answer == STALE:
        return None, "installed packages changed while the command server started"
    why = "refused this command" if answer == REFUSED else "has ended"
    return None, f"the command server {why}; its log is in {sockets.folder()}"


def _send(command: tuple[str, ...], start: Start) -> socket.socket:
    key = server_key()
    request = _of_this_process(command, key)
    folder, name = sockets.folder(), short_name(key)
    connection = sockets.connect_or_start(folder, name, lambda listener: start(listener, folder, name))
    connection.settimeout(_ANSWER_SECONDS)
    here = os.open(".", os.O_PATH | os.O_DIRECTORY)
    try:
        send(connection, request, (*request.streams, here))
    finally:
        os.close(here)
    return connection


def _of_this_process(arguments: tuple[str, ...], key: str) -> Request:
    """Returns a request for a command with everything that this process was started with."""
    return Request(
        RUN,
        key,
        tuple(map(os.fsencode, arguments)),
        tuple(sys.path),
        tuple(name + b"=" + value for name, value in os.environb.items()),
        _mask(),
        tuple(each for each in valid_signals() if signal.getsignal(each) is signal.SIG_IGN),
        tuple(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
        tuple((each, resource.getrlimit(each)[0]) for each in limits()),
        tuple(os.sched_getaffinity(0)),
        tuple(each for each in STANDARD if _is_open(each)),
    )


def _mask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True
