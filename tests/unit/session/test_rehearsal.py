"""The statements that a class-data archive is created from."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from dbt.adapters.silt.session.class_archive import WAREHOUSE, rehearse


def test_every_rehearsed_statement_works(spark: SparkSession, tmp_path: Path) -> None:
    rehearse(spark.newSession(), str(tmp_path))
    assert [each.name for each in tmp_path.iterdir()] == [WAREHOUSE]
