"""Runs the benchmarks and prints their tables; `--help` lists the options."""

from __future__ import annotations

import argparse
import datetime
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from benchmarks import entrants, report
from benchmarks.cases import all_cases
from benchmarks.cold import measure as cold_statements
from benchmarks.data import FULL, QUICK
from benchmarks.harness import CaseResult, ResultsDifferError, chosen, run_case
from benchmarks.long_logs import measure
from benchmarks.parts import measure as parts_of_statements
from benchmarks.parts.measure import Parts
from benchmarks.parts.tables import calls_table, parts_table, summary_table
from benchmarks.projects import breakdown, cold_build, small_models
from dbt.adapters.silt.session.spark import stop_spark

WIDTH = 180
"""The width of the tables in characters if the output is not a terminal."""

RESULTS = Path(__file__).resolve().parent / "results"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the chosen benchmarks; returns 0 if all contestants had equal results."""
    options = parser().parse_args(arguments)
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    work = options.folder / "work"
    shutil.rmtree(work, ignore_errors=True)
    cases, cold_cases, parts, runs, cold, logs, breakdowns = [], [], [], [], None, [], []
    try:
        if options.only in (None, "logs"):
            logs = measure.measure(work / "logs", measure.QUICK_TABLES if options.quick else measure.TABLES)
            console.print(report.logs_table(logs))
        if options.only in (None, "statements"):
            cases = run_statements(options, work, console)
        if options.only == "cold" or (options.cold and options.only in (None, "statements")):
            cold_cases = cold_statements.measure(work / "cold", options)
        if cases or cold_cases:
            console.print(report.statements_table(cases, cold_cases))
        if options.only in (None, "parts"):
            parts = run_parts(options, work)
            for each in parts:
                console.print(parts_table(each), calls_table(each))
            console.print(summary_table(parts))
        if options.only in (None, "dbt"):
            runs = small_models.measure(work / "small_models")
            console.print(report.projects_table(runs))
            cold = cold_build.measure(work / "cold_build")
            console.print(report.cold_table(cold))
        if options.only in (None, "dbt", "breakdown"):
            breakdowns = breakdown.measure(work / "breakdown")
            console.print(report.breakdown_table(breakdowns))
    except ResultsDifferError as error:
        console.print(f"[bold red]{error}")
        return 1
    finally:
        shutil.rmtree(work, ignore_errors=True)
    written = report.write(
        report.as_json(cases, runs, cold, logs, breakdowns, parts, cold_cases), options.folder, datetime.datetime.now()
    )
    console.print(f"Written to {written}")
    return 0


def parser() -> argparse.ArgumentParser:
    """Returns the parser of the options."""
    options = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Times the statements of dbt-silt and runs of dbt."
    )
    only = ("logs", "statements", "cold", "parts", "dbt", "breakdown")
    options.add_argument(
        "--only",
        choices=only,
        help="only this; `parts`: where a small statement's time goes, `breakdown`: where a cold command's goes",
    )
    options.add_argument("--case", action="append", default=[], metavar="NAME", help="only this case of statements")
    options.add_argument(
        "--peers", nargs="+", default=[], choices=("delta-rs",), help="contestants other than dbt-silt"
    )
    options.add_argument("--cold", action="store_true", help="also each statement as the tenth of a new process")
    entrants.add_session_options(options)
    options.add_argument("--folder", type=Path, default=RESULTS, help="for tables and results (default: %(default)s)")
    return options


def run_statements(options: argparse.Namespace, work: Path, console: Console) -> list[CaseResult]:
    """Runs all statement cases in one session."""
    scale = QUICK if options.quick else FULL
    cases = chosen(all_cases(scale), options.case)
    spark = entrants.session(options, with_delta_spark=options.delta_jars is not None)
    try:
        contestants = [entrants.contestant(name, spark, work / "warm") for name in entrants.names(options)]
        results = []
        for case in cases:
            with console.status(case.name):
                results.append(run_case(case, contestants))
        return results
    finally:
        stop_spark()


def run_parts(options: argparse.Namespace, work: Path) -> list[Parts]:
    """Measures the parts of the time of small statements."""
    try:
        spark = entrants.session(options, with_delta_spark=False)
        scale = QUICK if options.quick else FULL
        cases = chosen(all_cases(scale), options.case) if options.case else parts_of_statements.small_statements(scale)
        return parts_of_statements.measure(spark, work / "parts", cases)
    finally:
        stop_spark()


if __name__ == "__main__":
    sys.exit(main())
