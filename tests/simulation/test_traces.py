"""A seed determines the whole run: in the same process, and in processes whose sets have another order."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest

from tests.simulation import catalog_simulation
from tests.simulation.simulation import simulate
from tests.simulation.warehouse.world import WorldClock

ROOT = Path(__file__).parents[2]
PROGRAM = """
from unittest import mock
from tests.simulation.warehouse import statements
from tests.simulation.simulation import simulate

print(simulate(4).trace(), simulate(5, has_folders=False).trace())
with mock.patch.object(statements, "sorted", list, create=True):
    print(simulate(4).trace())
"""


def traces(hash_seed: int) -> list[str]:
    """The traces of two seeds, and of a seed whose statements are chosen from a set."""
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", PROGRAM]
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    return run.stdout.splitlines()


def test_a_seed_gives_the_same_trace_in_every_process() -> None:
    first, second = traces(1), traces(2)
    assert first[0] == second[0]
    assert first[1] != second[1], "the order of a set goes unnoticed"


@pytest.mark.parametrize("has_folders", [True, False])
def test_a_seed_gives_the_same_trace_again(has_folders: bool) -> None:
    assert simulate(8, has_folders).trace() == simulate(8, has_folders).trace()


def test_a_seed_of_the_catalog_gives_the_same_schedule_again() -> None:
    first, again = catalog_simulation.simulate(4), catalog_simulation.simulate(4)
    assert first.world.schedule == again.world.schedule


def test_a_random_number_that_the_seed_does_not_determine_changes_the_trace() -> None:
    with mock.patch.object(WorldClock, "jitter", lambda self: random.random()):
        assert simulate(8).trace() != simulate(8).trace()
