"""Reports the results as tables for people and as JSON for programs."""

from __future__ import annotations

import dataclasses
import datetime
import json
import os
import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks.harness import CaseResult
from benchmarks.long_logs.measure import STEPS, LogResult
from benchmarks.parts.measure import Parts
from benchmarks.projects.breakdown import Breakdown
from benchmarks.projects.small_models import ProjectRun

PACKAGES = ("pyspark", "pyarrow", "dbt-core", "deltalake")


def statements_table(warm: Sequence[CaseResult], cold: Sequence[CaseResult] = ()) -> Table:
    """Returns a line per case: each contestant's median and its ratio to the baseline's, or empty cells.

    Warm is the median in one session that has run the statement before; cold is the tenth statement of a process, on a
    table that the process has not opened yet.
    """
    table = Table(title="Statements: median milliseconds, and times the baseline")
    table.add_column("case", no_wrap=True)
    columns = [
        (kind, {result.case: result for result in results})
        for kind, results in (("warm", warm), ("cold", cold))
        if results
    ]
    every = [result for _, results in columns for result in results.values()]
    names = list(dict.fromkeys(each.contestant for result in every for each in result.measurements))
    for name in names:
        for kind, _ in columns:
            table.add_column(f"{name}, {kind}", justify="right")
    for case in dict.fromkeys(result.case for result in every):
        table.add_row(case, *(_cell(results.get(case), name) for name in names for _, results in columns))
    return table


def _cell(result: CaseResult | None, contestant: str) -> str:
    measured = None if result is None else result.of(contestant)
    if result is None or measured is None:
        return ""
    ratio = None if result.measurements[0] is measured else result.ratio(contestant)
    return milliseconds(measured.median) + ("" if ratio is None else f"  {ratio:.2f}x")


def projects_table(runs: Sequence[ProjectRun]) -> Table:
    """Returns a line per run of dbt on the project of small models."""
    table = Table(title="dbt: seconds, second run of a project of small incremental merge models")
    for column in ("models", "threads", "first model", "steady, per model", "whole process"):
        table.add_column(column, justify="right")
    for run in runs:
        seconds = (run.first_model, run.steady_per_model, run.wall)
        table.add_row(str(run.models), str(run.threads), *(f"{each:.2f}" for each in seconds))
    return table


def cold_table(result: CaseResult) -> Table:
    """Returns the times of the cold build and the bare start."""
    table = Table(title="Cold: seconds, from a new process to its end")
    for measurement in result.measurements:
        table.add_column(measurement.contestant, justify="right")
    table.add_column("difference", justify="right", style="bold")
    start, build = (measurement.median for measurement in result.measurements)
    table.add_row(f"{start:.1f}", f"{build:.1f}", f"{build - start:.1f}")
    return table


def breakdown_table(results: Sequence[Breakdown]) -> Table:
    """Returns a column per command: its phases, work in the background, and processor time."""
    table = Table(title="Cold: where the median seconds of a command go")
    table.add_column("phase", no_wrap=True)
    for result in results:
        table.add_column(result.command, justify="right")
    parts = ("phases", "beside", "processor")
    titles = {"beside": "beside: ", "processor": "processor: "}
    for part in parts:
        for name in getattr(results[0], part):
            cells = (getattr(result, part)[name] for result in results)
            table.add_row(titles.get(part, "") + name, *("" if each is None else f"{each:.2f}" for each in cells))
        table.add_section()
    return table


def logs_table(results: Sequence[LogResult]) -> Table:
    """Returns a line per table and step: milliseconds of dbt-silt and deltalake, and ratio; then peak memory."""
    table = Table(title="Logs: median milliseconds, each in a new process, and times deltalake")
    table.add_column("table", no_wrap=True)
    table.add_column("step")
    for column in ("dbt-silt", "deltalake", "ratio"):
        table.add_column(column, justify="right")
    for result in results:
        for step in STEPS:
            times = (milliseconds(result.seconds[name][step]) for name in ("dbt-silt", "deltalake"))
            table.add_row(result.table, step, *times, f"{result.ratio(step):.2f}")
        peaks = (f"{result.peak_mib[name]:,.0f} MiB" for name in ("dbt-silt", "deltalake"))
        table.add_row(result.table, "peak memory", *peaks, "", end_section=True)
    return table


def as_json(
    cases: Sequence[CaseResult],
    runs: Sequence[ProjectRun],
    cold: CaseResult | None,
    logs: Sequence[LogResult] = (),
    breakdowns: Sequence[Breakdown] = (),
    parts: Sequence[Parts] = (),
    cold_cases: Sequence[CaseResult] = (),
) -> dict[str, Any]:
    """Returns all figures, with the machine and the versions."""
    return {
        "machine": {"cpus": os.cpu_count(), "platform": platform.platform(), "python": platform.python_version()},
        "packages": {name: version(name) for name in PACKAGES},
        "statements": [_case_json(case) for case in cases],
        "cold statements": [_case_json(case) for case in cold_cases],
        "parts": [dataclasses.asdict(each) for each in parts],
        "projects": [dataclasses.asdict(run) for run in runs],
        "cold": _case_json(cold) if cold else None,
        "breakdowns": [dataclasses.asdict(each) for each in breakdowns],
        "logs": [dataclasses.asdict(result) for result in logs],
    }


def write(results: dict[str, Any], folder: Path, now: datetime.datetime) -> Path:
    """Writes the results to a file named after the time, and returns its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{now:%Y-%m-%dT%H-%M-%S}.json"
    path.write_text(json.dumps(results, indent=2), encoding="utf-8")
    return path


def milliseconds(seconds: float) -> str:
    """Returns seconds as whole milliseconds."""
    return f"{seconds * 1000:,.0f}"


def _case_json(result: CaseResult) -> dict[str, Any]:
    measured = {
        each.contestant: {
            "median": each.median,
            "worst": each.worst,
            "ratio": result.ratio(each.contestant),
            "seconds": each.seconds,
        }
        for each in result.measurements
    }
    return {"case": result.case, "rows": result.rows, "contestants": measured}
