"""The cost of work: elapsed seconds, and processor time of this process and of Spark's Java."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table


@dataclass(frozen=True)
class Cost:
    """The cost of one run, in seconds.

    Attributes:
        clock: elapsed time, which also depends on other work of the machine.
        processor: processor time.
    """

    clock: float
    processor: float


@dataclass(frozen=True)
class Compared:
    """The costs of several ways to the same result, run in turn; the others are compared with the first way."""

    case: str
    ways: Mapping[str, Sequence[Cost]]

    def rows(self) -> list[tuple[str, ...]]:
        """Returns cells of a table: the case, the way, its least seconds, and their ratio to the first way's."""
        least = {way: _least(costs) for way, costs in self.ways.items()}
        first = next(iter(least.values()))
        return [
            (
                self.case,
                way,
                f"{cost.clock:.2f}",
                f"{cost.processor:.2f}",
                f"{cost.clock / first.clock:.2f}",
                f"{cost.processor / first.processor:.2f}" if first.processor else "",
            )
            for way, cost in least.items()
        ]


def in_turn(case: str, ways: Mapping[str, Callable[[], object]], rounds: int) -> Compared:
    """Runs each way once in each round, in turn; the first of several rounds is not counted."""
    costs: dict[str, list[Cost]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way, work in ways.items():
            costs[way].append(cost_of(work))
    return Compared(case, {way: each[1:] or each for way, each in costs.items()})


def cost_of(work: Callable[[], object]) -> Cost:
    """Runs the work and returns its cost."""
    clock, processor = time.perf_counter(), _processor_seconds()
    work()
    return Cost(time.perf_counter() - clock, _processor_seconds() - processor)


def table_of(found: Sequence[Compared]) -> Table:
    """Returns the table to print."""
    table = Table("case", "way", "seconds", "processor", "times the first", "in processor time")
    for compared in found:
        for row in compared.rows():
            table.add_row(*row)
        table.add_section()
    return table


def _least(costs: Sequence[Cost]) -> Cost:
    return Cost(min(cost.clock for cost in costs), min(cost.processor for cost in costs))


def _processor_seconds() -> float:
    """Returns the processor time so far of this process, its threads and, on Linux only, Spark's Java."""
    pyspark = sys.modules.get("pyspark")
    gateway = None if pyspark is None else pyspark.SparkContext._gateway
    stat = Path("/proc", str(getattr(getattr(gateway, "proc", None), "pid", "")), "stat")
    if gateway is None or not stat.is_file():
        return time.process_time()
    user, system = stat.read_text(encoding="utf-8").rpartition(")")[2].split()[11:13]
    return time.process_time() + (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
