"""Runs `silt dbt ...` and the statements of `silt sql`: by a command server if possible, else in this process.

It imports almost nothing, because its purpose is to avoid the start of dbt.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any, Final, NoReturn

SWITCH: Final = "SILT_COMMAND_SERVER"
"""The environment variable that keeps `silt dbt` from using a server: `off`."""
STATEMENTS: Final = "run-statements"
"""The internal subcommand that `silt sql` starts; it runs the statements that it receives."""
STATEMENTS_MODULE: Final = "dbt.adapters.silt.session.statement_process"


def main(arguments: Sequence[str]) -> NoReturn:
    """Runs dbt with these arguments, and ends as dbt ends: by its exit code, or the signal that ended it.

    Raises:
        SystemExit: with dbt's exit code.
    """
    program = dbt_program()
    reason = _why_not()
    if reason is None:
        reason = _module("submission").run(program, arguments)
    _module("plain_dbt").run(program, arguments, reason)
    raise AssertionError("dbt's command line ends the process")


def run_statements() -> NoReturn:
    """Runs the statements that arrive on the standard input, and ends this process when the input ends.

    Raises:
        SystemExit: with the exit code.
    """
    if _why_not() is None:
        _module("submission").run(STATEMENTS, ())
    sys.exit(importlib.import_module(STATEMENTS_MODULE).main())


def _why_not() -> str | None:
    """Returns why no server runs the command; empty if the user asked for that, None if a server runs it."""
    if os.environ.get(SWITCH, "").lower() == "off":
        return ""
    if sys.platform != "linux":
        return f"a command server is used on Linux only, not on {sys.platform}"
    return None


def _module(name: str) -> Any:
    """Imports a module of this package when it is needed."""
    return importlib.import_module(f"dbt.adapters.silt.command_server.{name}")


def dbt_program() -> str:
    """Returns the path of dbt's own command, which is in the folder of this command."""
    own = sys.argv[0] if os.path.basename(sys.argv[0]).startswith("silt") else sys.executable
    return os.path.join(os.path.dirname(os.path.abspath(own)), "dbt")
