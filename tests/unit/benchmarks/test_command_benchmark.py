"""The benchmark of commands runs on a small warehouse, whose content the commands confirm."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.command.__main__ import calls, timed
from benchmarks.command.warehouse import Size, make
from dbt.adapters.silt.cli.main import main


def test_the_warehouse_has_the_history_of_nightly_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make(tmp_path / "house", Size(3, 2))
    assert main(["runs", "--json", "--warehouse", str(tmp_path / "house")]) == 0
    found = json.loads(capsys.readouterr().out)["runs"]
    assert [(run["run_id"], len(run["tables"]), run["rows_inserted"]) for run in found] == [
        ("nightly-0001", 3, 3000),
        ("nightly-0000", 3, 3000),
    ]


def test_every_timed_call_succeeds(tmp_path: Path) -> None:
    size = Size(1, 1)
    make(tmp_path / "house", size)
    for call in calls(size):
        timing = timed(call, tmp_path / "house")
        assert 0 < timing.processor
        assert 0 < timing.clock
