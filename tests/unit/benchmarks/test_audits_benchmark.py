"""The benchmark of audits appends the same rows with and without audits."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.audits.__main__ import appends
from dbt.adapters.silt.engine.warehouse import Warehouse


def test_audited_and_plain_appends_are_timed(spark: SparkSession, tmp_path: Path) -> None:
    house = Warehouse(spark.newSession(), str(tmp_path))
    without, with_audits = appends(house, 1000, 1)
    assert without > 0
    assert with_audits > 0
    assert house.sql("select count(*) from audited").first()[0] == 1030  # type: ignore[index]
