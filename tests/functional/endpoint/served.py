"""Runs `silt endpoint` in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

TOKEN: Final = "correct-horse-battery-staple"


@contextmanager
def endpoint(warehouse: Path | None, *options: str, project: Path | None = None) -> Iterator[dict[str, Any]]:
    """Runs `silt endpoint` on a free port, and stops it by Ctrl-C, unless the block has killed it.

    Args:
        project: the folder of the dbt project whose warehouse and Spark it uses, if no warehouse is given.
    """
    command = [sys.executable, "-m", "dbt.adapters.silt.cli", "endpoint"]
    named = () if warehouse is None else ("--warehouse", str(warehouse))
    process = subprocess.Popen(
        [*command, *named, "--port", "0", "--json", *options],
        stdout=subprocess.PIPE,
        text=True,
        cwd=project,
        env={**os.environ, "SILT_ENDPOINT_TOKEN": TOKEN},
    )
    assert process.stdout is not None
    try:
        shown = json.loads(process.stdout.readline())
        yield {**shown, "port": int(shown["thrift"].split(":")[3].split("/")[0]), "pid": process.pid}
        process.send_signal(signal.SIGINT)
        assert process.wait(60) in (0, -signal.SIGKILL)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
