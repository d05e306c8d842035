"""Compares logs of two versions of the package in one run: `python -m benchmarks.long_logs REVISION [--most RATIO]`.

The versions take turns, each in its own processes; their answers must be equal to the table's. Exits with 1 if a step
of this version takes more than RATIO times as many seconds of the processor, or as much memory, as in the revision.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from benchmarks.long_logs.measure import QUICK_TABLES, STEPS, TABLES, LogResult, in_own_process, measure

HERE: Final = "this version"
_MOST: Final = 1.6
_SHORT: Final = 0.02
"""Steps of fewer seconds vary by more than a change of the package."""


def compare(revision: str, folder: Path, quick: bool = False) -> list[LogResult]:
    """Measures this version and a revision of the repository, whose source is extracted into the folder.

    Raises:
        ResultsDifferError: if an answer of a version is wrong.
    """
    roots = {HERE: Path(__file__).parents[2], revision: folder / "source"}
    with subprocess.Popen(("git", "archive", revision), cwd=roots[HERE], stdout=subprocess.PIPE) as archive:
        with tarfile.open(fileobj=archive.stdout, mode="r|") as source:
            source.extractall(roots[revision], filter="data")

    def run(version: str, table: Path, key: int) -> dict[str, Any]:
        return in_own_process("dbt-silt", table, key, roots[version])

    return measure(folder, QUICK_TABLES if quick else TABLES, run, roots)


def ratios(results: Sequence[LogResult], revision: str) -> dict[str, float]:
    """Returns the ratio of this version to the revision for each step that is not too short to compare, and for the
    memory of each table.
    """
    found = {
        f"{each.table}: {step}": each.processor[HERE][step] / each.processor[revision][step]
        for each in results
        for step in STEPS
        if each.processor[revision][step] > _SHORT
    }
    memory = {f"{each.table}: peak memory": each.peak_mib[HERE] / each.peak_mib[revision] for each in results}
    return found | memory


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the ratios; returns 1 if a ratio is over the limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("revision", help="the version to compare with, such as main~20")
    parser.add_argument("--most", type=float, default=_MOST, help="the greatest ratio that is accepted")
    parser.add_argument("--quick", action="store_true", help="small tables, to try the benchmark")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        found = ratios(compare(given.revision, Path(folder), given.quick), given.revision)
    table = Table("step", f"{HERE} / {given.revision}")
    for step, ratio in found.items():
        table.add_row(step, f"{ratio:.2f}")
    Console().print(table)
    return int(any(ratio > given.most for ratio in found.values()))


if __name__ == "__main__":
    sys.exit(main())
