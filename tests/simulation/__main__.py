"""Simulates many seeds, and prints how often each rare state was reached and how long statements took without faults.

python -m tests.simulation --seeds 1000                   tables in folders
python -m tests.simulation --seeds 1000 --of objects      tables in an object store
python -m tests.simulation --seeds 1000 --of catalog      the names of an object store
python -m tests.simulation --seed 17                      a single seed, with its schedule
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping

from tests.simulation import catalog_simulation
from tests.simulation.simulation import History, simulate
from tests.simulation.warehouse import rare_states
from tests.simulation.warehouse.oracle import Violation


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--of", choices=("folders", "objects", "catalog"), default="folders")
    arguments.add_argument("--seeds", type=int, default=1000)
    arguments.add_argument("--first", type=int, default=0, help="the first seed")
    arguments.add_argument("--seed", type=int, help="prints the schedule of this seed")
    chosen = arguments.parse_args()
    if chosen.seed is not None:
        print("\n".join(_schedule(chosen.of, chosen.seed)))
        return 0
    began, seeds = time.monotonic(), range(chosen.first, chosen.first + chosen.seeds)
    if chosen.of == "catalog":
        _show(sum((catalog_simulation.simulate(seed).counts for seed in seeds), Counter[str]()))
        missing = []
    else:
        missing = _show_histories(simulate(seed, chosen.of == "folders") for seed in seeds)
    print(f"{chosen.seeds} seeds, {time.monotonic() - began:.0f} s")
    return 1 if missing else 0


def _schedule(of: str, seed: int) -> Iterable[str]:
    if of == "catalog":
        return catalog_simulation.simulate(seed).world.schedule
    history = simulate(seed, of == "folders")
    return (*history.schedule, history.trace())


def _show_histories(histories: Iterable[History]) -> list[str]:
    """Prints the sums, and returns the states that were not reached."""
    counts, states, commits = Counter[str](), Counter[str](dict.fromkeys(rare_states.ALL, 0)), 0
    most = (0, 0)
    for history in histories:
        counts += history.counts
        states.update(history.states)
        commits += sum(map(len, history.logs))
        most = max(most[0], history.turns[0]), max(most[1], history.turns[1])
    _show(counts)
    _show(states)
    print(f"{commits:8} commits")
    print(f"{most[0]:8} turns at most until all statements had ended after the last fault")
    print(f"{most[1]:8} turns at most until all processes had written and all tables were written after that")
    missing = rare_states.missing(states)
    if missing:
        print("not reached: " + ", ".join(missing))
    return missing


def _show(counts: Mapping[str, int]) -> None:
    for what, count in sorted(counts.items()):
        print(f"{count:8} {what}")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Violation as violation:
        sys.exit(str(violation))
