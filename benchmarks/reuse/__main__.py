"""Times the decision which nodes of a project are reused: `python -m benchmarks.reuse`."""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.reuse.warehouse import Node, make, opened
from dbt.adapters.silt.engine.builds.decision import Decision, Reused, decide
from dbt.adapters.silt.engine.builds.present import decide_now, last_build, present

REPETITIONS = 5


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the medians; returns 1 if a node would be built."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.reuse", description=__doc__)
    options.add_argument("--nodes", type=int, default=1_000)
    options.add_argument("--inputs", type=int, default=3, help="the number of tables that each node reads")
    given = options.parse_args(arguments)
    columns = ("decision", "nodes", "seconds", "processor seconds")
    table = Table(*columns, title=f"median of {REPETITIONS}, in one process without Spark")
    with tempfile.TemporaryDirectory() as folder:
        nodes = make(Path(folder) / "warehouse", given.nodes, given.inputs)
        calls = {"with the reading of all logs": from_logs, "from facts in memory": from_facts}
        for name, prepared in calls.items():
            found, clock, processor = timed(prepared, Path(folder) / "warehouse", nodes)
            table.add_row(name, f"{len(found):,}", f"{clock:.3f}", f"{processor:.3f}")
            if not all(isinstance(each, Reused) for each in found):
                print(f"nothing has changed, but a node would be built {name}", file=sys.stderr)
                return 1
    Console().print(table)
    return 0


def timed(
    prepared: Callable[[Path, Sequence[Node]], Callable[[], list[Decision]]], folder: Path, nodes: Sequence[Node]
) -> tuple[list[Decision], float, float]:
    """Returns the decisions about all nodes, and the medians of the elapsed and the processor seconds."""
    clock: list[float] = []
    processor: list[float] = []
    for _ in range(REPETITIONS):
        call = prepared(folder, nodes)
        before, began = time.process_time(), time.perf_counter()
        found = call()
        clock.append(time.perf_counter() - began)
        processor.append(time.process_time() - before)
    return found, statistics.median(clock), statistics.median(processor)


def from_logs(folder: Path, nodes: Sequence[Node]) -> Callable[[], list[Decision]]:
    """Prepares decisions that read each log for the first time, as a run does."""
    catalog = opened(folder)
    return lambda: [decide_now(catalog, catalog.table(each.table), each.build, "") for each in nodes]


def from_facts(folder: Path, nodes: Sequence[Node]) -> Callable[[], list[Decision]]:
    """Prepares decisions about facts that have been read."""
    catalog, known = opened(folder), []
    for node in nodes:
        last = last_build(catalog.table(node.table), node.build.owner)
        assert last is not None, f"{node.table} records no build"
        known.append((node.build, last, present(catalog, last.facts, str(node.table), "")))
    return lambda: [decide(*each) for each in known]


if __name__ == "__main__":
    sys.exit(main())
