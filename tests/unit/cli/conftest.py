"""Shared by the tests of the command."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.silt.cli.main import main
from tests.unit.cli.house import House


@pytest.fixture
def house(tmp_path: Path) -> House:
    """An empty warehouse."""
    folder = tmp_path / "warehouse"
    folder.mkdir()
    return House(folder)


@pytest.fixture
def silt(house: House, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs a subcommand on the warehouse and checks its exit code `code`; returns its output."""

    def run(*arguments: str, code: int = 0) -> str:
        assert main([*arguments, "--warehouse", str(house.folder)]) == code
        return capsys.readouterr().out

    return run


@pytest.fixture
def as_json(silt: Callable[..., str]) -> Callable[..., Any]:
    """Runs like `silt`, with `--json`; returns the printed value."""

    def run(*arguments: str, code: int = 0) -> Any:
        return json.loads(silt(*arguments, "--json", code=code))

    return run
