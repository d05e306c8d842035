"""Tables with an enforced key in simulated histories: processes are killed and lose answers, and no key is ever twice.

Each process draws inserts, merges, updates by vectors, clean-ups, and runs that it holds and publishes later. A killed
process begins again with new handles, and does the rest of its work.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

import pytest

from dbt.adapters.silt.engine.kernel.errors import CommitStateUnknownError, ConcurrentModificationError, StorageError
from dbt.adapters.silt.engine.kernel.publication.publish import OF_STATEMENTS, PublishSettings, publish
from dbt.adapters.silt.engine.kernel.storage.store import Store
from dbt.adapters.silt.engine.kernel.table.keys import key_properties, unverified_since
from dbt.adapters.silt.engine.kernel.transaction.branch_log import BranchLog
from tests.faulty_store import Fault, FaultKind
from tests.histories.interleaved import Killed, TurnStore
from tests.memory_object_store import MemoryObjectStore
from tests.memory_store import MemoryStore
from tests.publication.tables import NAMES, Process
from tests.races.test_key_races import (
    KEY,
    VECTORS,
    Writer,
    excludes_the_greatest_key,
    ignores_the_snapshot,
    ignores_winners,
    publishes_without_comparing,
    rows,
)
from tests.simulation.interleaving import Scheduler, random_order
from tests.unit.engine.kernel.log_builder import new_log

PROCESSES = 4
ACTIONS = 6
KEYS = range(12)
LOST = 0.03
KILLED = 0.004
FIRST = range(25)
"""The seeds that each run of the tests simulates."""
PLANTED = range(200)


@dataclass
class Life:
    """The work of a process, which goes on after it was killed.

    Attributes:
        held: the branch of a run that is not yet published.
        told: versions at which rows were committed, with their keys.
    """

    seed: int
    number: int
    chance: random.Random = field(init=False)
    counts: Counter[str] = field(default_factory=Counter)
    told: list[tuple[int, frozenset[int]]] = field(default_factory=list)
    process: Process = field(init=False)
    held: dict[str, BranchLog] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed * 100 + self.number)

    def live(self, store: Store, scheduler: Scheduler) -> None:
        left = [self.chance.choice(ACTIONS_OF_PROCESSES) for _ in range(ACTIONS)]
        for life in count():
            seed = life + 1000 * self.number + 100_000 * self.seed
            turns = TurnStore(store, scheduler, [LOSE], seed)
            turns.chance, turns.killed = random.Random(seed), KILLED if life < 5 else 0.0
            self.process, self.held = Process(turns, seed), {}
            try:
                while left:
                    self.counts[left.pop()(self)] += 1
                return
            except Killed:
                self.counts["killed"] += 1

    def some(self) -> list[int]:
        return self.chance.sample(KEYS, self.chance.randrange(1, 4))

    def write(self, change: Callable[[Writer], str]) -> str:
        writer = Writer(self.process.logs["a"])
        try:
            return change(writer)
        except (CommitStateUnknownError, StorageError):
            return "unknown"
        finally:
            self.told += writer.told

    def hold(self) -> str:
        self.held = self.held or self.process.branch()
        keys, others = self.some(), self.some()
        return self.write(lambda _: Writer(self.held["a"]).insert(*keys) and Writer(self.held["b"]).upsert(*others))

    def publish(self) -> str:
        logs, self.held = list(self.held.values()), {}
        try:
            publish(self.process.register, logs, settings=PublishSettings(isolation=OF_STATEMENTS))
        except ConcurrentModificationError:
            return "conflict of a held run"
        except (CommitStateUnknownError, StorageError):
            return "unknown"
        return "published" if logs else "nothing held"


LOSE = Fault("put_if_absent", FaultKind.FAIL_AFTER, "*.json", probability=LOST)
ACTIONS_OF_PROCESSES: list[Callable[[Life], str]] = [
    *[lambda life: life.write(lambda writer: writer.insert(*life.some()))] * 3,
    *[lambda life: life.write(lambda writer: writer.upsert(*life.some()))] * 2,
    lambda life: life.write(lambda writer: writer.renumber(*life.chance.sample(KEYS, 2))),
    lambda life: life.write(Writer.optimize),
    *[Life.hold, Life.publish] * 2,
]


def simulate(seed: int, make: Callable[[], Store] = MemoryStore) -> Counter[str]:
    """Runs the processes of a seed, and checks every version of both tables, as another engine reads them."""
    store, scheduler = make(), Scheduler()
    for name in NAMES:
        new_log(store.child(f"main/{name}"), configuration=key_properties({"k": KEY}), protocol=VECTORS)
    lives = [Life(seed, number) for number in range(PROCESSES)]
    work = [lambda life=life: life.live(store, scheduler) for life in lives]
    for result in scheduler.run(work, random_order(seed)):
        if isinstance(result, BaseException):
            raise result
    last = Process(store, 77)
    for name, log in last.logs.items():
        assert Writer(log).upsert(99) == "done"
        newest = log.snapshot()
        versions = {version: rows(log, version) for version in range(newest.version + 1)}
        for version, found in versions.items():
            assert max(found.values(), default=1) == 1, f"seed {seed}: version {version} of {name} holds {found}"
        assert unverified_since(newest.transactions, newest.version) is None
        for version, keys in (each for life in lives for each in life.told if name == "a"):
            assert keys <= versions[version].keys(), f"seed {seed}: {keys} are not in version {version}"
    return sum((life.counts for life in lives), Counter[str]())


@pytest.mark.parametrize("make", [MemoryStore, MemoryObjectStore], ids=["folders", "objects"])
def test_no_key_is_ever_twice_whatever_is_killed_or_lost(make: Callable[[], Store]) -> None:
    seen = sum((simulate(seed, make) for seed in FIRST), Counter[str]())
    expected = {"done", "refused", "killed", "published", "conflict of a held run"}
    assert expected <= seen.keys(), seen


@pytest.mark.parametrize(
    "plant", [ignores_winners, ignores_the_snapshot, publishes_without_comparing, excludes_the_greatest_key]
)
def test_a_planted_bug_is_found(plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError, match="holds"):
        for seed in PLANTED:
            simulate(seed)
