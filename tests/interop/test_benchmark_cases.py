"""Every case of the benchmarks does the same for each contestant."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from benchmarks.cases import all_cases
from benchmarks.contestants.bare import BareSpark
from benchmarks.contestants.delta_rs import DeltaRs
from benchmarks.contestants.silt import Silt
from benchmarks.data import Scale
from benchmarks.harness import Case, run_case

TINY = Scale(large=4_000, changed=200, small=20, appended=4, parts=4)
ROWS = {
    "Create": TINY.large,
    "SmallAppends": TINY.small + 2 * TINY.appended,
    "SmallMerge": TINY.small + TINY.small // 2,
    "LargeMerge": TINY.large + TINY.changed // 2,
    "ScatteredMerge": TINY.large + TINY.changed // 2,
    "InsertOnlyMerge": TINY.large + TINY.changed // 2,
    "DeleteRange": TINY.large - TINY.changed,
    "PointQuery": 1,
}


@pytest.mark.parametrize("case", all_cases(TINY), ids=lambda case: type(case).__name__)
def test_bare_spark_silt_and_delta_rs_leave_the_same_rows(case: Case, spark: SparkSession, tmp_path: Path) -> None:
    case.warmups, case.repetitions = 0, 2
    entrants = [BareSpark(spark, tmp_path / "bare"), Silt(spark, tmp_path / "silt"), DeltaRs(spark, tmp_path / "rs")]
    result = run_case(case, entrants)
    assert result.rows == ROWS[type(case).__name__]
    assert [len(measurement.seconds) for measurement in result.measurements] == [2, 2, 2]
