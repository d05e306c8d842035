"""Runs the real client and server with a few lines of Python as the command instead of dbt.

little.py client CODE ARGUMENT...
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys

from dbt.adapters.silt.command_server.server import serve
from dbt.adapters.silt.command_server.submission import run

KEEP_ALIVE = "LITTLE_KEEP_ALIVE"
PROGRAM = "/somewhere/bin/dbt"
UNANSWERED = 99


def main() -> None:
    if sys.argv[1] == "client":
        print(run(PROGRAM, sys.argv[2:], _start))
        sys.exit(UNANSWERED)
    del sys.argv[1]
    serve(iter(["nothing"]), float(os.environ.get(KEEP_ALIVE, "60")))
    exec(sys.argv[1], {})


def _start(listener: socket.socket, folder: str, name: str) -> None:
    with open(os.path.join(folder, "errors"), "a") as errors:
        subprocess.Popen(
            [sys.executable, __file__, "server", str(listener.fileno()), folder, name, _path()],
            stdin=subprocess.DEVNULL,
            stdout=errors,
            stderr=errors,
            pass_fds=(listener.fileno(),),
            start_new_session=True,
        )


def _path() -> str:
    return "[" + ", ".join(f'"{each}"' for each in sys.path) + "]"


if __name__ == "__main__":
    main()
