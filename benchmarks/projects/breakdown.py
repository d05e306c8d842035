"""The phases of a cold dbt command's time: imports, parsing, Java, session, first node, other nodes, end."""

from __future__ import annotations

import json
import shutil
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.projects import marked_dbt
from benchmarks.projects.cold_build import LEFT_BY_RUNS, SAMPLE_PROJECT
from benchmarks.projects.process import python
from sample_project import land

PHASES = (
    ("dbt is imported", "began", "imported"),
    ("profile, project and adapter", "imported", "AdapterRegistered"),
    ("parse", "AdapterRegistered", "FoundStats"),
    ("until the first node", "FoundStats", "NodeStart"),
    ("the first node", "NodeStart", "NodeFinished"),
    ("the other nodes", "NodeFinished", "last NodeFinished"),
    ("end of the command", "last NodeFinished", "CommandCompleted"),
    ("end of the process", "CommandCompleted", "ended"),
    ("the whole process", "began", "ended"),
)
"""The successive phases, each with its first and last mark."""

BESIDE = (
    ("Java starts", "Java is started", "Java answers"),
    ("Spark starts in it", "Java answers", "Spark runs"),
    ("session and warehouse", "Spark runs", "the warehouse is open"),
)
"""The adapter's work in the background."""


@dataclass(frozen=True)
class Run:
    """One run.

    Attributes:
        moments: seconds since the process was requested, by the name of the mark.
        processor: seconds of processor time of `python` and of `java`, or None if unknown.
    """

    moments: Mapping[str, float]
    processor: Mapping[str, float | None]

    def seconds(self, phase: tuple[str, str, str]) -> float | None:
        """Returns the seconds of a phase, or None if the run lacks it."""
        _, start, end = phase
        if start not in self.moments or end not in self.moments:
            return None
        return self.moments[end] - self.moments[start]


@dataclass(frozen=True)
class Breakdown:
    """Median seconds by phase; None if no run had the phase.

    Attributes:
        phases: the successive phases.
        beside: the phases in the background.
        processor: processor time of Python and of Java.
    """

    command: str
    phases: Mapping[str, float | None]
    beside: Mapping[str, float | None]
    processor: Mapping[str, float | None]


def measure(folder: Path, repetitions: int = 3) -> list[Breakdown]:
    """Runs the commands on the sample project, each in turn.

    Raises:
        RuntimeError: if a run failed.
    """
    commands = {"build": ["build"], "run of one model, built before": ["run", "-s", "stg_planes"], "parse": ["parse"]}
    runs: dict[str, list[Run]] = {name: [] for name in commands}
    for repetition in range(repetitions):
        project = folder / f"breakdown_{repetition}"
        shutil.copytree(SAMPLE_PROJECT, project, ignore=LEFT_BY_RUNS)
        land.land(1, project / "landing")
        for name, arguments in commands.items():
            runs[name].append(run(arguments, project))
    return [summary(name, each) for name, each in runs.items()]


def run(arguments: Sequence[str], project: Path) -> Run:
    """Runs dbt once, in a separate process."""
    marks, command = project / "marks.json", project / "dbt"
    shutil.copyfile(marked_dbt.__file__, command)  # a program of this name ends as the `dbt` command does
    began = time.time()
    folders = ["--project-dir", str(project), "--profiles-dir", str(project)]
    python([str(command), str(marks), str(began), *arguments, *folders])
    ended = time.time() - began
    found = json.loads(marks.read_text(encoding="utf-8"))
    moments = {"began": 0.0, **found["moments"], "ended": ended}
    moments.setdefault("FoundStats", moments["CommandCompleted"])  # `dbt parse` ends after parsing
    return Run(moments, found["processor"])


def summary(command: str, runs: Sequence[Run]) -> Breakdown:
    """Returns the medians of the runs of one command."""
    phases = {phase[0]: _median([each.seconds(phase) for each in runs]) for phase in PHASES}
    beside = {phase[0]: _median([each.seconds(phase) for each in runs]) for phase in BESIDE}
    processor = {name: _median([each.processor[name] for each in runs]) for name in runs[0].processor}
    return Breakdown(command, phases, beside, processor)


def _median(seconds: Sequence[float | None]) -> float | None:
    known = [each for each in seconds if each is not None]
    return statistics.median(known) if known else None
