"""Histories of SQL statements, from clients that share one Spark, have no anomaly."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.histories.checker import check
from tests.histories.sql_clients import history_of_threads, sql_workload


@pytest.mark.parametrize("number", [0, pytest.param(1, marks=pytest.mark.long)])
def test_statements_of_a_few_clients_have_no_anomaly(
    spark: SparkSession, tmp_path: Path, seed: int, number: int
) -> None:
    history = history_of_threads(spark, tmp_path, sql_workload(seed + number, clients=3, length=12))
    assert any(each.written and each.reads for each in history.transactions)
    assert check(history) == [], f"seed {seed + number}"


@pytest.mark.long
@pytest.mark.parametrize("number", range(6))
def test_statements_of_more_clients_have_no_anomaly(
    spark: SparkSession, tmp_path: Path, seed: int, number: int
) -> None:
    history = history_of_threads(spark, tmp_path, sql_workload(seed + number, clients=4, length=60, tables=3))
    assert check(history) == [], f"seed {seed + number}"
