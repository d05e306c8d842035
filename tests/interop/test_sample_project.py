"""The sample project, built month by month: another reader finds the same rows as dbt-silt in every table."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dbt.cli.main import dbtRunner
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine import Warehouse
from sample_project import land

pytestmark = pytest.mark.xdist_group("sample_project")

SAMPLE_PROJECT = Path(land.__file__).parent
LEFT_BY_RUNS = shutil.ignore_patterns("landing", "warehouse", "target", "logs", "__pycache__", ".user.yml")
TABLES = (
    "airlines",
    "airports",
    "carriers",
    "daily_summary",
    "flights",
    "planes_history",
    "route_performance",
    "weather_observations",
)


@dataclass(frozen=True)
class Built:
    """The result of a build, and each table's rows after it, for both readers."""

    responses: Mapping[str, Mapping[str, Any]]
    ours: Mapping[str, pa.Table]
    theirs: Mapping[str, pa.Table]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sample") / "project"
    shutil.copytree(SAMPLE_PROJECT, folder, ignore=LEFT_BY_RUNS)
    return folder


@pytest.fixture(scope="module")
def january(project: Path, spark: SparkSession) -> Built:
    land.land(1, project / "landing")
    return build(project, "january", spark)


@pytest.fixture(scope="module")
def february(january: Built, project: Path, spark: SparkSession) -> Built:
    land.land(2, project / "landing")
    return build(project, "february", spark)


@pytest.fixture(scope="module")
def february_again(february: Built, project: Path, spark: SparkSession) -> Built:
    return build(project, "february", spark)


@pytest.mark.parametrize("month", ["january", pytest.param("february", marks=pytest.mark.long)])
def test_both_readers_see_the_same_rows_in_every_table(month: str, request: pytest.FixtureRequest) -> None:
    built: Built = request.getfixturevalue(month)
    assert all(built.ours[name].num_rows for name in TABLES)
    assert [name for name in TABLES if not built.ours[name].equals(built.theirs[name])] == []


@pytest.mark.long
def test_the_merge_keeps_the_newest_report_of_every_flight(february: Built, project: Path) -> None:
    reports = [pq.read_table(path) for path in sorted((project / "landing" / "flights").iterdir())]
    newest = {}
    for row in pa.concat_tables(reports).to_pylist():
        newest[row["time_hour"], row["carrier"], row["flight"]] = (row["arr_delay"], row["landed_at"])
    newest_reports = {
        (row["scheduled_hour"], row["carrier"], row["flight_number"]): (row["arr_delay"], row["landed_at"])
        for row in february.theirs["flights"].to_pylist()
    }
    assert len(newest_reports) == february.theirs["flights"].num_rows
    assert newest_reports == newest


@pytest.mark.long
def test_the_snapshot_closes_the_rows_of_changed_and_removed_planes(february: Built, project: Path) -> None:
    january, newest = (
        {row["tailnum"]: row["seats"] for row in pq.read_table(path).to_pylist()}
        for path in sorted((project / "landing" / "planes").iterdir())
    )
    history = february.theirs["planes_history"].to_pylist()
    current = {row["tailnum"]: row["seats"] for row in history if row["dbt_valid_to"] is None}
    closed = {row["tailnum"] for row in history if row["dbt_valid_to"] is not None}
    assert current == newest
    assert closed == {tailnum for tailnum, seats in january.items() if newest.get(tailnum) != seats}


@pytest.mark.long
def test_repeating_the_run_skips_every_table_and_changes_no_row(february: Built, february_again: Built) -> None:
    assert {name: february_again.responses[name]["skipped"] for name in TABLES} == dict.fromkeys(TABLES, True)
    versions = [
        {name: built.responses[name]["table_version"] for name in TABLES} for built in (february, february_again)
    ]
    assert versions[0] == versions[1]
    assert [name for name in TABLES if not february_again.ours[name].equals(february.ours[name])] == []


def build(project: Path, run_id: str, spark: SparkSession) -> Built:
    """Runs `dbt build`, and reads every table."""
    profiles = project / "profiles.yml"
    if "master" not in profiles.read_text():  # a process has one Spark
        profiles.write_text(profiles.read_text() + f"      master: {spark.conf.get('spark.master')}\n")
    folders = ["--project-dir", str(project), "--profiles-dir", str(project)]
    outcome = dbtRunner().invoke(
        ["--quiet", "--log-level-file", "none", "build", "--vars", json.dumps({"silt_run_id": run_id}), *folders]
    )
    assert outcome.success, outcome.exception or [result.message for result in outcome.result]  # type: ignore[union-attr]
    responses = {result.node.name: result.adapter_response for result in outcome.result}  # type: ignore[union-attr]
    warehouse = Warehouse(spark, str(project / "warehouse"))
    ours = {name: in_order(warehouse.table(f"main.{name}").toArrow()) for name in TABLES}
    theirs = {name: read_with_delta_rs(project / "warehouse" / "main" / name) for name in TABLES}
    return Built(responses, ours, {name: in_order(rows.cast(ours[name].schema)) for name, rows in theirs.items()})


def read_with_delta_rs(folder: Path) -> pa.Table:
    """Returns all rows of a table, read by DataFusion."""
    return pa.table(QueryBuilder().register("read", DeltaTable(folder)).execute("select * from read"))


def in_order(rows: pa.Table) -> pa.Table:
    """Returns the same rows in an order that depends on them alone, in one chunk per column."""
    return rows.sort_by([(name, "ascending") for name in rows.column_names]).combine_chunks()
