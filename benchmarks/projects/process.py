"""Starts processes as a user does."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path


def dbt(arguments: Sequence[str], project: Path) -> None:
    """Runs dbt on a project with its own profile.

    Raises:
        RuntimeError: if it failed; the message is its output.
    """
    folders = ["--project-dir", str(project), "--profiles-dir", str(project)]
    python([str(Path(sys.executable).parent / "dbt"), *arguments, *folders])


def python(arguments: Sequence[str]) -> None:
    """Runs a script with this Python.

    Raises:
        RuntimeError: if it failed; the message is its output.
    """
    ended = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        raise RuntimeError(f"{' '.join(arguments)} failed:\n{ended.stdout}\n{ended.stderr}")
