"""Times the subcommands of `silt`, each in a separate process: `python -m benchmarks.command`."""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.command.warehouse import Size, make, run_id

SMALL, MANY = Size(3, 3), Size(1_000, 10)
REPETITIONS = 5


@dataclass(frozen=True)
class Timing:
    """The elapsed seconds of one call, and its seconds of processor time, which depend less on other load."""

    clock: float
    processor: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the medians of each subcommand."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.command", description=__doc__)
    options.add_argument("--tables", type=int, default=MANY.tables, help="of the large warehouse")
    given = options.parse_args(arguments)
    many = Size(given.tables, MANY.runs)
    table = Table("subcommand", "tables", "seconds", "processor seconds", title=f"median of {REPETITIONS} cold starts")
    with tempfile.TemporaryDirectory() as folder:
        for size in (SMALL, many):
            warehouse = Path(folder) / str(size.tables)
            make(warehouse, size)
            for call in calls(size):
                found = [timed(call, warehouse) for _ in range(REPETITIONS)]
                clock, processor = (statistics.median(each) for each in zip(*map(_pair, found), strict=True))
                table.add_row(call[0], f"{size.tables:,}", f"{clock:.2f}", f"{processor:.2f}")
    Console().print(table)
    return 0


def calls(size: Size) -> list[list[str]]:
    """Returns the subcommands to time on a warehouse of a size."""
    of_all = [["runs"], ["run", run_id(size.runs - 1)]]
    of_one = [["history", "main.table_00000"], ["show", "main.table_00000"]]
    return [*of_all, *of_one]


def timed(call: Sequence[str], warehouse: Path) -> Timing:
    """Runs the command once, as a shell does, and returns its times."""
    command = [sys.executable, "-m", "dbt.adapters.silt.cli", *call, "--warehouse", str(warehouse)]
    before, began = os.times(), time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after, ended = os.times(), time.perf_counter()
    processor = after.children_user + after.children_system - before.children_user - before.children_system
    return Timing(ended - began, processor)


def _pair(timing: Timing) -> tuple[float, float]:
    return timing.clock, timing.processor


if __name__ == "__main__":
    sys.exit(main())
