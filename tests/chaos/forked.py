"""Starts dbt processes as forks of a process that has imported dbt, because most of them live shorter than the import.

python -m tests.chaos.forked reads a request from each line of its standard input, and answers with a line for the
fork's process id and a line for its exit code, as in `subprocess`. It has one thread, and does not run dbt itself.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, NoReturn

from tests.chaos import dbt_killed

_ROOT = Path(__file__).parents[2]
_PARENTS = threading.local()


@dataclass(frozen=True)
class Request:
    """A process of `dbt_killed`.

    Attributes:
        arguments: its command line.
        folder: its working directory.
        environment: all of its variables.
        output: the file to which its output is appended.
    """

    arguments: tuple[str, ...]
    folder: str
    environment: Mapping[str, str]
    output: str


def run(request: Request, longest_seconds: float, started: Callable[[int], None] = lambda group: None) -> int:
    """Runs the process, kills the rest of its process group, and returns its exit code, negative for a signal.

    Args:
        started: called with the process group.

    Raises:
        TimeoutError: if the process did not end in time; it is killed.
    """
    parent: subprocess.Popen[str] | None = getattr(_PARENTS, "process", None)
    if parent is None or parent.poll() is not None:
        parent = _PARENTS.process = subprocess.Popen(
            [sys.executable, "-m", __spec__.name],
            cwd=_ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
    assert parent.stdin is not None and parent.stdout is not None
    print(json.dumps(asdict(request)), file=parent.stdin, flush=True)
    group = int(parent.stdout.readline())
    started(group)
    return _wait(group, parent.stdout, longest_seconds)


def _wait(group: int, answers: IO[str], longest_seconds: float) -> int:
    late = threading.Event()
    timer = threading.Timer(longest_seconds, lambda: (late.set(), _kill(group)))  # type: ignore[func-returns-value]
    timer.start()
    try:
        code = int(answers.readline())
    finally:
        timer.cancel()
        _kill(group)
    if late.is_set():
        raise TimeoutError(f"a dbt process did not end in {longest_seconds} seconds")
    return code


def _kill(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def main() -> None:
    """Forks for each request; the fork runs `dbt_killed`, which ends the process."""
    importlib.import_module("dbt.adapters.silt.impl")  # dbt imports it when it reads a profile
    for line in sys.stdin:
        request = Request(**json.loads(line))
        child = os.fork()
        if child == 0:
            _become(request)
        print(child, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def _become(request: Request) -> NoReturn:
    os.setsid()
    os.chdir(request.folder)
    os.environ.clear()
    os.environ.update(request.environment)
    output = os.open(request.output, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    for descriptor, file in ((0, os.open(os.devnull, os.O_RDONLY)), (1, output), (2, output)):
        os.dup2(file, descriptor)
    sys.argv = ["dbt_killed", *request.arguments]
    dbt_killed.main()


if __name__ == "__main__":
    main()
