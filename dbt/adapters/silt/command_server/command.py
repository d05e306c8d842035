"""Turns a fork of the server into the process that `dbt` would have been if the client had started it."""

from __future__ import annotations

import importlib
import os
import resource
import signal
import sys
import time
from contextlib import suppress
from types import ModuleType

from dbt.adapters.silt.command_server.keeper import Command
from dbt.adapters.silt.command_server.request import STANDARD, Request, valid_signals


def become(command: Command) -> None:
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
