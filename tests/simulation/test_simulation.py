"""Seeds of the simulation. `make simulate` runs more seeds, or a single seed with its schedule."""

from __future__ import annotations

import pytest

from tests.simulation.simulation import simulate

CHUNK = 50


def run(chunk: int) -> None:
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        simulate(seed)


# The tests are in classes, which are distributed over workers. `test_rare_states.py` runs the first two chunks.
class TestFirstHalf:
    @pytest.mark.parametrize("chunk", range(2, 5))
    def test_all_invariants_hold(self, chunk: int) -> None:
        run(chunk)


class TestSecondHalf:
    @pytest.mark.parametrize("chunk", range(5, 8))
    def test_all_invariants_hold(self, chunk: int) -> None:
        run(chunk)


@pytest.mark.long
class TestMoreSeeds:
    @pytest.mark.parametrize("chunk", range(8, 40))
    def test_all_invariants_hold(self, chunk: int) -> None:
        run(chunk)
