"""Fixtures for tests of the page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.house import House
from tests.unit.report import shop


@pytest.fixture
def house(tmp_path: Path) -> House:
    """An empty warehouse."""
    folder = tmp_path / "warehouse"
    folder.mkdir()
    return House(folder)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """dbt's target folder."""
    return tmp_path / "target"


@pytest.fixture
def project(house: House, target: Path) -> Mapping[str, Any]:
    """The data of the page of the project in `shop`."""
    shop.build(house, target)
    return shop.made(house, target)
