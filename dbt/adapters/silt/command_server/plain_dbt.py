"""Runs dbt in this process, where no command server does it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from dbt.cli.main import cli

from dbt.adapters.silt.engine.kernel.errors import sentence

SAID = Path(".cache") / "dbt-silt" / "said"
"""The file, in the user's folder, of the reasons that were given before."""


def run(program: str, arguments: Sequence[str], reason: str) -> None:
    """Runs dbt's command line with these arguments, as `dbt` would.

    Args:
        program: the file of dbt's own command.
        reason: why no command server does it, which is said once; empty where there is nothing to say.

    Raises:
        SystemExit: with dbt's exit code.
    """
    if reason and _is_news(reason):
        print(f"silt: {sentence(reason)} `silt dbt` is plain `dbt` then, and says so this once.", file=sys.stderr)
    sys.argv = [program, *arguments]
    sys.exit(cli())


def _is_news(reason: str) -> bool:
    """Whether the reason was not given before; from now on it was."""
    try:
        path = Path.home() / SAID
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with path.open("a+", encoding="utf-8") as file:
            file.seek(0)
            if reason in file.read().splitlines():
                return False
            print(reason, file=file)
    except (OSError, RuntimeError):
        return True  # once too often rather than never
    return True
