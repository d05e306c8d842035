"""Kills of `silt dbt`: repeating the command has the same effect as after a kill of `dbt`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dbt.adapters.silt.command_server import control
from tests.functional.exactly_once.dbt_process import Workplace


@pytest.fixture
def silt_dbt(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workplace]:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("runtime")))
    yield replace(Workplace.make(tmp_path_factory.mktemp("killed")), program=("silt", "dbt"))
    control.stop()


@pytest.mark.long
def test_a_repeatedly_killed_run_applies_each_write_once(silt_dbt: Workplace, tmp_path: Path) -> None:
    whole = Workplace.make(tmp_path / "whole")
    assert whole.build("one", 1) == 0, whole.output()
    for commits in (1, 3, 6):
        silt_dbt.kill_when(silt_dbt.start("one", 1), silt_dbt.has_committed(commits))
    assert silt_dbt.build("one", 1) == 0, silt_dbt.output()
    assert silt_dbt.rows() == whole.rows()
    assert len(control.status()) == 1
