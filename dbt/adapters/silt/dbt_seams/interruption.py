"""Ends a dbt command at SIGTERM as Ctrl-C does, with schedulers' exit code, and hides dbt's traceback after both."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Final

import click
from dbt_common.events.event_manager_client import get_event_manager

if TYPE_CHECKING:
    from dbt_common.events.base_types import EventMsg

_SCREEN: Final = "stdout_log"
"""dbt's name of its logger for the standard output."""

_STACK_TRACE: Final = "MainStackTrace"
_SAY_NOTHING: Final = ("MainEncounteredError", _STACK_TRACE)
"""dbt's events for the error that ends a command: after Ctrl-C they show an empty message and a line of dbt's code."""


def hide_traceback() -> None:
    """Hides these events after Ctrl-C or SIGTERM; other errors are shown, and dbt's log file has them all."""
    for logger in get_event_manager().loggers:
        if logger.name == _SCREEN:
            logger.filter = _without_interrupts(logger.filter)


def hide_stack_trace() -> None:
    """Hides dbt's traceback of the error that ends this command, and not the error; dbt's log file has both."""
    for logger in get_event_manager().loggers:
        if logger.name == _SCREEN:
            logger.filter = _without_stack_trace(logger.filter)


def _without_stack_trace(shown: Callable[[EventMsg], bool]) -> Callable[[EventMsg], bool]:
    return lambda message: message.info.name != _STACK_TRACE and shown(message)


def _without_interrupts(shown: Callable[[EventMsg], bool]) -> Callable[[EventMsg], bool]:
    def is_shown(message: EventMsg) -> bool:
        is_of_interrupt = message.info.name in _SAY_NOTHING and isinstance(sys.exc_info()[1], KeyboardInterrupt)
        return not is_of_interrupt and shown(message)

    return is_shown


EXIT_CODE = 128 + signal.SIGTERM
"""The exit code that a shell reports of a process ended by SIGTERM."""

_received = threading.Event()
_is_ending = threading.Event()


def handle_signals() -> None:
    """Handles SIGTERM as Ctrl-C in this process if it is dbt's own, and not a program that uses a `dbtRunner`.

    A second SIGTERM ends the process at once. Both signals are noted: dbt waits for its threads before it cancels their
    statements, so a thread that waits must be able to see that the command is ending.
    """
    if not _is_dbts_own() or threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _interrupt)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _note_interrupt)


def is_ending() -> bool:
    """Returns whether Ctrl-C or SIGTERM is ending this process."""
    return _is_ending.is_set()


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
    _note_interrupt(_signal, _frame)


def _note_interrupt(_signal: int, _frame: FrameType | None) -> None:
    _is_ending.set()
    raise KeyboardInterrupt
