"""Serves forks of a process that has imported dbt's modules. The server itself runs no command of dbt.

A fork becomes the process that `dbt` would have been if the client had started it.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import resource
import select
import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from types import FrameType, ModuleType
from typing import Final

from dbt.adapters.silt.command_server import preparation, request, sockets
from dbt.adapters.silt.command_server.client import STATEMENTS, STATEMENTS_MODULE
from dbt.adapters.silt.command_server.connection_handler import Command, ConnectionHandler, ServerState
from dbt.adapters.silt.command_server.idle_time import DEFAULT, IdleTime
from dbt.adapters.silt.command_server.request import STANDARD, Request, valid_signals

_LONGEST_WAIT_SECONDS: Final = 30
"""Waits are short: `keep_alive` includes the time that the machine sleeps, but a sleeping machine ends no wait."""

_PAUSE_PER_STEP: Final = 3


class CommandServer:
    """Forks a handler for each connection, until the idle time has passed or the server is asked to end.

    Args:
        listener: the socket that clients connect to.
        folder, name: the folder of the socket's file, and its name.
        steps: prepare this process; the first step precedes all commands.
        keep_alive_seconds: the idle time after which the server ends, until a command sends another.
    """

    def __init__(
        self,
        listener: socket.socket,
        folder: str,
        name: str,
        steps: Iterator[str],
        keep_alive_seconds: float = DEFAULT.total_seconds(),
    ) -> None:
        self._listener = listener
        self._steps = steps
        self._key = request.server_key()
        self._folder = folder
        self._name = name
        self._idle = IdleTime(keep_alive_seconds)
        self._socket_file = sockets.file_of(folder, name)
        self._began = time.time_ns()
        self._packages = preparation.on_path()
        self._handlers: set[int] = set()
        self._commands = 0
        self._last_used = self._started = _now()
        self._is_to_end = False
        self._wakes, self._waker = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        listener.setblocking(False)

    def serve(self) -> ConnectionHandler | None:
        """Serves connections; returns None when the server ends, and the handler of a connection in its fork."""
        self._install_signals()
        next(self._steps)
        self._note_imports()
        while True:
            began = _now()
            is_warm = next(self._steps, None) is None
            if self._wait(self._seconds_left() if is_warm else pause(_now() - began, bool(self._handlers))):
                handler = self._fork()
                if handler is not None:
                    return handler
            elif self._is_over():
                if self._socket_file is None:
                    return None
                self._withdraw()  # and serves once more: a client may have connected just before

    def _install_signals(self) -> None:
        signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, self._end_soon)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for each in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
            signal.signal(each, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())

    def _end_soon(self, _number: int, _frame: FrameType | None) -> None:
        self._is_to_end = True

    def _note_imports(self) -> None:
        self._packages = preparation.with_imported(self._packages, self._began)

    def _wait(self, seconds: float) -> bool:
        """Waits for a connection or a signal, or until the timeout; returns whether a client has connected."""
        ready, _, _ = select.select([self._listener, self._wakes, self._idle], (), (), seconds)
        self._idle.receive()
        with contextlib.suppress(BlockingIOError):
            os.read(self._wakes, 4096)
        for each in tuple(self._handlers):
            if os.waitpid(each, os.WNOHANG)[0]:
                self._handlers.discard(each)
                self._last_used = _now()
        return self._listener in ready

    def _seconds_left(self) -> float:
        if self._is_to_end or self._socket_file is None:
            return 0
        return min(_LONGEST_WAIT_SECONDS, max(0.0, self._last_used + self._idle.seconds - _now()))

    def _is_over(self) -> bool:
        is_unused = not self._handlers and _now() - self._last_used >= self._idle.seconds
        return self._is_to_end or is_unused or sockets.file_of(self._folder, self._name) != self._socket_file

    def _withdraw(self) -> None:
        """Deletes the socket's file, so that no further client connects."""
        with sockets.locked(self._folder, self._name):
            sockets.remove(self._folder, self._name, self._socket_file)
        self._socket_file = None
        self._is_to_end = True

    def _fork(self) -> ConnectionHandler | None:
        """Forks for the next connection; returns its handler in the fork, and None in the server."""
        try:
            connection, _ = self._listener.accept()
        except (BlockingIOError, ConnectionError):
            return None
        self._commands += 1
        self._last_used = _now()
        self._note_imports()
        state = self._state()
        child = os.fork()
        if child == 0:
            self._leave_to_parent()
            return ConnectionHandler(connection, state)
        connection.close()
        self._handlers.add(child)
        return None

    def _state(self) -> ServerState:
        return ServerState(
            os.getpid(),
            self._folder,
            self._name,
            self._socket_file,
            self._key,
            self._packages,
            self._commands,
            _now() - self._started,
            self._idle.seconds,
        )

    def _leave_to_parent(self) -> None:
        """Closes and resets in a fork the descriptors and signals that only the server needs."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        self._listener.close()
        os.close(self._wakes)
        os.close(self._waker)
        self._idle.close()
        os.setsid()


def pause(step_seconds: float, is_used: bool) -> float:
    """Returns the seconds to wait after a step of the preparation: running commands get most of the processor."""
    return _PAUSE_PER_STEP * step_seconds if is_used else 0


def _now() -> float:
    """Returns the seconds of a clock that is never set and runs while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def main() -> None:
    """Serves; a fork continues as its command: a command of dbt, or the statements of `silt sql`."""
    serve(preparation.steps())
    if sys.argv == [STATEMENTS]:
        sys.exit(importlib.import_module(STATEMENTS_MODULE).main())
    sys.exit(importlib.import_module("dbt.cli.main").cli())


