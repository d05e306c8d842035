"""Runs the benchmarks and prints their tables; `--help` tells the options."""

from __future__ import annotations

import argparse
import datetime
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession
from rich.console import Console

from benchmarks import report
from benchmarks.cases import all_cases
from benchmarks.contestants.bare import BareSpark
from benchmarks.contestants.contestant import Contestant
from benchmarks.contestants.delta_rs import DeltaRs
from benchmarks.contestants.delta_spark import DeltaSpark, session_settings
from benchmarks.contestants.silt import Silt
from benchmarks.data import FULL, QUICK
from benchmarks.harness import CaseResult, ResultsDifferError, chosen, run_case
from benchmarks.long_logs import measure
from benchmarks.projects import cold_build, small_models
from dbt.adapters.silt.session.spark import SessionSettings, open_session, stop_spark

RESULTS = Path(__file__).resolve().parent / "results"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs what was asked for; 0 if all contestants came to equal results."""
    options = parser().parse_args(arguments)
    console = Console()
    work = options.folder / "work"
    shutil.rmtree(work, ignore_errors=True)
    cases, runs, cold, logs = [], [], None, []
    try:
        if options.only in (None, "logs"):
            logs = measure.measure(work / "logs", measure.QUICK_TABLES if options.quick else measure.TABLES)
            console.print(report.logs_table(logs))
        if options.only in (None, "statements"):
            cases = run_statements(options, work, console)
            console.print(report.statements_table(cases))
        if options.only in (None, "dbt"):
            runs = small_models.measure(work / "small_models")
            console.print(report.projects_table(runs))
            cold = cold_build.measure(work / "cold_build")
            console.print(report.cold_table(cold))
    except ResultsDifferError as error:
        console.print(f"[bold red]{error}")
        return 1
    finally:
        shutil.rmtree(work, ignore_errors=True)
    written = report.write(report.as_json(cases, runs, cold, logs), options.folder, datetime.datetime.now())
    console.print(f"Written to {written}")
    return 0


def parser() -> argparse.ArgumentParser:
    """The options."""
    options = argparse.ArgumentParser(prog="python -m benchmarks", description="What our statements and dbt runs cost.")
    options.add_argument("--quick", action="store_true", help="small tables: to try the harness, not to quote")
    options.add_argument("--only", choices=("logs", "statements", "dbt"), help="only one of the three parts")
    options.add_argument("--case", action="append", default=[], metavar="NAME", help="only this case of statements")
    options.add_argument("--peers", nargs="+", default=[], choices=("delta-rs",), help="contestants next to dbt-silt")
    options.add_argument(
        "--delta-jars", type=Path, metavar="FOLDER", help="delta-spark takes part, with the jars there"
    )
    options.add_argument("--master", default="local[*]", help="the Spark master (default: %(default)s)")
    options.add_argument("--memory", help="the driver's memory, such as 4g (default: half of the machine's)")
    options.add_argument("--folder", type=Path, default=RESULTS, help="for tables and results (default: %(default)s)")
    return options


def run_statements(options: argparse.Namespace, work: Path, console: Console) -> list[CaseResult]:
    """Runs the cases of statements, all in one session."""
    scale = QUICK if options.quick else FULL
    cases = chosen(all_cases(scale), options.case)
    spark = session(options)
    try:
        contestants = entrants(options, spark, work)
        results = []
        for case in cases:
            with console.status(case.name):
                results.append(run_case(case, contestants))
        return results
    finally:
        stop_spark()


def session(options: argparse.Namespace) -> SparkSession:
    """The session that all contestants share, set up as dbt's are."""
    conf = {"spark.driver.memory": options.memory} if options.memory else {}
    if options.delta_jars:
        conf |= session_settings(options.delta_jars)
    return open_session(SessionSettings(master=options.master, spark_conf=conf))


def entrants(options: argparse.Namespace, spark: SparkSession, work: Path) -> list[Contestant]:
    """The contestants, the floor first."""
    contestants: list[Contestant] = [BareSpark(spark, work / "bare"), Silt(spark, work / "silt")]
    if options.delta_jars:
        contestants.append(DeltaSpark(spark, work / "delta_spark"))
    if "delta-rs" in options.peers:
        contestants.append(DeltaRs(spark, work / "delta_rs"))
    return contestants


if __name__ == "__main__":
    sys.exit(main())
