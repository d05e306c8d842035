"""Long operations report their progress: each statement calls the warehouse's `progress`."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.warehouse import Warehouse, WarehouseSettings
from tests.unit.engine.house import House

Said = list[tuple[str, int, int | None]]


@pytest.fixture
def said() -> Said:
    return []


@pytest.fixture
def watched(house: House, said: Said) -> Warehouse:
    """A warehouse with a table `t` of four files."""
    seen = house.warehouse.for_session(
        house.warehouse.spark, progress=lambda what, done, total=None: said.append((what, done, total))
    )
    seen.sql("create table main.t (id bigint)")
    for value in range(4):
        seen.sql(f"insert into main.t values ({value})")
    return seen


def counts(what: str, total: int) -> Said:
    return [(what, done, total) for done in range(1, total + 1)]


@pytest.mark.connect
def test_optimize_reports_its_bins(watched: Warehouse, said: Said) -> None:
    watched.sql("optimize main.t")
    assert said == [("bins written", 0, 1), ("bins written", 1, 1)]


def test_vacuum_reports_listed_folders_and_deleted_files(watched: Warehouse, said: Said) -> None:
    watched.spark.conf.set("silt.retentionDurationCheck.enabled", "false")
    watched.sql("delete from main.t")
    watched.sql("vacuum main.t retain 0 hours")
    listed = [done for what, done, total in said if (what, total) == ("folders listed", None)]
    assert listed == list(range(1, len(listed) + 1)) != []
    assert [each for each in said if each[0] != "folders listed"] == counts("files deleted", 4)


def test_convert_reports_the_footers_that_it_reads(house: House, watched: Warehouse, said: Said) -> None:
    folder = f"{house.root}/files"
    watched.spark.range(0, 30, 1, 3).write.parquet(folder)
    watched.sql(f"convert to delta parquet.`{folder}`")
    assert said == [*counts("schemas read", 3), *counts("footers read", 3)]


def test_a_deep_clone_reports_copied_files_and_a_shallow_clone_reports_none(watched: Warehouse, said: Said) -> None:
    watched.sql("create table main.shallow shallow clone main.t")
    assert said == []
    watched.sql("create table main.deep deep clone main.t")
    assert said == counts("files copied", 4)


def test_sessions_without_their_own_progress_use_that_of_the_settings(spark: SparkSession, house: House) -> None:
    heard: list[str] = []
    settings = WarehouseSettings(progress=lambda what, _done, _total=None: heard.append(what))
    opened = Warehouse(spark, str(house.root), settings=settings)
    opened.sql("create table main.one as select 1 as id")
    for position, seen in enumerate((opened, opened.for_session(spark))):
        seen.sql(f"create table main.clone{position} deep clone main.one")
    assert heard == ["files copied"] * 2
