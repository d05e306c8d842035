"""Killed runs that are continued under their run id end as if nothing had happened (`make chaos` is the long form)."""

from __future__ import annotations

import os

import pytest

from tests.chaos.chaos import Chaos, stories
from tests.chaos.state import Difference, State
from tests.chaos.workplace import Command

KILLS = int(os.environ.get("SILT_KILLS", "20"))
SEED = int(os.environ.get("SILT_KILL_SEED", "20130111"))


@pytest.fixture(scope="module")
def chaos(tmp_path_factory: pytest.TempPathFactory) -> Chaos:
    return Chaos(tmp_path_factory.mktemp("chaos"), SEED)


@pytest.mark.parametrize(("story", "kills"), stories(0, KILLS).items())
def test_killed_runs_that_are_continued_leave_what_undisturbed_runs_leave(chaos: Chaos, story: int, kills: int) -> None:
    rounds = chaos.story(story, kills)
    assert [round_.faults for round_ in rounds] == [[]] * len(rounds)
    assert [round_.difference for round_ in rounds if round_.difference] == []
    assert sum(len(round_.kills) + round_.missed for round_ in rounds) == kills


def test_a_round_that_is_repeated_changes_nothing_with_its_run_id_and_adds_rows_with_another(chaos: Chaos) -> None:
    chaos.undisturbed.round(1)
    place = chaos.undisturbed.place
    before = State.of(place.warehouse)
    for command in Command.of_round(1):
        ended = place.dbt(command.given("round-1"))
        assert ended.code == 0, ended.output
    assert not Difference.of(before, State.of(place.warehouse))
    appended = ("run", "--select", "as_append")
    assert place.dbt(Command(appended, 1).given("another")).code == 0
    found = Difference.of(before, State.of(place.warehouse))
    # The model's rows again, two that the hooks of the run note, and a tally that has another number.
    assert (found.rows_lost, found.rows_doubled) == (1, 60 + 2 + 1)
