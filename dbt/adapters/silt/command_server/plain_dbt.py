"""Runs dbt in this process if no command server runs it."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from dbt.cli.main import cli

from dbt.adapters.silt.engine.kernel import owned_folders
from dbt.adapters.silt.engine.kernel.errors import sentence

SAID = Path(".cache") / "dbt-silt" / "said"
"""The file in the user's home folder that holds the reasons that were shown before."""


def run(program: str, arguments: Sequence[str], reason: str) -> None:
    """Runs dbt's command line with these arguments, as `dbt` would.

    Args:
        program: the file of dbt's own command.
        reason: why no command server runs it, which is shown once; empty to show nothing.

    Raises:
        SystemExit: with dbt's exit code.
    """
    if reason and _is_news(reason):
        print(
            f"silt: {sentence(reason)} `silt dbt` runs plain `dbt` instead; this is shown only once.", file=sys.stderr
        )
    sys.argv = [program, *arguments]
    sys.exit(cli())


def _is_news(reason: str) -> bool:
    """Records the reason as shown, and returns whether it is new."""
    try:
        path = Path.home() / SAID
        owned_folders.create(os.fspath(path.parent))
        with path.open("a+", encoding="utf-8") as file:
            file.seek(0)
            if reason in file.read().splitlines():
                return False
            print(reason, file=file)
    except (OSError, RuntimeError):
        return True  # rather shown twice than never
    return True
