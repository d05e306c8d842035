"""Starts a command server, which outlives its first client."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from typing import Final

from dbt.adapters.silt.command_server import sockets

_CODE: Final = "from dbt.adapters.silt.command_server.server import main; main()"
_LOG_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW


def start(listener: socket.socket, folder: str, name: str) -> None:
    """Starts the server that accepts from this socket, in a session of its own.

    The server has the interpreter, the options, the variables and the limits of this process, and no terminal.

    Args:
        listener: a listening socket: clients may connect while the server starts.
        folder, name: the folder of the server's files, and the beginning of their names.
    """
    options = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # as multiprocessing does
    given = [str(listener.fileno()), folder, name, json.dumps(sys.path)]
    log = os.open(os.path.join(folder, name + sockets.LOG), _LOG_FLAGS, 0o600)
    try:
        subprocess.Popen(
            [sys.executable, *options, "-c", _CODE, *given],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=folder,
            pass_fds=(listener.fileno(),),
            start_new_session=True,
        )
    finally:
        os.close(log)
