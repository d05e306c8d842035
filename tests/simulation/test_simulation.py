"""Seeds of the simulation. `make simulate` runs more seeds, or a single seed with its schedule."""

from __future__ import annotations

import pytest

from tests.simulation.simulation import simulate

CHUNK = 50


def run(chunk: int) -> None:
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        simulate(seed)


# `test_rare_states.py` runs the first two chunks.
@pytest.mark.parametrize("chunk", [2, *(pytest.param(chunk, marks=pytest.mark.long) for chunk in range(3, 40))])
def test_all_invariants_hold(chunk: int) -> None:
    run(chunk)
