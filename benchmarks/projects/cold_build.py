"""Times the cold `dbt build` of the sample project, in turn with a bare start of Python, dbt and Spark."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.harness import CaseResult, Measurement
from benchmarks.projects import bare_start
from benchmarks.projects.process import dbt, python
from sample_project import land

SAMPLE_PROJECT = Path(land.__file__).parent
LEFT_BY_RUNS = shutil.ignore_patterns("landing", "warehouse", "target", "logs", "__pycache__", ".user.yml")


def measure(folder: Path, repetitions: int = 3) -> CaseResult:
    """Builds January of the sample project from nothing in each repetition.

    Raises:
        RuntimeError: if a build failed.
    """
    starts, builds = [], []
    for repetition in range(repetitions):
        project = folder / f"build_{repetition}"
        shutil.copytree(SAMPLE_PROJECT, project, ignore=LEFT_BY_RUNS)
        land.land(1, project / "landing")
        starts.append(_seconds(partial(python, [str(bare_start.__file__)])))
        builds.append(_seconds(partial(dbt, ["build"], project)))
    measurements = (Measurement("bare start", tuple(starts)), Measurement("dbt build", tuple(builds)))
    return CaseResult("cold build of the sample project", 0, measurements)


def _seconds(work: Callable[[], None]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
