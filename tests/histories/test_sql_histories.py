"""Histories of SQL statements, from clients that share one Spark, have no anomaly."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import pytest
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.commands import commit
from tests.histories.checker import check, names
from tests.histories.history import Answer
from tests.histories.sql_clients import history_of_claims, history_of_threads, sql_workload


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


@pytest.mark.parametrize("chance", range(4))
def test_of_two_transactions_that_find_no_row_and_insert_one_is_refused(
    spark: SparkSession, tmp_path: Path, chance: int
) -> None:
    history = history_of_claims(spark, tmp_path, chance)
    assert check(history) == []
    assert sorted(each.answer.value for each in history.transactions[:2]) == [Answer.FAILED.value, Answer.OK.value]


def test_the_checker_finds_that_a_statement_without_changes_has_read_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    with mock.patch.object(commit, "note_reads", lambda *_: None):
        assert names(check(history_of_claims(spark, tmp_path, 0))) == {"G2"}
