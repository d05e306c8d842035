"""Reads the dbt command of this process as it was typed, which only its main thread can see, and classifies its end."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from dbt.adapters.silt.records.command_result import Ending

RETRY = "retry"


@dataclass(frozen=True)
class DbtCommand:
    """A dbt command as it was typed, and its folder.

    Attributes:
        name: dbt's name of it ("run"); "retry" for a retry, not the name of the repeated command.
        line: the command line that repeats it, without its `--vars`.
        directory: the folder in which it was typed.
        state: the folder whose results a retry repeats, relative to the project, if it is named.
        announces_end: whether dbt fires `CommandCompleted` when the command is over and its results are written: not if
            a program uses the adapter by itself.
        by_a_person: whether dbt was started on a terminal, not by a program, and neither its input nor its output is
            redirected.
    """

    name: str
    line: str
    directory: str
    state: Path | None = None
    announces_end: bool = False
    by_a_person: bool = False

    @classmethod
    def current(cls, which: str) -> DbtCommand:
        """Returns the command of dbt's command line, or of a program's `dbtRunner`.

        Args:
            which: the command that dbt carries out; for a retry, the command that it repeats.
        """
        context = click.get_current_context(silent=True)
        seen = {} if context is None else context.obj or {}
        name = RETRY if context is not None and context.info_name == RETRY else which
        given = seen.get("dbt_runner_command_args")
        # A program may also pass numbers to its runner.
        arguments = sys.argv[1:] if given is None else [str(each) for each in given]
        state = getattr(seen.get("flags"), "STATE", None) if name == RETRY else None
        line = command_line(name, dbt_program(), arguments)
        by_a_person = context is not None and given is None and _on_terminal()
        return cls(name, line, os.getcwd(), state, announces_end="flags" in seen, by_a_person=by_a_person)


_WHERE = ("--project-dir", "--profiles-dir", "--profile", "--target", "-t", "--target-path")
"""The options, each with a value, that select the project and target of a command."""


def retry_line(line: str) -> str:
    """Returns the `dbt retry` that repeats the remaining nodes of a command, for the folder in which it was typed."""
    program, *arguments = shlex.split(line)
    kept: list[str] = []
    for position, each in enumerate(arguments):
        if each.partition("=")[0] in _WHERE:
            kept.append(each)
        elif position and arguments[position - 1] in _WHERE:
            kept.append(each)
    return shlex.join([program, RETRY, *kept])


def command_line(command: str, program: str, arguments: Sequence[str]) -> str:
    """Returns the line that repeats a dbt command, without its `--vars`; the bare command if a program runs dbt.

    Args:
        command: dbt's name of it ("run").
        program: the word that starts dbt in a shell.
        arguments: the arguments of the process, with dbt's command among them unless dbt runs inside another program.
    """
    if command not in arguments:
        return shlex.join([program, command])
    kept, skip = [program], False
    for each in arguments:
        if not skip and each != "--vars" and not each.startswith("--vars="):
            kept.append(each)
        skip = not skip and each == "--vars"
    return shlex.join(kept)


def dbt_program() -> str:
    """Returns the word that starts this dbt in a shell: its name if that is found on the path, else its file."""
    started = Path(sys.argv[0])
    own = started if started.name == "dbt" else Path(sys.executable).with_name("dbt")
    found = shutil.which("dbt")
    if not own.exists() or (found is not None and Path(found).resolve() == own.resolve()):
        return "dbt"
    return str(own.absolute())


def _on_terminal() -> bool:
    """Returns whether input and output of this process are a terminal."""
    streams = (sys.stdin, sys.stdout)
    return all(each is not None and not each.closed and each.isatty() for each in streams)


_FAILED: Final = 1
"""dbt's exit code of a command that completed with failures; a command that an error aborted has another code."""


@dataclass(frozen=True)
class CommandEnd:
    """The end of a dbt command.

    Attributes:
        finished: whether it completed, with or without failed nodes.
        ending: the recorded ending.
        problem: the error that aborted it, if any.
        publication: the publication of its changes, as in `RunEntry`; None if it was not attempted.
        upkeep: the upkeep at its end, as a line, if there was any.
    """

    finished: bool
    ending: Ending
    problem: str | None = None
    publication: str | None = None
    upkeep: str | None = None

    @classmethod
    def of(cls, error: BaseException | None, around: BaseException | None) -> CommandEnd:
        """Classifies the end of a command.

        Args:
            error: the error that is being raised.
            around: the error that the calling program is handling while it runs the command.
        """
        if error is around:
            return cls(True, Ending.SUCCESS)
        if isinstance(error, click.ClickException) and error.exit_code == _FAILED:
            return cls(True, Ending.FAILED)
        cause = getattr(error, "exception", error)  # dbt wraps the error that ends a command
        if isinstance(cause, (KeyboardInterrupt, SystemExit)):
            return cls(False, Ending.INTERRUPTED)
        return cls(False, Ending.FAILED, str(cause) or type(cause).__name__)

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C or SIGTERM ended it."""
        return self.ending is Ending.INTERRUPTED
