"""How long a command server stays without a command: what the profile of the last one said, through a pipe."""

from __future__ import annotations

import contextlib
import os
import struct
from datetime import timedelta
from typing import Final

DEFAULT: Final = timedelta(minutes=15)
"""How long it stays where the profile has no `keep_alive`."""

_NUMBER: Final = struct.Struct("!d")
_AT_ONCE: Final = 512
"""How many numbers are read at once; each is written whole, as it is shorter than PIPE_BUF."""


class Stay:
    """The end of the pipe that a server reads.

    Args:
        seconds: how long it stays until a command says something else.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._reads, writes = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        _to_server.append(writes)

    def fileno(self) -> int:
        """The descriptor that is ready when a command has said something."""
        return self._reads

    def learn(self) -> None:
        """Reads what commands have said since the last time: the last one decides."""
        with contextlib.suppress(BlockingIOError):
            *_, (self.seconds,) = _NUMBER.iter_unpack(os.read(self._reads, _NUMBER.size * _AT_ONCE))

    def close(self) -> None:
        """Gives the reading end back, in a fork."""
        os.close(self._reads)


_to_server: list[int] = []
"""The end that commands write to; none in a process that is no fork of a server."""


def tell(keep_alive: timedelta | None) -> None:
    """Has the server that this process is a fork of, if it is one, stay for so long after its last command.

    Args:
        keep_alive: what the profile says; None where it says nothing.
    """
    for each in _to_server:
        with contextlib.suppress(OSError):  # the server is gone, or others say it a thousand times
            os.write(each, _NUMBER.pack((keep_alive or DEFAULT).total_seconds()))
