"""Random projects: after each command, every node has ended as the oracle says, and has the oracle's rows."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.random_projects.generator import story
from tests.random_projects.history import Player

SEED: Final = 4
"""The only story of `make test`: the tests that are marked long draw others in each run."""

pytestmark = pytest.mark.filterwarnings("ignore")


def test_tables_are_those_of_the_oracle_after_each_run(tmp_path: Path) -> None:
    told = story(SEED, steps=2, most=4)
    assert not Player(tmp_path / "project", tmp_path / "warehouse", told).difference()


@pytest.mark.long
@pytest.mark.parametrize("number", range(10))
def test_tables_of_larger_projects_are_those_of_the_oracle(seed: int, number: int, tmp_path: Path) -> None:
    told = story(seed + number)
    assert not Player(tmp_path / "project", tmp_path / "warehouse", told).difference(), f"seed {seed + number}"
