"""Ends a dbt command at SIGTERM as Ctrl-C does, with the exit code that schedulers expect.

Schedulers stop a command by SIGTERM. By default it ends a Python process at once: its statements continue in Spark for
a moment, and no message explains how to continue.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType

import click

EXIT_CODE = 128 + signal.SIGTERM
"""The exit code that a shell reports of a process ended by SIGTERM."""

_received = threading.Event()


def install() -> None:
    """Handles SIGTERM as Ctrl-C in this process if it is dbt's own, and not a program that uses a `dbtRunner`.

    A second SIGTERM ends the process at once.
    """
    if not _is_dbts_own() or threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _interrupt)


def was_received() -> bool:
    """Returns whether this process is ending because of SIGTERM."""
    return _received.is_set()


def set_exit_code(error: BaseException | None) -> None:
    """Gives the error by which dbt ends the exit code of SIGTERM, if SIGTERM caused it: dbt has a single code."""
    if was_received() and isinstance(error, click.ClickException):
        error.exit_code = EXIT_CODE  # type: ignore[misc]  # as dbt's own errors do


def _is_dbts_own() -> bool:
    context = click.get_current_context(silent=True)
    command = {} if context is None else context.obj or {}
    return "flags" in command and "dbt_runner_command_args" not in command


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    _received.set()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    raise KeyboardInterrupt
