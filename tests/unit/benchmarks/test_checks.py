"""The benchmark of the checks: both contestants do the same work, and only the baseline omits the checks."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from benchmarks.checks.__main__ import CASES, Checked, Unchecked
from benchmarks.data import Rows
from benchmarks.harness import run_case
from dbt.adapters.silt.engine.kernel.errors import DataFileChangedError


@pytest.fixture
def contestants(spark: SparkSession, tmp_path: Path) -> list[Checked]:
    return [each(spark, tmp_path / each.name) for each in (Unchecked, Checked)]


@pytest.mark.long
@pytest.mark.parametrize("case", CASES)
def test_both_contestants_return_the_same_rows(case: type, contestants: list[Checked]) -> None:
    measured = run_case(case(3), contestants)
    assert [each.contestant for each in measured.measurements] == ["without the checks", "with the checks"]
    assert measured.rows > 0


@pytest.mark.long
def test_only_the_baseline_reads_a_file_that_differs_from_the_log(contestants: list[Checked]) -> None:
    without, with_checks = contestants
    for each in contestants:
        each.create("t", Rows(0, 10))
        (file,) = each.folder_of("t").rglob("*.parquet")
        with file.open("ab") as opened:
            opened.write(file.read_bytes())
    assert without.query("select count(id) from bench.t where id >= 0").collect()[0][0] == 10
    with pytest.raises(DataFileChangedError):
        with_checks.query("select count(id) from bench.t where id >= 0").collect()
