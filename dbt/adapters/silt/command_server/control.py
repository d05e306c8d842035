"""Lists the command servers of this user, and ends them."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dbt.adapters.silt.command_server import place
from dbt.adapters.silt.command_server.request import STATUS, STOP, Request, send

_ANSWER_SECONDS = 10


@dataclass(frozen=True)
class ServerStatus:
    """A command server that runs.

    Attributes:
        process: its process id.
        seconds: its age.
        commands: how many commands and questions it has answered.
        keep_alive: how many seconds it stays without a command.
        memory: the bytes that it keeps in memory; its commands share most of them.
        log: the file of what went wrong in it.
    """

    process: int
    seconds: float
    commands: int
    keep_alive: float
    memory: int
    log: Path


def status() -> tuple[ServerStatus, ...]:
    """The command servers of this user, whatever environment they are of.

    Raises:
        UnsafePlaceError: another user could reach their sockets.
        OSError: the folder of their sockets cannot be used.
    """
    return tuple(_status(name, answer) for name, answer in _answers(STATUS) if answer)


def stop() -> int:
    """Ends the command servers of this user, and returns how many there were. Commands that run go on to their end.

    Raises:
        UnsafePlaceError, OSError: see `status`.
    """
    return sum(bool(answer) for _, answer in _answers(STOP))


def _answers(verb: bytes) -> Iterator[tuple[str, bytes]]:
    folder = place.folder()
    for each in sorted(os.listdir(folder)):
        name, ending = os.path.splitext(each)
        connection = place.connect(folder, name) if ending == place.SOCKET else None
        if connection is not None:
            with connection:
                yield name, _answer(connection, verb)


def _answer(connection: socket.socket, verb: bytes) -> bytes:
    """What a server answers; nothing where it ends just now, or takes too long."""
    connection.settimeout(_ANSWER_SECONDS)
    try:
        send(connection, Request(verb, ""))
        return connection.recv(1024)
    except OSError:
        return b""


def _status(name: str, answer: bytes) -> ServerStatus:
    process, seconds, commands, keep_alive = answer.decode().split()
    log = Path(place.folder()) / f"{name}{place.LOG}"
    return ServerStatus(int(process), float(seconds), int(commands), float(keep_alive), _memory(int(process)), log)


def _memory(process: int) -> int:
    """The bytes that a process has in memory; 0 where it is gone."""
    try:
        pages = Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1]
    except OSError:
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
