"""Installs the test servers once: versitygw, an S3 over a folder, by Go's tool; Azurite, an Azure storage, by npm.

They are kept in `dbt-silt-tests` of the user's cache folder (`XDG_CACHE_HOME`).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

VERSITYGW: Final = "v1.8.0"
AZURITE: Final = "3.35.0"

_MODULE = "github.com/versity/versitygw/cmd/versitygw"
_SECONDS = 3600


class NotInstalled(Exception):
    """A server is not installed and cannot be; the text names the missing tool."""


def versitygw() -> Path:
    """Returns the program, which Go builds in some minutes if it is missing.

    Raises:
        NotInstalled: if Go is missing.
    """
    program = _cache() / f"versitygw-{VERSITYGW}" / "versitygw"
    if not program.exists():
        environment = {**os.environ, "GOBIN": str(program.parent)}
        _run([_tool("go"), "install", "-ldflags=-s -w", f"{_MODULE}@{VERSITYGW}"], _cache(), environment)
    return program


def azurite() -> list[str]:
    """Returns the command that starts the blob service.

    Raises:
        NotInstalled: if npm or Node is missing.
    """
    node, folder = _tool("node"), _cache() / f"azurite-{AZURITE}"
    script = folder / "node_modules/azurite/dist/src/blob/main.js"
    if not script.exists():
        folder.mkdir(exist_ok=True)
        package = f"azurite@{AZURITE}"
        _run([_tool("npm"), "install", "--no-audit", "--no-fund", "--ignore-scripts", package], folder, {**os.environ})
    return [node, str(script)]


def _cache() -> Path:
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dbt-silt-tests"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise NotInstalled(f"`{name}` is not on the path")
    return found


def _run(command: list[str], folder: Path, environment: dict[str, str]) -> None:
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=_SECONDS)
    if done.returncode:
        raise NotInstalled(f"`{' '.join(command)}` failed: {done.stderr[-2000:]}")


if __name__ == "__main__":
    for get in (versitygw, azurite):
        began = time.monotonic()
        try:
            print(f"{get.__name__}: {get()} ({time.monotonic() - began:.0f} s)")
        except NotInstalled as reason:
            print(f"{get.__name__}: {reason}; its tests are skipped", file=sys.stderr)
