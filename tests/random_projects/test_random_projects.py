"""Random projects: after each command, every node has ended as the oracle says, and has the oracle's rows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.random_projects.generator import overlapping_story, story
from tests.random_projects.history import Player

ROOT: Final = Path(__file__).parents[2]
SEED: Final = "4"
"""The only story of `make test-all`: the tests that are marked long draw others in each run."""

pytestmark = pytest.mark.filterwarnings("ignore")


def test_tables_are_those_of_the_oracle_after_each_run() -> None:
    """The story has a process of its own: its Spark needs other settings than the Spark of the other tests."""
    story_of_four_nodes = ["--seed", SEED, "--histories", "1", "--steps", "2", "--nodes", "4", "--shrink", "0"]
    command = [sys.executable, "-m", "tests.random_projects", *story_of_four_nodes]
    played = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=600)
    assert played.returncode == 0, played.stdout + played.stderr


@pytest.mark.long
@pytest.mark.parametrize("number", range(10))
def test_tables_of_larger_projects_are_those_of_the_oracle(seed: int, number: int, tmp_path: Path) -> None:
    told = story(seed + number)
    assert not Player(tmp_path / "project", tmp_path / "warehouse", told).difference(), f"seed {seed + number}"


@pytest.mark.long
@pytest.mark.parametrize("number", range(3))
def test_two_commands_at_once_write_the_tables_of_one_after_the_other(seed: int, number: int, tmp_path: Path) -> None:
    told = overlapping_story(seed + number, steps=3, most=6)
    assert not Player(tmp_path / "project", tmp_path / "warehouse", told).difference(), f"seed {seed + number}"
