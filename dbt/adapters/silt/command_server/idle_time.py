"""Keeps the time that a command server runs without a command; commands send it through a pipe, from their profile."""

from __future__ import annotations

import contextlib
import os
import struct
from datetime import timedelta
from typing import Final

DEFAULT: Final = timedelta(minutes=15)
"""The time for profiles without `keep_alive`."""

_NUMBER: Final = struct.Struct("!d")
_AT_ONCE: Final = 512
"""The most numbers of a read; a number is written atomically, because it is shorter than PIPE_BUF."""


class IdleTime:
    """The end of the pipe that a server reads.

    Args:
        seconds: the idle time that applies until a command sends another.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._reads, writes = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        _to_server.append(writes)

    def fileno(self) -> int:
        """Returns the descriptor that becomes readable when a command has sent a time."""
        return self._reads

    def receive(self) -> None:
        """Reads the times that commands have sent; the newest counts."""
        with contextlib.suppress(BlockingIOError):
            *_, (self.seconds,) = _NUMBER.iter_unpack(os.read(self._reads, _NUMBER.size * _AT_ONCE))

    def close(self) -> None:
        """Closes the reading end in a fork."""
        os.close(self._reads)


_to_server: list[int] = []
"""The end of the pipe that commands write to; empty in a process that is not a fork of a server."""


def send(keep_alive: timedelta | None) -> None:
    """Sends the time to the server that this process is a fork of, if it is a fork.

    Args:
        keep_alive: the value in the profile, or None.
    """
    for each in _to_server:
        with contextlib.suppress(OSError):  # the server has ended, or the pipe is full
            os.write(each, _NUMBER.pack((keep_alive or DEFAULT).total_seconds()))
