"""Random projects: after each command, every node has ended as the oracle says, and has the oracle's rows."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.random_projects.generator import overlapping_story, story
from tests.random_projects.history import Player
from tests.random_projects.oracle import Oracle
from tests.random_projects.project import Story
from tests.random_projects.strategies import Undecided

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


def test_a_retry_of_two_commands_at_once_has_nodes_to_run() -> None:
    told = [overlapping_story(seed, steps=3, most=6) for seed in range(60)]
    retried = [each for each in told if any(step.verb == "retry" for step in each.steps)]
    assert retried and all(map(_has_nodes_to_retry, retried))


def _has_nodes_to_retry(told: Story) -> bool:
    oracle, can_be_retried = Oracle(told), True
    with contextlib.suppress(Undecided):
        for step in told.steps:
            oracle.change(step)
            can_be_retried &= step.verb != "retry" or oracle.can_be_retried()
            oracle.run(step)
    return can_be_retried


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
