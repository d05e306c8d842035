"""Measures `silt report` without Spark: `python -m benchmarks.report_page [--tables N] [--commits N] [--times N]`.

Elapsed seconds depend on other work of the machine; seconds of processor time do not.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.report_page.warehouse import Plan, make


@dataclass(frozen=True)
class Cost:
    """The cost of one page.

    Attributes:
        seconds: elapsed.
        processor: seconds of processor time of all processes.
        size: bytes of the page.
    """

    seconds: float
    processor: float
    size: int


def measured(folder: Path) -> Cost:
    """Writes the page of a project's folder once, in a separate process, and returns its cost."""
    page = folder / "page.html"
    command = [sys.executable, "-m", "dbt.adapters.silt.cli", "report", "--warehouse", str(folder / "warehouse")]
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        [*command, "--target-path", str(folder / "target"), "--output", str(page)],
        cwd=Path(__file__).parents[2],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    seconds, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(seconds, processor, page.stat().st_size)


def main() -> None:
    """Prints the cost of each page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=1_000)
    parser.add_argument("--commits", type=int, default=10_000)
    parser.add_argument("--times", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        make(Plan(arguments.tables, arguments.commits), Path(folder))
        print(f"{arguments.tables:,} tables, {arguments.commits:,} commits")
        for cost in (measured(Path(folder)) for _ in range(arguments.times)):
            print(f"{cost.seconds:.1f} s, {cost.processor:.1f} s of processor, {cost.size / 1e6:.1f} MB")
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        print(f"peak of one process: {peak:.0f} MiB")


if __name__ == "__main__":
    main()
