"""Runs the contestants in turn, each in its own process on a copy of the log, and compares their answers."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness import ResultsDifferError
from benchmarks.long_logs.contestant import CONTESTANTS
from benchmarks.long_logs.tables import LogTable, make

TABLES = (LogTable("a million files", 1_000_010, 1_000_000), LogTable("10,000 commits", 10_000))
QUICK_TABLES = (LogTable("a thousand files", 1_010, 1_000), LogTable("50 commits", 50))
REPETITIONS = 3
_ROOT = Path(__file__).parents[2]
STEPS = ("open", "prune", "append", "refresh")

Run = Callable[[str, Path, int], dict[str, Any]]


@dataclass(frozen=True)
class LogResult:
    """One table's figures: medians over the repetitions.

    Attributes:
        seconds: contestant -> step -> seconds.
        processor: contestant -> step -> the fewest seconds of the processor, which depend least on other work.
        peak_mib: contestant -> the process' peak memory, in MiB.
    """

    table: str
    seconds: Mapping[str, Mapping[str, float]]
    processor: Mapping[str, Mapping[str, float]]
    peak_mib: Mapping[str, float]

    def ratio(self, step: str) -> float:
        """Returns the time of dbt-silt divided by the other contestant's."""
        return self.seconds["dbt-silt"][step] / self.seconds["deltalake"][step]


def measure(
    folder: Path, tables: Sequence[LogTable], run: Run | None = None, contestants: Iterable[str] = tuple(CONTESTANTS)
) -> list[LogResult]:
    """Creates each table and runs the contestants in turn (A B A B) on copies of it.

    Raises:
        ResultsDifferError: if an answer of a contestant is wrong.
    """
    run = run or in_own_process
    return [_measure(table, folder / table.name.replace(" ", "_"), run, contestants) for table in tables]


def in_own_process(contestant: str, folder: Path, key: int, root: Path = _ROOT) -> dict[str, Any]:
    """Runs a contestant (`contestant.run`) in a new process, by the package in a source folder."""
    command = [sys.executable, str(Path(__file__).with_name("contestant.py")), contestant, str(folder), str(key)]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _measure(table: LogTable, folder: Path, run: Run, contestants: Iterable[str]) -> LogResult:
    made, copy = folder / "made", folder / "copy"
    make(table, made)
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in contestants}
    for _ in range(REPETITIONS):
        for name, found in runs.items():
            shutil.copytree(made, copy, copy_function=os.link)
            found.append(run(name, copy, table.key))
            shutil.rmtree(copy)
            _check(table, name, found[-1]["answers"])
    return LogResult(
        table.name,
        {name: {step: _median(found, step) for step in STEPS} for name, found in runs.items()},
        {
            name: {step: min(each["processor"][step] for each in found) for step in STEPS}
            for name, found in runs.items()
        },
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
