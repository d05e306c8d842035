"""Seeds of the simulation. `make simulate` runs more of them, or one with its schedule."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.simulation.simulation import History, simulate

CHUNK = 50


def run(chunk: int) -> list[History]:
    return [simulate(seed) for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK)]


# The tests are in classes, which are distributed over workers.
class TestFirstHalf:
    @pytest.mark.parametrize("chunk", range(6))
    def test_all_invariants_hold(self, chunk: int) -> None:
        run(chunk)


class TestSecondHalf:
    @pytest.mark.parametrize("chunk", range(6, 12))
    def test_all_invariants_hold(self, chunk: int) -> None:
        run(chunk)


@pytest.mark.long
class TestTheOthers:
    @pytest.mark.parametrize("chunk", range(12, 40))
    def test_all_invariants_hold(self, chunk: int) -> None:
        run(chunk)


class TestSeeds:
    @pytest.mark.parametrize("seed", [1, 2, 3])
    def test_a_seed_has_the_same_history_each_time(self, seed: int) -> None:
        first, again = simulate(seed), simulate(seed)
        assert first.schedule == again.schedule
        assert [[version.rows for version in log] for log in first.logs] == [
            [version.rows for version in log] for log in again.logs
        ]

    def test_all_kinds_of_statements_occur_often(self) -> None:
        counts = sum((history.counts for history in run(1)), Counter[str]())
        kinds = ("append", "append once", "transfer", "update", "delete", "insert the total", "compact")
        for kind in kinds:
            assert counts[f"{kind}: committed"] > 5, counts
            assert counts[f"{kind}: failed"] > 0, counts
        assert counts["read"] > 50
