"""Creates dbt projects, and runs their commands in this process, in which dbt and Spark are warm."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dbt.cli.main import dbtRunner

_PROJECT = "name: dbt_work\nversion: 1.0.0\nprofile: dbt_work\n"
_PROFILE = "dbt_work:\n  target: dev\n  outputs:\n    dev:\n      type: silt\n"


def make(folder: Path, files: Mapping[str, str]) -> Path:
    """Writes a project with its own profile, and returns its folder.

    Args:
        files: their content by their paths in the project.
    """
    for path, text in {"dbt_project.yml": _PROJECT, "profiles.yml": _PROFILE, **files}.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return folder


def run(folder: Path, command: str, **variables: Any) -> Mapping[str, Any]:
    """Runs a command that has one node, and returns the adapter's response.

    Raises:
        RuntimeError: if the command failed.
    """
    folders = ["--project-dir", str(folder), "--profiles-dir", str(folder)]
    outcome = dbtRunner().invoke([command, *folders, "--quiet", "--vars", json.dumps(variables)])
    if not outcome.success:
        raise RuntimeError(f"dbt {command} failed: {outcome.exception or outcome.result}")
    [result] = outcome.result.results  # type: ignore[union-attr]
    return result.adapter_response
