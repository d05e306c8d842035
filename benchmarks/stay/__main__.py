"""Times `dbt` and `silt dbt` on a copy of a project, side by side: `python -m benchmarks.stay`."""

from __future__ import annotations

import argparse
import os
import shutil
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

from benchmarks.stay.breakdown import parts
from dbt.adapters.silt.command_server import control

BIN = Path(sys.executable).parent
SAMPLE = Path(__file__).parents[2] / "sample_project"
REPETITIONS = 5
_WARM_SECONDS = 60


@dataclass(frozen=True)
class Timing:
    """The seconds of each repetition of a command line."""

    line: str
    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the medians of each command, and the parts of the last `silt dbt` of each."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.stay", description=__doc__)
    options.add_argument("--project", type=Path, default=SAMPLE, help="with its profiles.yml (default: %(default)s)")
    options.add_argument("--select", help="a model, to time `run`; it takes the Spark of the profile")
    options.add_argument("--remote", help="of a Spark Connect server, in place of the profile's Spark")
    options.add_argument("--repetitions", type=int, default=REPETITIONS)
    given = options.parse_args(arguments)
    commands = [["parse"], *([["run", "--select", given.select]] if given.select else [])]
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_RUNTIME_DIR"] = folder
        project = Path(folder) / "project"
        shutil.copytree(given.project, project, ignore=shutil.ignore_patterns("target", "logs"))
        if given.remote:
            _use(project, given.remote)
        try:
            _print(project, commands, given.repetitions)
        finally:
            control.stop()
    return 0


def _print(project: Path, commands: list[list[str]], repetitions: int) -> None:
    table = Table("command", "median", "least", "most", title=f"seconds of {repetitions}")
    breakdown = Table("command", "part", "seconds", title="where the time of `silt dbt` goes")
    for command in commands:
        first = _timed(project, ["silt", "dbt", *command], 1)
        _wait_until_warm()
        for timing in (
            _timed(project, ["dbt", *command], repetitions),
            first,
            _timed(project, ["silt", "dbt", *command], repetitions),
        ):
            table.add_row(
                timing.line, *(f"{each:.2f}" for each in (timing.median, min(timing.seconds), max(timing.seconds)))
            )
        for part in parts(project, command):
            breakdown.add_row(" ".join(command), part.name, f"{part.seconds:.3f}")
    Console().print(table)
    Console().print(breakdown)


def _use(project: Path, remote: str) -> None:
    profiles = project / "profiles.yml"
    profiles.write_text(profiles.read_text().replace("type: silt", f"type: silt\n      remote: {remote}"))


def _timed(project: Path, words: list[str], repetitions: int) -> Timing:
    seconds = []
    for _ in range(repetitions):
        began = time.perf_counter()
        subprocess.run([str(BIN / words[0]), *words[1:]], cwd=project, check=True, stdout=subprocess.DEVNULL)
        seconds.append(time.perf_counter() - began)
    cold = " (first)" if words[0] == "silt" and repetitions == 1 else ""
    return Timing(" ".join(words) + cold, tuple(seconds))


def _wait_until_warm() -> None:
    """Waits until no server takes processor time any more."""
    used = -1.0
    end = time.monotonic() + _WARM_SECONDS
    while time.monotonic() < end:
        now = sum(_processor_seconds(each.process) for each in control.status())
        if now == used:
            return
        used = now
        time.sleep(1)


def _processor_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    sys.exit(main())
