"""Runs the commands of a page: `dbt`, `silt` and Python scripts in this process on its Spark, others in a shell."""

from __future__ import annotations

import contextlib
import io
import os
import re
import runpy
import shlex
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pytest
from dbt.cli.main import dbtRunner
from dbt.deprecations import reset_deprecations
from dbt_common.exceptions import DbtBaseException

from dbt.adapters.silt.cli.main import main as silt

_TIMEOUT = 120
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_OF_THE_SHELL = re.compile(r"[|<>;&`]|\$\(")


@dataclass(frozen=True)
class Command:
    """A command of a page.

    Attributes:
        line: its line in the block, counted from 0.
        shown: the output that the page shows; None without an output.
    """

    line: int
    text: str
    shown: str | None


@dataclass(frozen=True)
class Done:
    """The output of a command, on both streams, and its exit code."""

    printed: str
    code: int


def commands(text: str) -> Iterator[Command]:
    """Reads the commands of a console block.

    Raises:
        ValueError: if the block does not begin with a command.
    """
    starts, lines = [], text.splitlines()
    for number, line in enumerate(lines):
        if line.startswith("$ "):
            starts.append(number)
    if not starts or any(line.strip() for line in lines[: starts[0]]):
        raise ValueError("a console block begins with a command, `$ ...`")
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        last = start
        while lines[last].endswith("\\"):
            last += 1
        text = "\n".join([lines[start].removeprefix("$ "), *lines[start + 1 : last + 1]])
        shown = "\n".join(lines[last + 1 : end]).strip("\n")
        yield Command(start, text, shown or None)


def run(text: str, patch: pytest.MonkeyPatch) -> Done:
    """Runs a command in the working directory; `cd` and `export` apply until the patch is undone."""
    if _OF_THE_SHELL.search(re.sub(r"'[^']*'|\"[^\"$`]*\"", "", text)):
        return _by_shell(text)
    words = shlex.split(os.path.expandvars(text.replace("\\\n", " ")))
    with pytest.MonkeyPatch.context() as here:
        while words and (match := _ASSIGNMENT.fullmatch(words[0])):
            here.setenv(match[1], match[2])
            words = words[1:]
        return _run_words(text, words, patch)


def _run_words(text: str, words: Sequence[str], patch: pytest.MonkeyPatch) -> Done:
    name, arguments = words[0], list(words[1:])
    if name == "cd":
        patch.chdir(arguments[0])
    elif name == "export":
        for each in arguments:
            patch.setenv(*each.split("=", 1))
    elif name == "dbt":
        return _here(lambda: _dbt(arguments))
    elif name == "silt" and arguments[:1] != ["dbt"]:  # it ends the process that it runs in
        return _here(lambda: silt(arguments))
    elif name == "python" and arguments and arguments[0].endswith(".py"):
        return _here(lambda: _script(arguments))
    else:
        return _by_shell(text)
    return Done("", 0)


def _dbt(arguments: list[str]) -> int:
    reset_deprecations()  # a command would report commands of earlier pages
    outcome = dbtRunner().invoke(arguments)
    if isinstance(outcome.exception, DbtBaseException):
        print(outcome.exception)
    elif outcome.exception is not None:
        raise outcome.exception
    return 0 if outcome.success else 1


def _script(arguments: list[str]) -> int:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", arguments)
        runpy.run_path(arguments[0], run_name="__main__")
    return 0


def _here(function: Callable[[], int]) -> Done:
    """Runs a function, and captures its output."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            code = function()
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else int(error.code is not None)
        except Exception:
            traceback.print_exc()
            code = 1
    return Done(printed.getvalue(), code)


def _by_shell(text: str) -> Done:
    done = subprocess.run(
        ["bash", "-c", text],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_TIMEOUT,
    )
    return Done(done.stdout, done.returncode)
