"""Times the second run of a project of small incremental merge models."""

from __future__ import annotations

import json
import shutil
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks.projects.process import dbt

MODELS = 20
ROWS = 1_000

# The first models of a run have a cold JVM; they do not show the cost of one more model.
WARMUP_MODELS = 5

PROJECT = """
name: small_models
version: 1.0.0
profile: small_models
"""
PROFILE = """
small_models:
  target: dev
  outputs:
    dev:
      type: silt
"""
MODEL = """
{{{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id') }}}}
select id, concat('customer ', id) as customer, id % 97 as category, current_timestamp() as at
{{% if is_incremental() %}}
from range({half}, {half} + {rows})
{{% else %}}
from range({rows})
{{% endif %}}
"""


@dataclass(frozen=True)
class ProjectRun:
    """The times of one `dbt run`, in seconds.

    Attributes:
        first_model: of the first model to start.
        steady_per_model: the time between the ends of two models after the first few; less with more threads.
        median_model: of a model in the steady state, from its start to its end.
        wall: of the whole process.
    """

    models: int
    threads: int
    first_model: float
    steady_per_model: float
    median_model: float
    wall: float


def measure(folder: Path, threads: Sequence[int] = (1, 4)) -> list[ProjectRun]:
    """Builds the project once, and runs a copy of it for each number of threads.

    Raises:
        RuntimeError: if a run failed, or did not merge the expected rows.
    """
    built = folder / "built"
    make(built)
    dbt(["run", "--threads", "4"], built)
    return [_second_run(built, folder / f"threads_{count}", count) for count in threads]


def make(folder: Path, models: int = MODELS, rows: int = ROWS) -> None:
    """Writes the project."""
    (folder / "models").mkdir(parents=True)
    (folder / "dbt_project.yml").write_text(PROJECT, encoding="utf-8")
    (folder / "profiles.yml").write_text(PROFILE, encoding="utf-8")
    for number in range(models):
        text = MODEL.format(rows=rows, half=rows // 2)
        (folder / "models" / f"model_{number:02}.sql").write_text(text, encoding="utf-8")


def times(results: Mapping[str, Any], threads: int, wall: float) -> ProjectRun:
    """Returns the times in the content of a `run_results.json`."""
    spans = sorted((_span(result) for result in results["results"]), key=lambda span: span[1])
    steady = spans[WARMUP_MODELS:]
    between = (steady[-1][1] - spans[WARMUP_MODELS - 1][1]).total_seconds()
    first = min(spans)
    return ProjectRun(
        models=len(spans),
        threads=threads,
        first_model=(first[1] - first[0]).total_seconds(),
        steady_per_model=between / len(steady),
        median_model=statistics.median((end - start).total_seconds() for start, end in steady),
        wall=wall,
    )


def check(results: Mapping[str, Any], rows: int = ROWS) -> None:
    """Raises RuntimeError unless each model merged its rows: half of them new, half existing."""
    for result in results["results"]:
        response = result["adapter_response"]
        merged = (response.get("rows_inserted"), response.get("rows_updated"))
        if merged != (rows // 2, rows // 2):
            raise RuntimeError(f"{result['unique_id']} inserted and updated {merged}, not half of {rows} rows each")


def _second_run(built: Path, folder: Path, threads: int) -> ProjectRun:
    shutil.copytree(built, folder)
    started = time.perf_counter()
    dbt(["run", "--threads", str(threads)], folder)
    wall = time.perf_counter() - started
    results = json.loads((folder / "target" / "run_results.json").read_text(encoding="utf-8"))
    check(results)
    return times(results, threads, wall)


def _span(result: Mapping[str, Any]) -> tuple[datetime, datetime]:
    moments = [datetime.fromisoformat(step[key].rstrip("Z")) for step in result["timing"] for key in _ENDS]
    return min(moments), max(moments)


_ENDS = ("started_at", "completed_at")
