"""The parts of the benchmarks that need no Spark."""

from __future__ import annotations

import datetime
import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks import report
from benchmarks.cases import all_cases
from benchmarks.cases.create import ManyPartitions
from benchmarks.cases.delete import DeletePartition, DeleteRange
from benchmarks.content import Fingerprint
from benchmarks.contestants.bare import BareSpark, BareSparkRepartitioned
from benchmarks.contestants.contestant import Need
from benchmarks.contestants.delta_spark import session_settings
from benchmarks.data import FULL, QUICK, Scale, short
from benchmarks.harness import CaseResult, Measurement, ResultsDifferError, agreed, chosen, entrants_of
from benchmarks.projects import small_models

MEASURED = CaseResult(
    "merge", 10, (Measurement("bare Spark", (0.2, 0.1, 0.9)), Measurement("dbt-silt", (0.5, 0.3, 0.1)))
)


def test_the_ratio_compares_medians_with_the_first_contestant() -> None:
    assert MEASURED.ratio("bare Spark") == 1
    assert MEASURED.ratio("dbt-silt") == pytest.approx(1.5)
    assert MEASURED.measurements[0].worst == 0.9


def test_equal_results_share_a_fingerprint() -> None:
    assert agreed("merge", {"a": Fingerprint(2, 7), "b": Fingerprint(2, 7)}) == Fingerprint(2, 7)


@pytest.mark.parametrize("other", [Fingerprint(2, 8), Fingerprint(3, 7)])
def test_different_results_raise_an_error_that_names_the_case_and_both_contestants(other: Fingerprint) -> None:
    with pytest.raises(ResultsDifferError, match=r"merge.*first.*second"):
        agreed("merge", {"first": Fingerprint(2, 7), "second": other})


def test_a_case_is_chosen_by_its_name() -> None:
    cases = all_cases(QUICK)
    assert chosen(cases, []) == cases
    assert chosen(cases, [cases[2].name]) == [cases[2]]


def test_an_unknown_case_raises_an_error_that_lists_the_known_cases() -> None:
    with pytest.raises(ValueError, match=r"no case mrege; there are: create"):
        chosen(all_cases(QUICK), ["mrege"])


@pytest.mark.parametrize("scale", [FULL, QUICK])
def test_half_of_the_newest_rows_are_in_the_large_table(scale: Scale) -> None:
    assert scale.large - scale.newest.low == scale.newest.high - scale.large == scale.changed // 2


@pytest.mark.parametrize("scale", [FULL, QUICK])
def test_the_deleted_range_lies_inside_one_file(scale: Scale) -> None:
    low, high = scale.middle
    rows_of_a_file = scale.large // scale.parts
    assert low < high
    assert low // rows_of_a_file == (high - 1) // rows_of_a_file


def test_the_table_shows_each_contestant_next_to_the_floor() -> None:
    console = Console(width=200)
    with console.capture() as printed:
        console.print(report.statements_table([MEASURED]))
    line = next(line for line in printed.get().splitlines() if "merge" in line)
    assert [cell.strip() for cell in line.strip("│").split("│")] == ["merge", "200", "300  1.50x"]


def test_an_absent_contestant_has_an_empty_cell_and_an_absent_baseline_means_no_ratios() -> None:
    alone = CaseResult("vacuum", 10, (Measurement("dbt-silt", (0.5,)),), has_baseline=False)
    assert alone.of("bare Spark") is None
    assert alone.ratio("dbt-silt") is None
    console = Console(width=200)
    with console.capture() as printed:
        console.print(report.statements_table([MEASURED, alone]))
    line = next(line for line in printed.get().splitlines() if "vacuum" in line)
    assert [cell.strip() for cell in line.strip("│").split("│")] == ["vacuum", "", "500"]


@dataclass(frozen=True)
class Offering:
    name: str
    offers: frozenset[Need]


