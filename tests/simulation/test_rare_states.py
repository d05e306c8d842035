"""The rare states of the simulation are reached, and statements end soon after the last fault."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from unittest import mock

import pytest

from tests.simulation import simulation
from tests.simulation.simulation import TURNS_WITHOUT_FAULTS, History, simulate
from tests.simulation.warehouse import rare_states
from tests.simulation.warehouse.weather import FAIR

SEEDS = 100


class TestHistories:
    @pytest.fixture(scope="class")
    @classmethod
    def histories(cls) -> list[History]:
        return [simulate(seed) for seed in range(SEEDS)]

    def test_every_rare_state_is_reached(self, histories: Sequence[History]) -> None:
        states = sum((history.states for history in histories), Counter[str]())
        assert rare_states.missing(states) == []

    def test_statements_end_long_before_the_limit(self, histories: Sequence[History]) -> None:
        assert max(max(history.turns) for history in histories) < TURNS_WITHOUT_FAULTS / 2

    @pytest.mark.parametrize(
        "kind",
        ["append", "append once", "transfer", "update", "delete", "insert the total", "compact", "upkeep", "optimize"],
    )
    def test_statements_of_each_kind_are_committed_and_fail(self, histories: Sequence[History], kind: str) -> None:
        counts = sum((history.counts for history in histories), Counter[str]())
        assert counts[f"{kind}: committed"] > 5
        assert counts[f"{kind}: failed"] > 0


def test_without_faults_the_states_that_need_faults_are_reported_as_missing() -> None:
    with mock.patch.multiple(simulation, ROUGH=FAIR, FOUL=FAIR):
        states = sum((simulate(seed).states for seed in range(5)), Counter[str]())
    missing = rare_states.missing(states)
    assert {rare_states.LOST_ANSWER, rare_states.CLOCK_BACK, rare_states.UNKNOWN_COMMITTED} <= set(missing)
