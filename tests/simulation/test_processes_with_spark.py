"""Writers of one table with Spark, at the same time. `make processes` runs them for longer."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.warehouse import Warehouse, WarehouseSettings
from tests.simulation.spark_processes import create, run_processes, run_threads


@pytest.fixture
def warehouse(spark: SparkSession, tmp_path: Path) -> Warehouse:
    settings = WarehouseSettings(max_commit_attempts=1000, statement_attempts=50)
    return Warehouse(spark.newSession(), str(tmp_path / "warehouse"), settings=settings)


def test_statements_of_threads_that_share_a_session_are_applied_once(warehouse: Warehouse, tmp_path: Path) -> None:
    outcome = run_threads(warehouse, tmp_path, writers=4, statements=4)
    assert outcome.attempts >= outcome.commits == 16
    assert outcome.upkeeps


@pytest.mark.long
def test_statements_of_killed_and_restarted_processes_are_applied_once(warehouse: Warehouse, tmp_path: Path) -> None:
    create(warehouse)
    outcome = run_processes(tmp_path, writers=2, statements=9, kills=2)
    assert outcome.kills == 2
    assert outcome.commits == 18
    assert outcome.upkeeps
