"""The benchmark of logs, on small logs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from benchmarks import report
from benchmarks.harness import ResultsDifferError
from benchmarks.long_logs import contestant, measure
from benchmarks.long_logs.__main__ import compare, ratios
from benchmarks.long_logs.tables import LogTable


@pytest.mark.parametrize("table", measure.QUICK_TABLES, ids=lambda table: table.name)
def test_both_contestants_return_the_same_answers(table: LogTable, tmp_path: Path) -> None:
    (result,) = measure.measure(tmp_path, [table], contestant.run)
    assert set(result.seconds) == {"dbt-silt", "deltalake"}
    assert all(result.ratio(step) > 0 for step in measure.STEPS)


def test_a_wrong_answer_raises_an_error_that_names_the_contestant(tmp_path: Path) -> None:
    def run(name: str, folder: Path, key: int) -> dict[str, Any]:
        found = contestant.run(name, folder, key)
        return {**found, "answers": {**found["answers"], "prune": []}} if name == "dbt-silt" else found

    with pytest.raises(ResultsDifferError, match="50 commits: dbt-silt answered"):
        measure.measure(tmp_path, measure.QUICK_TABLES[1:], run)


def test_two_versions_of_the_package_return_the_same_answers_each_by_its_own_source(tmp_path: Path) -> None:
    results = compare("HEAD", tmp_path, quick=True)
    assert all(ratio > 0 for ratio in ratios(results, "HEAD").values())
    assert (tmp_path / "source" / "dbt" / "adapters" / "silt").is_dir()


def test_the_table_of_a_report_has_a_line_for_each_step() -> None:
    seconds = dict.fromkeys(measure.STEPS, 0.5)
    both = {"dbt-silt": seconds, "deltalake": seconds}
    result = measure.LogResult("big", both, both, {"dbt-silt": 1, "deltalake": 2})
    console = Console(record=True, width=120)
    console.print(report.logs_table([result]))
    text = console.export_text()
    assert all(step in text for step in (*measure.STEPS, "peak memory", "1.00"))
