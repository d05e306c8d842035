"""What the tests of the command share."""

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
    """Runs a subcommand on the warehouse; what it printed. It must end with the exit code `code`."""

    def run(*arguments: str, code: int = 0) -> str:
        assert main([*arguments, "--warehouse", str(house.folder)]) == code
        return capsys.readouterr().out

    return run


@pytest.fixture
def as_json(silt: Callable[..., str]) -> Callable[..., Any]:
    """As `silt`, with `--json`; the value that it printed."""

    def run(*arguments: str, code: int = 0) -> Any:
        return json.loads(silt(*arguments, "--json", code=code))

    return run
