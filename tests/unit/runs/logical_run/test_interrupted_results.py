"""The entries that are added to dbt's results when Ctrl-C ends a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dbt.adapters.silt.records.run_registry import RunEntry
from dbt.adapters.silt.runs.logical_run.recorded_end import advice, enter_unfinished


@pytest.fixture
def results(tmp_path: Path) -> Path:
    path = tmp_path / "run_results.json"
    done = {"unique_id": "model.shop.orders", "status": "success"}
    path.write_text(json.dumps({"metadata": {"invocation_id": "I1"}, "args": {"which": "run"}, "results": [done]}))
    return path


def statuses(path: Path) -> dict[str, str]:
    return {each["unique_id"]: each["status"] for each in json.loads(path.read_text())["results"]}


def test_nodes_without_a_result_are_entered_as_skipped(results: Path) -> None:
    assert enter_unfinished(results.parent, "I1", ["model.shop.orders", "model.shop.days"])
    assert statuses(results) == {"model.shop.orders": "success", "model.shop.days": "skipped"}
    assert json.loads(results.read_text())["args"] == {"which": "run"}


def test_the_results_of_another_command_are_not_changed(results: Path) -> None:
    assert not enter_unfinished(results.parent, "I2", ["model.shop.days"])
    assert statuses(results) == {"model.shop.orders": "success"}


def test_a_missing_results_file_is_not_created(tmp_path: Path) -> None:
    assert not enter_unfinished(tmp_path, "I1", ["model.shop.days"])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("has_results", "how"),
    [
        (True, "`dbt retry` runs the rest"),
        (False, "`dbt run --vars '{silt_run_id: R1}'` continues it"),
    ],
)
def test_the_advice_after_an_interrupt_is_a_command(has_results: bool, how: str) -> None:
    entry = RunEntry("I1", "R1", "dbt run", "/shop", "2026-01-01T00:00:00+00:00")
    assert advice(entry, has_results, "/shop", "Interrupted") == f"Interrupted: committed work is kept, and {how}."
