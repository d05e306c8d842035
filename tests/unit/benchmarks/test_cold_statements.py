"""Cold statements: the processes that are started, and the use of their output."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from benchmarks import entrants, report
from benchmarks.__main__ import parser
from benchmarks.cold.measure import ROUNDS, measure
from benchmarks.harness import CaseResult, Measurement, ResultsDifferError


@dataclass
class Processes:
    """Replaces the processes; each has its own time, and all except `wrong` return the same rows."""

    wrong: str = ""
    started: list[tuple[str, str, tuple[str, ...]]] = field(default_factory=list)

    def run(self, step: str, name: str, arguments: Sequence[str]) -> dict[str, Any]:
        self.started.append((step, name, tuple(arguments)))
        prints = {name: {"rows": 5, "hash_sum": 8 if name == self.wrong else 7}} if "--check" in arguments else {}
        return {"seconds": float(len(self.started)), "prints": prints}


def options(*arguments: str) -> argparse.Namespace:
    return parser().parse_args(["--quick", *arguments])


def test_start_tables_are_created_first_and_then_the_contestants_take_turns(tmp_path: Path) -> None:
    processes = Processes()
    (result,) = measure(tmp_path, options("--case", "append 10 rows"), processes.run)
    case = ("--case", "append 10 rows")
    bare, silt = ("bare Spark", "dbt-silt")
    assert processes.started == [
        ("prepare", bare, case),
        ("prepare", silt, case),
        ("run", bare, (*case, "--check")),
        ("run", silt, (*case, "--check")),
        *[("run", name, case) for _ in range(ROUNDS - 1) for name in (bare, silt)],
    ]
    assert (result.rows, result.has_baseline) == (5, True)
    assert result.measurements == (Measurement(bare, (3.0, 5.0, 7.0)), Measurement(silt, (4.0, 6.0, 8.0)))


def test_a_contestant_that_cannot_run_a_case_has_no_process(tmp_path: Path) -> None:
    processes = Processes()
    asked = options("--case", "vacuum 40 files", "--peers", "delta-rs")
    (result,) = measure(tmp_path, asked, processes.run)
    assert {name for _, name, _ in processes.started} == {"dbt-silt", "delta-rs"}
    assert not result.has_baseline


def test_different_results_raise_an_error_before_any_time_is_shown(tmp_path: Path) -> None:
    with pytest.raises(ResultsDifferError, match="append 10 rows"):
        measure(tmp_path, options("--case", "append 10 rows"), Processes(wrong="dbt-silt").run)


def test_a_process_gets_the_options_of_the_session() -> None:
    arguments = options("--delta-jars", "/jars", "--memory", "3g", "--master", "local[2]")
    expected = ["--master", "local[2]", "--quick", "--delta-jars", "/jars", "--memory", "3g"]
    assert entrants.session_arguments(arguments) == expected
    assert entrants.names(arguments) == ["bare Spark", "dbt-silt", "bare Spark, repartitioned", "delta-spark"]


def test_the_table_shows_warm_next_to_cold() -> None:
    warm = CaseResult("merge", 10, (Measurement("bare Spark", (0.1,)), Measurement("dbt-silt", (0.2,))))
    cold = CaseResult("merge", 10, (Measurement("bare Spark", (0.3,)), Measurement("dbt-silt", (0.9,))))
    console = Console(width=200)
    with console.capture() as printed:
        console.print(report.statements_table([warm], [cold]))
    shown = printed.get()
    assert all(title in shown for title in ("bare Spark, warm", "bare Spark, cold", "dbt-silt, warm", "dbt-silt, cold"))
    line = next(line for line in shown.splitlines() if "merge" in line)
    assert [cell.strip() for cell in line.strip("│").split("│")] == ["merge", "100", "300", "200  2.00x", "900  3.00x"]
