"""Command servers and clients, each in a separate folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.silt.command_server import control

LITTLE = Path(__file__).with_name("little.py")
LONGEST_SECONDS = 300
"""No test waits so long, except on a machine that is far too busy."""


@dataclass(frozen=True)
class House:
    """A runtime folder for command servers, like that of a user.

    Attributes:
        folder: the runtime folder; a test may also keep its files there.
        variables: environment variables of the clients, added to those of this process.
    """

    folder: Path
    variables: dict[str, str] = field(default_factory=dict)

    def client(self, code: str, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
        """Starts a client whose command is Python code."""
        environment = {**os.environ, "XDG_RUNTIME_DIR": str(self.folder), **self.variables, **options.pop("env", {})}
        return subprocess.Popen(
            [*options.pop("before", ()), sys.executable, str(LITTLE), "client", code, *arguments],
            **{"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "env": environment, **options},
        )

    def run(self, code: str, *arguments: str, **options: Any) -> tuple[int, str]:
        """Runs a command and returns its exit code and output."""
        client = self.client(code, *arguments, **options)
        output, _ = client.communicate(timeout=LONGEST_SECONDS)
        return client.returncode, output.decode(errors="surrogateescape").strip()

    def running(self, code: str, **options: Any) -> tuple[subprocess.Popen[bytes], int]:
        """Returns a client whose command has started, and the process id of the command."""
        note = self.folder / f"process-{time.monotonic_ns()}"
        begin = f"import os, pathlib; n = pathlib.Path({str(note)!r}); n.write_text(str(os.getpid()) + '.')\n"
        client = self.client(begin + code, **options)
        wait_until(lambda: note.exists() and note.read_text().endswith("."))
        return client, int(note.read_text()[:-1])

    def waiting(self, code: str = "", **options: Any) -> tuple[subprocess.Popen[bytes], int, Path]:
        """Returns a client whose command waits for a file, the command's process id, and the file."""
        permit = self.folder / f"permit-{time.monotonic_ns()}"
        wait = f"import pathlib, time\nwhile not pathlib.Path({str(permit)!r}).exists(): time.sleep(0.01)\n"
        return *self.running(wait + code, **options), permit

    def servers(self) -> tuple[control.ServerStatus, ...]:
        with _runtime_folder(self.folder):
            return control.status()

    def stop(self) -> int:
        with _runtime_folder(self.folder):
            return control.stop()


class _runtime_folder:
    def __init__(self, folder: Path) -> None:
        self._patch = pytest.MonkeyPatch()
        self._folder = folder

    def __enter__(self) -> None:
        self._patch.setenv("XDG_RUNTIME_DIR", str(self._folder))

    def __exit__(self, *_: object) -> None:
        self._patch.undo()


def wait_until(is_so: Callable[[], object], seconds: float = LONGEST_SECONDS) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)


def ended(client: subprocess.Popen[bytes]) -> int:
    """Waits until a client ends and returns its exit code."""
    with client:
        return client.wait(timeout=LONGEST_SECONDS)


def is_alive(process: int) -> bool:
    """Returns whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A runtime folder whose server is shared by all tests of a module."""
    house = House(tmp_path_factory.mktemp("run"))
    yield house
    house.stop()


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    """A runtime folder for one test."""
    house = House(tmp_path)
    yield house
    for each in house.servers():
        os.kill(each.process, signal.SIGKILL)