def serve(steps: Iterator[str], keep_alive_seconds: float = DEFAULT.total_seconds()) -> None:
    """Serves with the arguments of `starting`, and ends the process; returns only in a fork, as its command."""
    descriptor, folder, name, path = sys.argv[1:]
    sys.path[:] = json.loads(path)
    listener = socket.socket(fileno=int(descriptor))
    listener.set_inheritable(False)
    if request.short_name(request.server_key()) != name:
        sys.exit("this process has another server key than the client that started it")
    handler = CommandServer(listener, folder, name, steps, keep_alive_seconds).serve()
    if handler is None:
        sys.exit()
    _become(handler.command())


def _become(command: Command) -> None:
    """Turns a fork into the client's `dbt`: takes over everything that the client was started with."""
    request = command.request
    _take_streams(request.streams, command.descriptors)
    os.umask(request.mask)
    _take_environment(request)
    _take_limits(request)
    _take_program(request)
    _renew()
    _take_signals(request)


def _take_streams(streams: tuple[int, ...], descriptors: list[int]) -> None:
    """Replaces the server's streams by the client's, and changes to the client's folder."""
    *given, folder = descriptors
    os.fchdir(folder)
    for number, descriptor in zip(streams, given, strict=True):
        os.dup2(descriptor, number)
    for each in descriptors:
        os.close(each)
    is_unbuffered = bool(os.environ.get("PYTHONUNBUFFERED"))
    for number, name in zip(STANDARD, ("stdin", "stdout", "stderr"), strict=True):
        if number not in streams:
            os.close(number)
            setattr(sys, name, None)
        elif number:
            stream = getattr(sys, name)
            stream.reconfigure(line_buffering=number == 2 or is_unbuffered or os.isatty(number))


def _take_environment(request: Request) -> None:
    os.environ.clear()
    for each in request.environment:
        name, _, value = each.partition(b"=")
        os.environb[name] = value
    time.tzset()


def _take_limits(request: Request) -> None:
    """Sets the soft limits; the hard limits of server and client are the same (see `server_key`)."""
    for number, limit in request.limits:
        with suppress(ValueError, OSError):
            resource.setrlimit(number, (limit, resource.getrlimit(number)[1]))
    with suppress(OSError):
        os.sched_setaffinity(0, request.processors)


def _take_program(request: Request) -> None:
    """Names the program as Python does for dbt's own command; dbt's messages contain this name."""
    sys.argv = [os.fsdecode(each) for each in request.arguments]
    sys.orig_argv = [sys.executable, *sys.argv]
    sys.path[:] = request.path
    main = ModuleType("__main__")
    main.__file__ = sys.argv[0]
    main.__dict__.update(__spec__=None, __package__=None, __cached__=None)
    sys.modules["__main__"] = main


def _renew() -> None:
    """Renews caches of the import system, and state that would be equal in every fork."""
    importlib.invalidate_caches()
    for module, function in (("numpy.random", "seed"), ("dbt_common.events.functions", "reset_metadata_vars")):
        if module in sys.modules:
            getattr(sys.modules[module], function)()


def _take_signals(request: Request) -> None:
    for each in valid_signals():
        if each in request.ignored:
            signal.signal(each, signal.SIG_IGN)
        else:
            signal.signal(each, signal.default_int_handler if each == signal.SIGINT else signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, request.blocked)
