"""Lists the command servers of this user, and ends them."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dbt.adapters.silt.command_server import sockets
from dbt.adapters.silt.command_server.request import STATUS, STOP, Request, send

_ANSWER_SECONDS = 10


@dataclass(frozen=True)
class ServerStatus:
    """A command server that runs.

    Attributes:
        process: the process id.
        seconds: the age.
        commands: the number of commands and requests that it has answered.
        keep_alive: how many seconds it runs without a command.
        memory: the bytes that it holds in memory; its commands share most of this memory.
        log: the file to which it writes errors.
    """

    process: int
    seconds: float
    commands: int
    keep_alive: float
    memory: int
    log: Path


def status() -> tuple[ServerStatus, ...]:
    """Returns the command servers of this user, of every environment.

    Raises:
        UnsafeFolderError: if another user could reach their sockets.
        OSError: if the folder of their sockets cannot be used.
    """
    return tuple(_status(name, answer) for name, answer in _answers(STATUS) if answer)


def stop() -> int:
    """Ends the command servers of this user, and returns their number. Running commands continue to their end.

    Raises:
        UnsafeFolderError, OSError: see `status`.
    """
    return sum(bool(answer) for _, answer in _answers(STOP))


def _answers(verb: bytes) -> Iterator[tuple[str, bytes]]:
    folder = sockets.folder()
    for each in sorted(os.listdir(folder)):
        name, ending = os.path.splitext(each)
        connection = sockets.connect(folder, name) if ending == sockets.SOCKET else None
        if connection is not None:
            with connection:
                yield name, _answer(connection, verb)


def _answer(connection: socket.socket, verb: bytes) -> bytes:
    """Returns the answer of a server; empty if the server is ending or takes too long."""
    connection.settimeout(_ANSWER_SECONDS)
    try:
        send(connection, Request(verb, ""))
        return connection.recv(1024)
    except OSError:
        return b""


def _status(name: str, answer: bytes) -> ServerStatus:
    process, seconds, commands, keep_alive = answer.decode().split()
    log = Path(sockets.folder()) / f"{name}{sockets.LOG}"
    return ServerStatus(int(process), float(seconds), int(commands), float(keep_alive), _memory(int(process)), log)


def _memory(process: int) -> int:
    """Returns the bytes that a process holds in memory, or 0 if it has ended."""
    try:
        pages = Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1]
    except OSError:
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