def test_a_contestant_takes_part_if_it_has_all_capabilities_of_a_case() -> None:
    bare, repartitioned = (Offering(each.name, each.offers) for each in (BareSpark, BareSparkRepartitioned))
    cases = {type(case): case for case in all_cases(QUICK)}
    assert entrants_of(cases[ManyPartitions], [bare, repartitioned]) == [bare, repartitioned]  # type: ignore[comparison-overlap, list-item]
    assert entrants_of(cases[DeleteRange], [bare, repartitioned]) == [bare]  # type: ignore[comparison-overlap, list-item]
    with pytest.raises(ValueError, match="delete 1 of many partitions: no contestant can take part"):
        entrants_of(cases[DeletePartition], [bare, repartitioned])  # type: ignore[list-item]


def test_every_case_has_a_unique_name() -> None:
    names = [case.name for case in all_cases(FULL)]
    assert len(set(names)) == len(names)


def test_the_json_contains_every_time(tmp_path: Path) -> None:
    path = report.write(report.as_json([MEASURED], [], None), tmp_path / "new", datetime.datetime(2026, 1, 2, 3, 4, 5))
    assert path.name == "2026-01-02T03-04-05.json"
    case = json.loads(path.read_text(encoding="utf-8"))["statements"][0]
    assert case["contestants"]["dbt-silt"]["seconds"] == [0.5, 0.3, 0.1]


def test_a_folder_without_jars_raises_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no jar in"):
        session_settings(tmp_path)


def test_delta_spark_gets_every_jar_of_the_folder(tmp_path: Path) -> None:
    for name in ("delta-storage.jar", "delta-spark.jar", "notes.txt"):
        (tmp_path / name).touch()
    assert session_settings(tmp_path)["spark.jars"] == f"{tmp_path}/delta-spark.jar,{tmp_path}/delta-storage.jar"


def test_numbers_of_rows_are_abbreviated_only_without_loss() -> None:
    assert [short(number) for number in (10_000_000, 100_000, 1_500, 2_000_001, 0)] == [
        "10m",
        "100k",
        "1500",
        "2000001",
        "0",
    ]


def test_the_project_of_small_models_is_written(tmp_path: Path) -> None:
    small_models.make(tmp_path / "project", models=3, rows=10)
    models = sorted((tmp_path / "project" / "models").iterdir())
    assert [model.name for model in models] == ["model_00.sql", "model_01.sql", "model_02.sql"]
    text = models[0].read_text(encoding="utf-8")
    assert "{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id') }}" in text
    assert "from range(5, 5 + 10)" in text


@dataclass
class Run:
    """Builds the content of a `run_results.json` model by model; times are in seconds after a start."""

    results: list[dict] = field(default_factory=list)  # type: ignore[type-arg]

    def model(self, started: float, ended: float, inserted: int = 500, updated: int = 500) -> Run:
        steps = [{"name": "compile", "started_at": _at(started), "completed_at": _at(started)}]
        steps += [{"name": "execute", "started_at": _at(started), "completed_at": _at(ended)}]
        response = {"rows_inserted": inserted, "rows_updated": updated}
        self.results.append({"unique_id": "model.a", "timing": steps, "adapter_response": response})
        return self


def _at(seconds: float) -> str:
    moment = datetime.datetime(2026, 1, 1) + datetime.timedelta(seconds=seconds)
    return moment.isoformat(timespec="microseconds") + "Z"


def test_the_steady_state_omits_the_first_models() -> None:
    run = Run().model(0, 9)
    for number in range(small_models.WARMUP_MODELS - 1):
        run.model(9 + number, 10 + number)
    end = 9 + small_models.WARMUP_MODELS - 1
    for number in range(4):
        run.model(end + number * 0.5, end + (number + 1) * 0.5)
    times = small_models.times({"results": run.results}, threads=1, wall=20)
    assert (times.first_model, times.steady_per_model, times.median_model) == (9, 0.5, 0.5)
    assert (times.models, times.wall) == (len(run.results), 20)


def test_a_model_that_did_not_merge_its_rows_fails_the_run() -> None:
    small_models.check({"results": Run().model(0, 1).results})
    with pytest.raises(RuntimeError, match=r"model.a inserted and updated \(0, 500\)"):
        small_models.check({"results": Run().model(0, 1, inserted=0).results})
