"""Killed runs that are continued with their run id have the result of undisturbed runs (`make chaos` runs more)."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.chaos.chaos import Chaos, stories
from tests.chaos.state import Difference, State
from tests.chaos.workplace import Command
from tests.connect_server import running_for_processes

KILLS = int(os.environ.get("SILT_KILLS", "1"))
MANY_KILLS = int(os.environ.get("SILT_KILLS", "18"))
SEED = int(os.environ.get("SILT_KILL_SEED", "20130111"))


def live(chaos: Chaos, story: int, kills: int) -> None:
    rounds = chaos.story(story, kills)
    assert [round_.faults for round_ in rounds] == [[]] * len(rounds)
    assert [round_.difference for round_ in rounds if round_.difference] == []
    assert sum(len(round_.kills) + round_.missed for round_ in rounds) == kills


@pytest.fixture(scope="class")
def chaos(tmp_path_factory: pytest.TempPathFactory) -> Chaos:
    return Chaos(tmp_path_factory.mktemp("chaos"), SEED)


@pytest.fixture(scope="class")
def chaos_of_clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chaos]:
    folder = tmp_path_factory.mktemp("chaos")
    with running_for_processes(folder / "server") as remote:
        yield Chaos(folder, SEED, remote)


class TestRunsWithASparkOfTheirOwn:
    @pytest.mark.parametrize(("story", "kills"), stories(0, KILLS).items())
    def test_runs_killed_with_their_spark_and_continued_have_the_result_of_undisturbed_runs(
        self, chaos: Chaos, story: int, kills: int
    ) -> None:
        live(chaos, story, kills)

    @pytest.mark.long
    def test_repeating_a_round_changes_nothing_with_its_run_id_and_adds_rows_with_another_id(
        self, chaos: Chaos
    ) -> None:
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
        # The model's rows again, two rows of the run's hooks, and a tally with another number.
        assert (found.rows_lost, found.rows_doubled) == (1, 60 + 2 + 1)


@pytest.mark.long
class TestRunsThatShareAServer:
    """The server continues the statements of a killed run while the run is continued."""

    @pytest.mark.parametrize(("story", "kills"), stories(0, MANY_KILLS).items())
    def test_killed_and_continued_runs_have_the_result_of_undisturbed_runs(
        self, chaos_of_clients: Chaos, story: int, kills: int
    ) -> None:
        live(chaos_of_clients, story, kills)
