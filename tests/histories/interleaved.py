"""Histories of interleaved clients on the kernel, each determined by its seed: lost answers and killed clients, too."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import count
from typing import Final, TypeVar

from dbt.adapters.silt.engine.kernel.storage.store import Store
from tests.faulty_store import Fault, FaultKind
from tests.fixed_clock import FixedClock
from tests.histories.client import Client, Door, Journal, stored_reads, transactions_of
from tests.histories.history import Answer, History, Level
from tests.histories.kernel_door import KernelDoor
from tests.histories.workload import WITH_TRANSACTIONS, Workload
from tests.memory_object_store import MemoryObjectStore
from tests.memory_store import MemoryStore
from tests.simulation.interleaving import Scheduler, YieldingStore, random_order

T = TypeVar("T")

LOST: Final = 0.03
"""The probability that the answer to a commit is lost."""
KILLED: Final = 0.0005
"""The probability that an operation of its store kills a client."""


class Killed(BaseException):
    """The client is gone. No code of the engine may catch it."""


class TurnStore(YieldingStore):
    """A store at each of whose operations another client may continue, or this client may be killed."""

    chance: random.Random
    killed: float

    def around(self, operation: str, path: str, run: Callable[[], T]) -> T:
        self.scheduler.turn()
        if self.chance.random() < self.killed:
            raise Killed
        return super().around(operation, path, run)


@dataclass(frozen=True)
class Run:
    """A workload on tables in memory.

    Attributes:
        has_folders: whether the store has folders, or is an object store.
        twins: how many tasks execute each client's requests, with the same transaction identifiers: a client that was
            taken for dead, and the client that repeats its work.
    """

    workload: Workload
    has_folders: bool = True
    lost: float = LOST
    killed: float = KILLED
    twins: int = 1

    def history(self) -> History:
        """Executes all clients, and then the final reads."""
        memory: Store = MemoryStore() if self.has_folders else MemoryObjectStore()
        scheduler, clock = Scheduler(), count()
        door = KernelDoor.over(memory, self.workload, _clock(0))
        door.create(self.workload)
        journals: list[list[str]] = [[] for _ in range(self.workload.clients)]

        def life(index: int, twin: int) -> Callable[[], None]:
            return lambda: self._live(memory, scheduler, (index, twin), journals[index], lambda: next(clock))

        lives = [life(index, twin) for index in range(self.workload.clients) for twin in range(self.twins)]
        for result in scheduler.run(lives, random_order(self.workload.seed)):
            if isinstance(result, Exception):
                raise result
        return history_of(self.workload, door, journals, lambda: next(clock))

    def _live(
        self, memory: Store, scheduler: Scheduler, who: tuple[int, int], lines: list[str], now: Callable[[], int]
    ) -> None:
        """Lets a client live, as often as it is killed."""
        index, twin = who
        requests = self.workload.requests(index)
        faults = [Fault("put_if_absent", FaultKind.FAIL_AFTER, "*.json", probability=self.lost)]
        for life in count(1):
            seed = life + 1000 * twin + 10_000 * index + 1_000_000 * self.workload.seed
            faulty = TurnStore(memory, scheduler, faults, seed)
            faulty.chance, faulty.killed = random.Random(seed), self.killed
            door = KernelDoor.over(faulty, self.workload, _clock(seed))
            try:
                Client(index, requests, door, Journal(lines.append, now)).live(lines if life > 1 else ())
            except Killed:
                continue
            return


def _clock(seed: int) -> FixedClock:
    """The clock of one life of a client, which differs from those of others: ids of publications contain the time."""
    return FixedClock(1_700_000_000_000 + seed % 1_000_000, seed=seed)


def history_of(workload: Workload, door: Door, journals: list[list[str]], now: Callable[[], int]) -> History:
    """The history of all clients, after a last client has read all keys."""
    last: list[str] = []
    reader = Client(workload.clients, list(workload.final_reads()), door, Journal(last.append, now))
    reader.live()
    requests = [*map(workload.requests, range(workload.clients)), reader.requests]
    lines = [*journals, last]
    found = [transactions_of(asked, index, lines[index]) for index, asked in enumerate(requests)]
    assert all(each.answer is Answer.OK for each in found[-1]), "the last client could not read all keys"
    stored = stored_reads([line for each in lines for line in each])
    return workload.history([each for some in found for each in some], stored)


def workload(seed: int, clients: int = 4, length: int = 50, tables: int = 2) -> Workload:
    """A workload over tables whose levels depend on the seed."""
    chance = random.Random(seed)
    levels = {f"t{number}": chance.choice(list(Level)) for number in range(tables)}
    return Workload(seed, clients, length, levels, weights=WITH_TRANSACTIONS)


def theme(seed: int, kinds: Iterable[str], level: Level) -> Workload:
    """A workload with the same weight for a few kinds of requests, which conflict often, on one table."""
    return Workload(seed, 4, 12, {"t0": level}, weights=dict.fromkeys(kinds, 1.0))
