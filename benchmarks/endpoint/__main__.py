"""Fetches a table as Arrow through the Connect door and from the Spark behind it, in pairs:
`python -m benchmarks.endpoint [--rows N] [--pairs N]`.

Both run the same Spark on the same files. Elapsed seconds depend on other work of the machine; seconds of processor
time, of the client, the endpoint and Spark's Java, do not.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.connect.session import SparkSession

from dbt.adapters.silt.kept_spark import listing, private_files

_TICKS = os.sysconf("SC_CLK_TCK")
_ROWS = "select id, id / 7 as amount, concat('order ', id) as name, date'2024-01-01' as day from range({rows})"


@dataclass(frozen=True)
class Cost:
    """The cost of one fetch: elapsed seconds, and seconds of processor time by process."""

    seconds: float
    processor: Mapping[str, float]

    @property
    def all_processors(self) -> float:
        return sum(self.processor.values())


@contextlib.contextmanager
def endpoint(folder: Path) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """Starts an endpoint of a new warehouse; its Spark ends a minute after it."""
    (folder / "warehouse").mkdir()
    command = [sys.executable, "-m", "dbt.adapters.silt.cli", "endpoint", "--warehouse", str(folder / "warehouse")]
    process = subprocess.Popen(
        [*command, "--port", "0", "--connect-port", "0", "--json"], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        yield process, json.loads(process.stdout.readline())
    finally:
        process.terminate()
        process.wait()


def connected(address: str, token: str) -> SparkSession:
    """Opens a session of a server of this machine."""
    return SparkSession.builder.remote(f"{address}/;token={token}").create()


def processor(pid: int) -> float:
    """Returns the seconds of processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def measured(query: Any, processes: Mapping[str, int]) -> tuple[Cost, pa.Table]:
    """Fetches the rows of a query once, as Arrow."""
    before, started = {name: processor(pid) for name, pid in processes.items()}, time.perf_counter()
    rows = query.toArrow()
    seconds = time.perf_counter() - started
    return Cost(seconds, {name: processor(pid) - before[name] for name, pid in processes.items()}), rows


def shown(name: str, costs: list[Cost]) -> str:
    """Returns a line with the medians of costs."""
    parts = (f"{part} {statistics.median(each.processor[part] for each in costs):.2f}" for part in costs[0].processor)
    seconds, used = (statistics.median(values) for values in zip(*_values(costs), strict=True))
    return f"{name:8} {seconds:6.2f} s elapsed, {used:6.2f} s of processor: {', '.join(parts)}"


def _values(costs: list[Cost]) -> Iterator[tuple[float, float]]:
    return ((each.seconds, each.all_processors) for each in costs)


def main() -> None:
    """Prints the medians of both ways, and the median of the ratios of pairs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--pairs", type=int, default=7)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        os.environ["XDG_CACHE_HOME"] = str(Path(name, "cache"))
        with endpoint(Path(name)) as (process, places):
            served = connected(places["connect"], Path(places["token"]).read_text().strip())
            served.sql(f"create table main.large as {_ROWS.format(rows=arguments.rows)}")
            [kept] = listing.running(private_files.base_folder())
            plain = connected(f"sc://localhost:{kept.record.port}", kept.record.token)
            ways = {
                "plain": plain.read.parquet(*map(str, Path(name, "warehouse", "main", "large").glob("**/*.parquet"))),
                "endpoint": served.table("main.large"),
            }
            processes = {"client": os.getpid(), "endpoint": process.pid, "java": kept.record.java}
            _compare(ways, processes, arguments.pairs)
            served.stop()
            plain.stop()


def _compare(ways: Mapping[str, Any], processes: Mapping[str, int], pairs: int) -> None:
    costs: dict[str, list[Cost]] = {name: [] for name in ways}
    for pair in range(-2, pairs):  # the first pairs warm up
        found = {}
        for name in list(ways)[:: 1 if pair % 2 else -1]:
            cost, rows = measured(ways[name], processes)
            found[name] = (rows.num_rows, rows.nbytes // 1_000_000)
            if pair >= 0:
                costs[name].append(cost)
        assert len(set(found.values())) == 1, found
    print("\n".join(shown(name, each) for name, each in costs.items()))
    both = list(zip(costs["plain"], costs["endpoint"], strict=True))
    speed = statistics.median(plain.seconds / served.seconds for plain, served in both)
    work = statistics.median(plain.all_processors / served.all_processors for plain, served in both)
    rows, size = found["plain"]
    print(f"{rows:,} rows, {size} MB of Arrow: {speed:.2f} of the speed of plain, {work:.2f} by processor time")


if __name__ == "__main__":
    main()
