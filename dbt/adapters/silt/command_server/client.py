"""Runs `silt dbt ...`, and the statements of `silt sql`: by a command server where that can be, else without it.

It imports next to nothing: the start of dbt is what it is there to avoid.
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
"""The subcommand that `silt sql` starts, and no person: it runs the statements that it is sent."""
STATEMENTS_MODULE: Final = "dbt.adapters.silt.session.statements.process"


def main(arguments: Sequence[str]) -> NoReturn:
    """Runs dbt with these arguments, and ends as dbt ends: by its exit code, or the signal that ended it.

    Raises:
        SystemExit: with dbt's exit code.
    """
    program = dbt_program()
    reason = _why_not()
    if reason is None:
        reason = _module("handing_over").run(program, arguments)
    _module("plain_dbt").run(program, arguments, reason)
    raise AssertionError("dbt's command line ends the process")


def run_statements() -> NoReturn:
    """Runs the statements that are sent to the standard input, and ends with them.

    Raises:
        SystemExit: with the exit code.
    """
    if _why_not() is None:
        _module("handing_over").run(STATEMENTS, ())
    sys.exit(importlib.import_module(STATEMENTS_MODULE).main())


def _why_not() -> str | None:
    """Why no server is asked; empty where that need not be said, and None where one is."""
    if os.environ.get(SWITCH, "").lower() == "off":
        return ""
    if sys.platform != "linux":
        return f"on {sys.platform} no process is kept that could be forked safely"
    return None


def _module(name: str) -> Any:
    """A module of this package: only what is needed is imported."""
    return importlib.import_module(f"dbt.adapters.silt.command_server.{name}")


def dbt_program() -> str:
    """The file of dbt's own command, next to that of this one."""
    own = sys.argv[0] if os.path.basename(sys.argv[0]).startswith("silt") else sys.executable
    return os.path.join(os.path.dirname(os.path.abspath(own)), "dbt")
