"""Answers a connection in a fork of the server: forks again for the command, and sends the client its exit status.

The server itself never reads from a client. Commands continue when the server ends, because a handler has a session
of its own.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
from typing import NamedTuple, NoReturn

from dbt.adapters.silt.command_server import sockets
from dbt.adapters.silt.command_server.preparation import Packages
from dbt.adapters.silt.command_server.remote_command import NUMBER_LENGTH
from dbt.adapters.silt.command_server.request import (
    READY,
    REFUSED,
    RUN,
    STALE,
    START,
    STATUS,
    STOP,
    Request,
    exactly,
    receive,
)

_CLIENT_SECONDS = 10
"""The time within which a client must send its request."""


class ServerState(NamedTuple):
    """The state of a server at the time of a fork.

    Attributes:
        process: the process id.
        folder, name: the folder of the server's files, and the beginning of their names.
        socket_file: the device and the inode of the socket's file.
        key: the server key.
        packages: the imported packages.
        commands: the number of connections that the server has answered, this connection included.
        seconds: the age.
        keep_alive: how many seconds the server runs without a command.
    """

    process: int
    folder: str
    name: str
    socket_file: tuple[int, int] | None
    key: str
    packages: Packages
    commands: int
    seconds: float
    keep_alive: float


class Command(NamedTuple):
    """A request, and the descriptors of its streams and its folder that were sent with it."""

    request: Request
    descriptors: list[int]


class ConnectionHandler:
    """The fork that answers a connection.

    Args:
        connection: the connection to the client.
        server: the server that forked this process.
    """

    def __init__(self, connection: socket.socket, server: ServerState) -> None:
        self._connection = connection
        self._server = server

    def command(self) -> Command:
        """Answers the client, and ends this process. Returns only in a fork, which then becomes the command."""
        try:
            self._connection.settimeout(_CLIENT_SECONDS)
            if sockets.peer_user(self._connection) != os.geteuid():
                self._end()
            command = Command(*receive(self._connection))
            self._check(command.request)
            self._connection.sendall(READY)
            if exactly(self._connection, len(START)) != START:
                self._end()
            self._connection.settimeout(None)
        except OSError:
            self._end()
        return self._forked(command)

    def _check(self, request: Request) -> None:
        """Returns if the server can run the requested command; otherwise sends the reason, and ends this process."""
        if request.verb == STATUS:
            self._end(self._description())
        if request.verb == STOP:
            os.kill(self._server.process, signal.SIGTERM)
            self._end(READY)
        if request.verb != RUN or request.key != self._server.key:
            self._end(REFUSED)
        if not self._server.packages.are_unchanged():
            self._retire_server()
            self._end(STALE)

    def _forked(self, command: Command) -> Command:
        wakes, waker = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        child = os.fork()
        if child == 0:
            signal.set_wakeup_fd(-1)
            os.close(wakes)
            os.close(waker)
            self._connection.close()
            os.setpgid(0, 0)
            return command
        for each in command.descriptors:
            os.close(each)
        with contextlib.suppress(OSError):
            os.setpgid(child, child)  # both processes set it, because the client may send the group a signal at once
        with contextlib.suppress(OSError):
            self._watch(child, wakes)
        self._end()

    def _watch(self, child: int, wakes: int) -> None:
        """Waits for the end of the command, and sends its status; kills the command if its client was killed."""
        self._connection.sendall(child.to_bytes(NUMBER_LENGTH, "big"))
        while True:
            ready, _, _ = select.select([self._connection, wakes], (), ())
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                self._connection.sendall(status.to_bytes(NUMBER_LENGTH, "big"))
                return
            if self._connection in ready and self._is_closed():
                os.killpg(child, signal.SIGKILL)
                return
            with contextlib.suppress(BlockingIOError):
                os.read(wakes, 4096)

    def _is_closed(self) -> bool:
        try:
            return not self._connection.recv(1)
        except ConnectionError:
            return True

    def _retire_server(self) -> None:
        """Ends the server, and deletes its socket, so that no client connects to it."""
        with sockets.locked(self._server.folder, self._server.name):
            sockets.remove(self._server.folder, self._server.name, self._server.socket_file)
        os.kill(self._server.process, signal.SIGTERM)

    def _description(self) -> bytes:
        server = self._server
        return f"{server.process} {server.seconds:.0f} {server.commands} {server.keep_alive:.0f}".encode()

    def _end(self, answer: bytes = b"") -> NoReturn:
        with contextlib.suppress(OSError):
            self._connection.sendall(answer)
        os._exit(0)
