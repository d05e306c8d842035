"""Runs all cases in some minutes, without Spark: `python -m benchmarks.scale [--only files|commits|models|limits]`."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.scale import limits, models
from benchmarks.scale.one_table import Step
from benchmarks.scale.tables import many_files
from benchmarks.scale.virtual import Result

LATENCY = 0.05
FILES = 1_000_000
_MIB = 1 << 20


def _in_own_process(case: str, folder: str) -> list[Step]:
    command = [sys.executable, "-m", "benchmarks.scale.one_table", case, folder]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True)
    return [Step(**each) for each in json.loads(done.stdout)]


def steps_table(title: str, steps: Iterable[Step]) -> Table:
    """Returns a line for each step."""
    shown = (
        "requests",
        "one after the other",
        "seconds at 50 ms",
        "MB sent",
        "MB received",
        "seconds here",
        "peak MiB",
    )
    table = Table("step", *shown, title=title)
    for step in steps:
        table.add_row(
            step.name,
            str(sum(step.requests.values())),
            str(step.depth),
            f"{step.depth * LATENCY:.2f}",
            f"{step.sent / 1e6:.2f}",
            f"{step.received / 1e6:.2f}",
            f"{step.busy:.2f}",
            f"{step.peak_mib:.0f}",
        )
    return table


def runs_table(runs: Iterable[models.Run]) -> Table:
    """Returns a line for each number of models."""
    shown = (
        "names, bytes",
        "requests to create",
        "MB to create",
        "requests of a run",
        "seconds at 50 ms, 1, 4, 16 threads",
    )
    table = Table("models", *shown, title="incremental models, without Spark's requests")
    for run in runs:
        seconds = ", ".join(f"{run.seconds(LATENCY, threads):.0f}" for threads in (1, 4, 16))
        created = (str(run.creation.requests), f"{run.creation.sent / 1e6:.1f}")
        table.add_row(str(run.models), str(run.document), *created, str(run.models_cost.requests), seconds)
    return table


def limits_table(title: str, results: Iterable[Result]) -> Table:
    """Returns a line for each load."""
    shown = (
        "latency",
        "work",
        "commits a second",
        "attempts a commit",
        "gave up",
        "median seconds",
        "requests a commit",
    )
    table = Table("writers", *shown, title=title)
    for result in results:
        load, seen = result.load, result.seen
        commits = max(seen.commits, 1)
        table.add_row(
            str(load.writers),
            f"{load.latency:g} s",
            f"{load.work:g} s",
            f"{result.per_second:.2f}",
            f"{seen.attempts / commits:.1f}",
            f"{seen.exhausted / (seen.commits + seen.exhausted or 1):.1%}",
            f"{seen.median_wait:.2f}",
            f"{seen.requests / commits:.0f}",
        )
    return table


def _files(console: Console) -> None:
    for name, is_v2 in (("one classic checkpoint", False), ("a V2 checkpoint", True)):
        with tempfile.TemporaryDirectory() as folder:
            many_files(FILES, Path(folder), is_v2)
            console.print(steps_table(f"{FILES:,} files in {name}", _in_own_process("files", folder)))


def _commits(console: Console) -> None:
    titles = {
        "commits": "100,000 commits",
        "units": "100,000 commits, each a unit of work",
        "sidecars": "100,000 commits and 200,000 sidecars",
    }
    for case, title in titles.items():
        console.print(steps_table(title, _in_own_process(case, "-")))


def _models(console: Console) -> None:
    console.print(runs_table(models.measure(count) for count in (200, 2_000)))
    for count in (2_000, 10_000):
        console.print(f"{count:,} relations: a document of {models.document_bytes(count) / _MIB:.2f} MiB")


def _limits(console: Console) -> None:
    console.print(limits_table("appends to one table", limits.appends()))
    console.print(limits_table("merges that read the whole table", limits.merges()))


PARTS: Mapping[str, Callable[[Console], None]] = {
    "files": _files,
    "commits": _commits,
    "models": _models,
    "limits": _limits,
}


def main() -> None:
    """Runs the chosen parts."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--only", choices=sorted(PARTS), action="append")
    console = Console(width=160)
    for part in parser.parse_args().only or PARTS:
        PARTS[part](console)


if __name__ == "__main__":
    main()
