"""The benchmark of differences compares the same rows by each engine."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from benchmarks.differences import __main__ as benchmark


def test_each_engine_finds_the_changed_rows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(benchmark, "_spark", lambda: spark)
    found = benchmark.compared(benchmark.written(tmp_path / "t", 100, 5, 20, 2), 20)
    assert [files for _, _, files in found] == [4, 4, 10, 10]


def test_a_comparison_that_finds_other_rows_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="silt diff by the key finds 20 new"):
        benchmark.compared(benchmark.written(tmp_path / "t", 100, 5, 20, 2), 21)
