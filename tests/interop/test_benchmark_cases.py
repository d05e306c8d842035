"""Every case of the benchmarks has the same result for each contestant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from benchmarks import entrants
from benchmarks.cases import all_cases
from benchmarks.cases.append import SmallAppends
from benchmarks.cases.create import Create, ManyPartitions
from benchmarks.cases.delete import DeletePartition, DeleteRange, DeleteScattered, UpdateScattered
from benchmarks.cases.find import PointQuery
from benchmarks.cases.maintenance import Optimize
from benchmarks.cases.merge import ScatteredMerge, SmallMerge
from benchmarks.cases.table_case import TableCase
from benchmarks.cold import process
from benchmarks.contestants.bare import BareSpark, BareSparkRepartitioned
from benchmarks.contestants.contestant import Contestant, Need
from benchmarks.contestants.delta_rs import DeltaRs
from benchmarks.contestants.silt import Silt
from benchmarks.data import VECTORS, Scale
from benchmarks.harness import Case, run_case
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot

TINY = Scale(large=4_000, changed=200, small=20, appended=4, parts=4, partitioned=40, fragments=8, appends=2, extra=9)
TOUCHED = TINY.large + TINY.changed // 2
LEFT = TINY.large - TINY.large // 100
ROWS = {
    "Create": TINY.large,
    "SmallAppends": TINY.small + 2 * TINY.appended,
    "SmallMerge": TINY.small + TINY.small // 2,
    "LargeMerge": TOUCHED,
    "ScatteredMerge": TOUCHED,
    "InsertOnlyMerge": TOUCHED,
    "DeleteRange": TINY.large - TINY.changed,
    "DeleteScattered": LEFT,
    "UpdateScattered": TINY.large,
    "ReplaceByKey": TOUCHED,
    "PointQuery": 1,
    "FullScan": 1,
    "FullScanOfDeletedRows": 1,
    "ThreadedAppends": TINY.small + 8 * TINY.appended,
    "DeletePartition": TINY.partitioned - 1,
    "ManyPartitions": TINY.partitioned,
    "Optimize": TINY.partitioned,
    "Vacuum": TINY.partitioned,
    "WideMerge": 105,
    "WideUpdate": 100,
}
BARE, SILT, RS = "bare Spark", "dbt-silt", "delta-rs"


@pytest.fixture(scope="module")
def contestants(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> list[Contestant]:
    folder = tmp_path_factory.mktemp("contestants")
    return [
        BareSpark(spark, folder / "bare"),
        Silt(spark, folder / "silt"),
        BareSparkRepartitioned(spark, folder / "bare_repartitioned"),
        DeltaRs(spark, folder / "rs"),
    ]


def taking_part(case: Case) -> list[str]:
    """Returns the contestants of the case."""
    if Need.DELETION_VECTORS in case.needs:
        return [BARE, SILT]
    if isinstance(case, ManyPartitions):
        return [BARE, SILT, "bare Spark, repartitioned", RS]
    return [SILT, RS] if isinstance(case, DeletePartition | Optimize) else [BARE, SILT, RS]


# The benchmark compares the rows itself; the gate tries a case of each kind of statement.
IN_THE_GATE = (Create, SmallMerge, DeleteScattered, PointQuery, Optimize)


def cases() -> list[Any]:
    """Every case, marked `long` if the gate does not try it."""
    return [
        pytest.param(case, id=case.name, marks=() if type(case) in IN_THE_GATE else pytest.mark.long)
        for case in all_cases(TINY)
    ]


@pytest.mark.parametrize("case", cases())
def test_all_contestants_of_a_case_leave_the_same_rows(case: Case, contestants: list[Contestant]) -> None:
    case.warmups, case.repetitions = 0, 2 if isinstance(case, SmallAppends) else 1
    result = run_case(case, contestants)
    assert result.rows == ROWS[type(case).__name__]
    assert [each.contestant for each in result.measurements] == taking_part(case)
    assert result.has_baseline == (BARE in taking_part(case))


def snapshot_of(silt: Contestant, case: TableCase) -> Snapshot:
    assert isinstance(silt, Silt)
    return silt.snapshot(case.table(1))


@pytest.mark.parametrize("kind", [DeleteRange, UpdateScattered, ScatteredMerge])
def test_dbt_silt_rewrites_no_data_file_in_the_deletion_vector_cases(kind: type, contestants: list[Contestant]) -> None:
    case, silt = kind(TINY, VECTORS), contestants[1]
    case.prepare(silt)
    case.before(silt, 1)
    before = {add.path for add in snapshot_of(silt, case).add_files()}
    case.work(silt, 1)
    after = {add.path for add in snapshot_of(silt, case).add_files() if add.deletion_vector is not None}
    case.finish(silt, 1)
    assert after
    assert after <= before


@pytest.mark.parametrize("name", [BARE, SILT])
def test_another_process_finds_the_start_table_and_runs_the_case_after_nine_statements(
    name: str, spark: SparkSession, tmp_path: Path
) -> None:
    case = DeleteRange(TINY)
    case.prepare(entrants.contestant(name, spark, tmp_path))
    later = entrants.contestant(name, spark, tmp_path)
    process.nine_statements(later)
    found = process.run(case, later, check=True)
    assert found["seconds"] > 0
    assert found["prints"][name]["rows"] == TINY.large - TINY.changed
    assert not later.has("earlier")
