"""A run that is killed at any moment, and run again with the same run id, ends as if nothing had happened."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.functional.exactly_once.dbt_process import Workplace, moments

KILLS = int(os.environ.get("SILT_KILLS", "6"))
SEED = int(os.environ.get("SILT_KILL_SEED", "20130101"))
_LONGEST_SECONDS = 25.0
_SHORTEST_SECONDS = 4.0


@pytest.fixture(scope="module")
def after_one_round(tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    place = Workplace.make(tmp_path_factory.mktemp("undisturbed"))
    assert place.build("run-1", 1) == 0, place.output()
    return place


@pytest.fixture(scope="module")
def expected(after_one_round: Workplace, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    place = after_one_round.copy(tmp_path_factory.mktemp("expected") / "copy")
    assert place.build("run-2", 2) == 0, place.output()
    return place.rows()


@pytest.mark.parametrize("moment", moments(SEED, KILLS, _LONGEST_SECONDS, _SHORTEST_SECONDS))
def test_a_killed_run_that_is_run_again_leaves_what_an_undisturbed_run_leaves(
    moment: float, after_one_round: Workplace, expected: dict[str, list[str]], tmp_path: Path
) -> None:
    place = after_one_round.copy(tmp_path / "copy")
    place.build_and_kill("run-2", 2, moment)
    assert place.build("run-2", 2) == 0, place.output()
    assert place.rows() == expected


def test_a_run_that_is_repeated_with_its_run_id_changes_nothing(after_one_round: Workplace, tmp_path: Path) -> None:
    place = after_one_round.copy(tmp_path / "copy")
    before = place.rows()
    assert place.build("run-1", 1) == 0, place.output()
    assert place.rows() == before
