"""Processes of simulated histories, which are killed at random requests, lose answers, and then do the rest."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, ClassVar, TypeVar

from dbt.adapters.silt.engine.kernel.storage.store import Store
from tests.faulty_store import Fault, FaultKind
from tests.histories.interleaved import Killed, TurnStore
from tests.publication.tables import Process
from tests.simulation.interleaving import Scheduler, random_order

PROCESSES = 4
LOSE = Fault("put_if_absent", FaultKind.FAIL_AFTER, "*.json", probability=0.03)
KILLED = 0.004


@dataclass
class Life:
    """The work of a process, which goes on after it was killed.

    Attributes:
        actions: what a process does; each returns a word for its result.
        length: how many of them a process does.
    """

    seed: int
    number: int
    chance: random.Random = field(init=False)
    counts: Counter[str] = field(default_factory=Counter)
    process: Process = field(init=False)

    actions: ClassVar[Sequence[Callable[[Any], str]]] = ()
    length: ClassVar[int] = 5

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed * 100 + self.number)

    def live(self, store: Store, scheduler: Scheduler) -> None:
        left = [self.chance.choice(self.actions) for _ in range(self.length)]
        for life in count():
            seed = life + 1000 * self.number + 100_000 * self.seed
            turns = TurnStore(store, scheduler, [LOSE], seed)
            turns.chance, turns.killed = random.Random(seed), KILLED if life < 5 else 0.0
            self.begin(Process(turns, seed))
            try:
                while left:
                    self.counts[self.done(left.pop())] += 1
                return
            except Killed:
                self.counts["killed"] += 1

    def begin(self, process: Process) -> None:
        """Begins with the handles of another process."""
        self.process = process

    def done(self, action: Callable[[Any], str]) -> str:
        return action(self)


_Life = TypeVar("_Life", bound=Life)


def lived(kind: Callable[[int, int], _Life], seed: int, store: Store) -> list[_Life]:
    """Runs the processes of a seed, in a random order, and returns them.

    Raises:
        AssertionError: of a process that has seen something wrong.
    """
    scheduler, lives = Scheduler(), [kind(seed, number) for number in range(PROCESSES)]
    work = [lambda life=life: life.live(store, scheduler) for life in lives]
    for result in scheduler.run(work, random_order(seed)):
        if isinstance(result, BaseException):
            raise result
    return lives
