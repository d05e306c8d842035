"""A run that is killed at any moment, and run again with the same run id, ends as if nothing had happened."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.functional.exactly_once.dbt_process import Workplace, moments

KILLS = int(os.environ.get("SILT_KILLS", "6"))
SEED = int(os.environ.get("SILT_KILL_SEED", "20130101"))
_FIRST_MOMENT = 0.3
"""As a part of an undisturbed run; before it, Python and Spark are only starting."""


@pytest.fixture(scope="module")
def after_one_round(tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    place = Workplace.make(tmp_path_factory.mktemp("undisturbed"))
    assert place.build("run-1", 1) == 0, place.output()
    return place


@pytest.fixture(scope="module")
def undisturbed(
    after_one_round: Workplace, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, list[str]], float]:
    """What a run that nobody kills leaves, and the seconds that it takes."""
    place = after_one_round.copy(tmp_path_factory.mktemp("expected") / "copy")
    began = time.monotonic()
    assert place.build("run-2", 2) == 0, place.output()
    return place.rows(), time.monotonic() - began


@pytest.mark.parametrize("moment", moments(SEED, KILLS, 1.0, _FIRST_MOMENT))
def test_a_killed_run_that_is_run_again_leaves_what_an_undisturbed_run_leaves(
    moment: float, after_one_round: Workplace, undisturbed: tuple[dict[str, list[str]], float], tmp_path: Path
) -> None:
    expected, seconds = undisturbed
    place = after_one_round.copy(tmp_path / "copy")
    place.build_and_kill("run-2", 2, moment * seconds)
    assert place.build("run-2", 2) == 0, place.output()
    assert place.rows() == expected


def test_a_run_that_is_repeated_with_its_run_id_changes_nothing(after_one_round: Workplace, tmp_path: Path) -> None:
    place = after_one_round.copy(tmp_path / "copy")
    before = place.rows()
    assert place.build("run-1", 1) == 0, place.output()
    assert place.rows() == before
