"""Passes the signals of a client on to its command, and ends the client as the command ends."""

from __future__ import annotations

import os
import resource
import signal
import socket
import sys
from contextlib import suppress
from types import FrameType
from typing import Final

from dbt.adapters.silt.command_server.request import START, BrokenOffError, exactly

NUMBER_LENGTH: Final = 4
"""Bytes of a process id and of an exit status."""

_TO_GROUP: Final = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGWINCH)
"""The signals that a terminal sends to every process of a command."""
_TO_COMMAND: Final = (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM)
_PASSED_ON: Final = (*_TO_GROUP, *_TO_COMMAND, signal.SIGTSTP, signal.SIGCONT)


class RemoteCommand:
    """The command that a server runs for this process.

    Args:
        connection: the connection to the server, which waits for START, then sends the command's process id and, when
            the command ends, its status.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._process = 0

    def end(self) -> int:
        """Starts the command, waits for its end, and returns its exit code.

        A signal that ended the command ends this process too.
        """
        try:
            self._start()
            status = int.from_bytes(exactly(self._connection, NUMBER_LENGTH), "big")
        except (BrokenOffError, ConnectionError):
            return self._lost()
        if os.WIFSIGNALED(status):
            _end_by(os.WTERMSIG(status))
            return 128 + os.WTERMSIG(status)
        return os.WEXITSTATUS(status)

    def _start(self) -> None:
        """Starts the command. A signal that arrives before the command's process id is known waits for it."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON)
        try:
            self._install()
            self._connection.sendall(START)
            self._process = int.from_bytes(exactly(self._connection, NUMBER_LENGTH), "big")
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _install(self) -> None:
        for each in _PASSED_ON:
            # The command ignores the signals that this process has ignored since its start, such as SIGHUP under nohup.
            if signal.getsignal(each) is not signal.SIG_IGN:
                signal.signal(each, self._pass_on)

    def _pass_on(self, number: int, _frame: FrameType | None) -> None:
        if not self._process:
            # The connection was closed before the server started the command.
            _end_by(number)
        elif number == signal.SIGTSTP:
            self._stop()
        elif number == signal.SIGCONT:
            self._send_to_group(signal.SIGCONT)
        elif number in _TO_COMMAND:
            with suppress(ProcessLookupError):
                os.kill(self._process, number)
        else:
            self._send_to_group(number)

    def _stop(self) -> None:
        """Stops the command, and then this process, which the shell waits for."""
        self._send_to_group(signal.SIGSTOP)
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, self._pass_on)

    def _send_to_group(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process, number)

    def _lost(self) -> int:
        """Kills the command, because the process that watched over it has ended and its exit code will not be known."""
        if self._process:
            self._send_to_group(signal.SIGKILL)
        print("silt: the process that ran dbt for this command was killed", file=sys.stderr)
        return 128 + signal.SIGKILL


def _end_by(number: int) -> None:
    """Ends this process by a signal, which its parent then sees; returns if the signal ends no process."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
    os.kill(os.getpid(), number)
