"""Runs `silt dbt ...`: by a command server where that can be, else as dbt itself.

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
