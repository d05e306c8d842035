"""The shell of `silt sql` on a pseudo-terminal, with typed input, and the behaviour that it has wherever Spark runs."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

SECONDS: Final = 60
START_SECONDS: Final = 240
"""Seconds for Spark to start on a busy machine."""
PROMPT: Final = "silt> "
RUNNING: Final = r"sql: \w+, [\d,]+ of [\d,]+ tasks"
"""The status line of a statement whose tasks Spark runs."""
_CONTROL = re.compile(r"\x1b\[[?0-9;]*[a-zA-Z]")
NEVER_ENDS = "range(0, 100000000000000, 1, 1000)"


@dataclass
class Typing:
    """A shell on a pseudo-terminal."""

    terminal: int
    process: subprocess.Popen[bytes]

    def type(self, text: str, until: str = re.escape(PROMPT), seconds: float = SECONDS) -> str:
        """Types a text, and returns the output up to a match of the pattern."""
        os.write(self.terminal, text.encode())
        return self.shown(until, seconds)

    def shown(self, until: str = re.escape(PROMPT), seconds: float = SECONDS) -> str:
        found, end = "", time.monotonic() + seconds
        while not re.search(until, found):
            assert time.monotonic() < end, f"no {until!r} in {found!r}"
            if select.select([self.terminal], [], [], 0.1)[0]:
                found += _CONTROL.sub("", os.read(self.terminal, 65536).decode(errors="replace")).replace("\r", "")
        return found

    def interrupt(self, until: str = re.escape(PROMPT), seconds: float = SECONDS) -> str:
        """Presses Ctrl-C while the shell waits for a key.

        Python's `input` loses an interrupt that comes between its prompt and its wait for the first key.
        """
        end = time.monotonic() + seconds
        while not self._sleeps():
            assert time.monotonic() < end, "the shell does not wait for a key"
        return self.type("\x03", until, seconds)

    def _sleeps(self) -> bool:
        status = Path(f"/proc/{self.process.pid}/stat").read_text()
        return status.rpartition(")")[2].split()[0] == "S"

    def answer(self, statement: str, seconds: float = SECONDS) -> str:
        """Returns the output of a statement, without its echo, up to the shell's next prompt."""
        shown = self.type(f"{statement};\n", rf";\n[\s\S]*\n{PROMPT}$", seconds)
        return shown.partition(";\n")[2]

    def cancelled(self, statement: str) -> str:
        """Returns the output after Ctrl-C, which is pressed when Spark has started the statement's tasks."""
        self.type(f"{statement};\n", RUNNING, START_SECONDS)
        return self.type("\x03", rf"\^C[\s\S]*\n{PROMPT}$")


@contextlib.contextmanager
def typing(
    folder: Path, state: Path, *arguments: str, environment: Mapping[str, str] | None = None
) -> Iterator[Typing]:
    """A running shell, which is ended with the block together with its Spark.

    Args:
        folder: the working directory.
        state: the folder of the history.
        arguments: of `silt sql`.
    """
    own, theirs = pty.openpty()
    variables = {
        **os.environ,
        "XDG_STATE_HOME": str(state),
        "TERM": "xterm",
        "INPUTRC": "/dev/null",
        **(environment or {}),
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "dbt.adapters.silt.cli", "sql", *arguments],
        cwd=folder,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=variables,
        preexec_fn=lambda: _take_terminal(theirs),
    )
    os.close(theirs)
    try:
        found = Typing(own, process)
        found.shown()
        yield found
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        process.wait()
        os.close(own)


def exercise(shell: Typing) -> None:
    """Runs typical statements in a schema without a table `numbers`: all of them work wherever Spark runs."""
    made = shell.answer("create table numbers as select id, id % 3 as third from range(999)", START_SECONDS)
    assert "numbers@v0: 999 inserted" in made
    assert re.search(r"third +n\n.*\n *0 +333\n *1 +333\n *2 +333\n", shell.answer(_BY_THIRD, START_SECONDS))
    assert "numbers@v1: 9 updated" in shell.answer("update numbers set third = 7 where id < 9", START_SECONDS)
    assert "\n9\n(1 row)" in shell.answer("select count(*) as n from numbers where third = 7")
    assert "cancelled\n" in shell.cancelled(f"select sum(id % 7) from {NEVER_ENDS}")
    assert "cancelled\n" in shell.cancelled(f"create table endless as select id, rand() as r from {NEVER_ENDS}")
    assert "[SILT_RELATION_NOT_FOUND]" in shell.answer("select count(*) from endless")
    assert "numbers@v2: 1 inserted" in shell.answer("insert into numbers values (-1, -1)", START_SECONDS)
    assert "-1" in shell.answer("select min(third) + 0 as least from numbers", START_SECONDS)
    assert "OK" in shell.answer("drop table numbers", START_SECONDS)


_BY_THIRD = "select third, count(*) as n from numbers group by third order by third"


def _take_terminal(terminal: int) -> None:
    """Makes it the terminal of a session, so that Ctrl-C arrives as a signal."""
    os.setsid()
    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGINT, signal.default_int_handler)
