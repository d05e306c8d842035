"""Measures the parts of one `silt dbt` command by its own log and its client's clock."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import pairwise
from pathlib import Path

_SILT = Path(sys.executable).parent / "silt"
_MILESTONES = {
    "MainReportVersion": "client, request, two forks",
    "AdapterRegistered": "flags, profile, project",
    "FoundStats": "parse",
    "LogStartLine": "before and between nodes",
    **dict.fromkeys(("LogModelResult", "LogSeedResult", "LogSnapshotResult", "LogTestResult"), "nodes"),
    "CommandCompleted": "the parse, where nothing is run; artifacts",
}
"""dbt's events, each with the part that ends with it."""


@dataclass(frozen=True)
class Part:
    """A part of a command, and its elapsed seconds."""

    name: str
    seconds: float


def parts(project: Path, command: Sequence[str]) -> Iterator[Part]:
    """Runs the command again, and yields its parts in order."""
    bare = _seconds([sys.executable, "-c", "pass"])
    light = _seconds([sys.executable, "-c", "import dbt.adapters.silt.command_server.submission"])
    yield Part("Python's start (within the next)", bare)
    yield Part("Python's start and the client's imports", light)
    began = datetime.now(timezone.utc)
    arguments = ["dbt", "--log-format", "json", "--log-level", "debug", *command]
    done = subprocess.run([_SILT, *arguments], cwd=project, check=True, capture_output=True, text=True)
    ended = datetime.now(timezone.utc)
    yield from _between(began, list(_events(done.stdout)), ended)


def _between(began: datetime, events: list[tuple[str, datetime]], ended: datetime) -> Iterator[Part]:
    found = [("", began), *((name, at) for name, at in events if name in _MILESTONES), ("", ended)]
    seconds: dict[str, float] = {}
    for (_, before), (name, at) in pairwise(found):
        part = _MILESTONES.get(name, "end of the process")
        seconds[part] = seconds.get(part, 0.0) + (at - before).total_seconds()
    yield from (Part(*each) for each in seconds.items())


def _events(output: str) -> Iterator[tuple[str, datetime]]:
    for line in output.splitlines():
        if line.startswith("{"):
            info = json.loads(line)["info"]
            yield info["name"], datetime.fromisoformat(info["ts"].replace("Z", "+00:00"))


def _seconds(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True)
    return time.perf_counter() - began
