"""The contestants by their names, and the session that they run in."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from pyspark.sql import SparkSession

from benchmarks.contestants.bare import BareSpark, BareSparkRepartitioned
from benchmarks.contestants.contestant import Contestant
from benchmarks.contestants.delta_rs import DeltaRs
from benchmarks.contestants.delta_spark import DeltaSpark, session_settings
from benchmarks.contestants.silt import Silt
from dbt.adapters.silt.session.spark import SessionSettings, open_session

Kind: TypeAlias = type[BareSpark] | type[Silt] | type[DeltaSpark] | type[DeltaRs]

CONTESTANTS: Mapping[str, Kind] = {
    each.name: each for each in (BareSpark, Silt, BareSparkRepartitioned, DeltaSpark, DeltaRs)
}
"""Each contestant with its constructor from a session and a folder; the baseline is the first."""


def names(options: argparse.Namespace) -> list[str]:
    """Returns the contestants in the options, in the order of `CONTESTANTS`."""
    left_out = {DeltaSpark.name: not options.delta_jars, DeltaRs.name: DeltaRs.name not in options.peers}
    return [name for name in CONTESTANTS if not left_out.get(name)]


def contestant(name: str, spark: SparkSession, work: Path) -> Contestant:
    """Returns the contestant with a name; its folder is below `work`."""
    return CONTESTANTS[name](spark, work / name.replace(", ", "_").replace(" ", "_"))


def session(options: argparse.Namespace, with_delta_spark: bool) -> SparkSession:
    """Returns a session with the settings of dbt's sessions."""
    conf = {"spark.driver.memory": options.memory} if options.memory else {}
    if with_delta_spark:
        conf |= session_settings(options.delta_jars)
    return open_session(SessionSettings(master=options.master, spark_conf=conf))


def add_session_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options that `session` reads, and those of the scale."""
    parser.add_argument("--quick", action="store_true", help="small tables: for trying the harness, not for figures")
    parser.add_argument(
        "--delta-jars", type=Path, metavar="FOLDER", help="includes delta-spark, with the jars in this folder"
    )
    parser.add_argument("--master", default="local[*]", help="the Spark master (default: %(default)s)")
    parser.add_argument("--memory", help="the driver's memory, such as 4g (default: half of the machine's)")


def session_arguments(options: argparse.Namespace) -> list[str]:
    """Returns the same options as arguments for another process."""
    given = ["--master", options.master]
    given += ["--quick"] if options.quick else []
    given += ["--delta-jars", str(options.delta_jars)] if options.delta_jars else []
    return given + (["--memory", options.memory] if options.memory else [])
