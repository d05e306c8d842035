"""Runs the contestants in turn, each in its own process on a copy of the log, and compares their answers."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness import ResultsDifferError
from benchmarks.long_logs.contestant import CONTESTANTS
from benchmarks.long_logs.tables import LogTable, make

TABLES = (LogTable("a million files", 1_000_010, 1_000_000), LogTable("10,000 commits", 10_000))
QUICK_TABLES = (LogTable("a thousand files", 1_010, 1_000), LogTable("50 commits", 50))
REPETITIONS = 3
STEPS = ("open", "prune", "append", "refresh")

Run = Callable[[str, Path, int], dict[str, Any]]


@dataclass(frozen=True)
class LogResult:
    """One table's figures: medians over the repetitions.

    Attributes:
        seconds: contestant -> step -> seconds.
        peak_mib: contestant -> the process' peak memory, in MiB.
    """

    table: str
    seconds: Mapping[str, Mapping[str, float]]
    peak_mib: Mapping[str, float]

    def ratio(self, step: str, ours: str = "dbt-silt", peer: str = "deltalake") -> float:
        """Returns the time of dbt-silt divided by the other contestant's."""
        return self.seconds[ours][step] / self.seconds[peer][step]


def measure(folder: Path, tables: Sequence[LogTable], run: Run | None = None) -> list[LogResult]:
    """Creates each table and runs the contestants in turn (A B A B) on copies of it.

    Raises:
        ResultsDifferError: if an answer of a contestant is wrong.
    """
    return [_measure(table, folder / table.name.replace(" ", "_"), run or in_own_process) for table in tables]


def in_own_process(contestant: str, folder: Path, key: int) -> dict[str, Any]:
    """Runs a contestant (`contestant.run`) in a new process."""
    command = [sys.executable, "-m", "benchmarks.long_logs.contestant", contestant, str(folder), str(key)]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _measure(table: LogTable, folder: Path, run: Run) -> LogResult:
    made, copy = folder / "made", folder / "copy"
    make(table, made)
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in CONTESTANTS}
    for _ in range(REPETITIONS):
        for name, found in runs.items():
            shutil.copytree(made, copy, copy_function=os.link)
            found.append(run(name, copy, table.key))
            shutil.rmtree(copy)
            _check(table, name, found[-1]["answers"])
    return LogResult(
        table.name,
        {name: {step: _median(found, step) for step in STEPS} for name, found in runs.items()},
        {name: statistics.median(each["peak_mib"] for each in found) for name, found in runs.items()},
    )


def _check(table: LogTable, name: str, answers: Mapping[str, Any]) -> None:
    expected = {
        "open": table.files,
        "prune": [table.file_of_key],
        "append": table.version + 1,
        "refresh": table.version + 2,
    }
    if answers != expected:
        raise ResultsDifferError(f"{table.name}: {name} answered {answers} instead of {expected}")


def _median(runs: Sequence[Mapping[str, Any]], step: str) -> float:
    return statistics.median(each["seconds"][step] for each in runs)
