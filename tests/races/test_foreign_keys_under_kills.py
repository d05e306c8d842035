"""Children and parents in simulated histories: processes are killed and lose answers, and no row is without its parent.

A commit that depends on the other table is a publication. A process that is killed within it leaves it to the next
process that meets it, which completes or undoes it.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

import pytest

from dbt.adapters.silt.engine.kernel.errors import (
    CommitStateUnknownError,
    ConcurrentModificationError,
    ForeignKeyViolationError,
    KeyViolationError,
    StorageError,
)
from dbt.adapters.silt.engine.kernel.publication.publish import OF_STATEMENTS, PublishSettings, publish
from dbt.adapters.silt.engine.kernel.storage.store import Store
from dbt.adapters.silt.engine.kernel.table.keys import key_properties
from tests.faulty_store import Fault, FaultKind
from tests.histories.interleaved import Killed, TurnStore
from tests.memory_object_store import MemoryObjectStore
from tests.memory_store import MemoryStore
from tests.publication.tables import Process
from tests.races.test_foreign_key_races import (
    CHILD,
    PARENT,
    PRIMARY,
    VECTORS,
    Writer,
    check,
    forgets_what_it_has_read,
    ignores_children,
    overlooks_conflicts_of_the_other_table,
)
from tests.simulation.interleaving import Scheduler, random_order
from tests.unit.engine.kernel.log_builder import new_log

PROCESSES = 4
ACTIONS = 5
KEYS = range(8)
LOSE = Fault("put_if_absent", FaultKind.FAIL_AFTER, "*.json", probability=0.03)
KILLED = 0.004
FIRST = range(25)
PLANTED = range(200)


@dataclass
class Life:
    """The work of a process, which goes on after it was killed."""

    seed: int
    number: int
    chance: random.Random = field(init=False)
    counts: Counter[str] = field(default_factory=Counter)
    process: Process = field(init=False)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed * 100 + self.number)

    def live(self, store: Store, scheduler: Scheduler) -> None:
        left = [self.chance.choice(ACTIONS_OF_PROCESSES) for _ in range(ACTIONS)]
        for life in count():
            seed = life + 1000 * self.number + 100_000 * self.seed
            turns = TurnStore(store, scheduler, [LOSE], seed)
            turns.chance, turns.killed = random.Random(seed), KILLED if life < 5 else 0.0
            self.process = Process(turns, seed)
            try:
                while left:
                    self.counts[self._done(left.pop())] += 1
                return
            except Killed:
                self.counts["killed"] += 1

    def _done(self, action: Callable[[Life], str]) -> str:
        try:
            return action(self)
        except KeyViolationError:
            return "doubled"
        except (CommitStateUnknownError, StorageError):
            return "unknown"

    def some(self, most: int = 2) -> list[int]:
        return self.chance.sample(KEYS, self.chance.randrange(1, most + 1))

    def child(self) -> str:
        return Writer(self.process.logs[CHILD]).insert(*self.some())

    def forget(self) -> str:
        return Writer(self.process.logs[CHILD]).delete(*self.some(3), with_vectors=True)

    def parent(self) -> str:
        return Writer(self.process.logs[PARENT]).insert(*self.some())

    def remove(self) -> str:
        return Writer(self.process.logs[PARENT]).delete(*self.some(), with_vectors=self.chance.random() < 0.5)

    def both(self) -> str:
        branch = self.process.branch()
        Writer(branch[CHILD]).insert(*self.some())
        Writer(branch[PARENT]).delete(*self.some(1))
        try:
            publish(self.process.register, list(branch.values()), settings=PublishSettings(isolation=OF_STATEMENTS))
        except (ConcurrentModificationError, ForeignKeyViolationError):
            return "held"
        return "published"

    def read(self) -> str:
        check(self.process)
        return "read"


ACTIONS_OF_PROCESSES: list[Callable[[Life], str]] = [
    *[Life.child, Life.remove, Life.read] * 3,
    *[Life.parent, Life.both] * 2,
    Life.forget,
]


def simulate(seed: int, make: Callable[[], Store] = MemoryStore) -> Counter[str]:
    """Runs the processes of a seed, which read consistent cuts meanwhile, and checks the end."""
    store, scheduler = make(), Scheduler()
    new_log(store.child(f"main/{PARENT}"), configuration=key_properties({"k": PRIMARY}), protocol=VECTORS)
    new_log(store.child(f"main/{CHILD}"), protocol=VECTORS)
    founder = Process(store, 9)
    for key in KEYS:
        assert Writer(founder.logs[PARENT]).insert(key) == "done"
    assert Writer(founder.logs[CHILD]).reference(founder.logs[PARENT].snapshot().metadata) == "done"
    lives = [Life(seed, number) for number in range(PROCESSES)]
    work = [lambda life=life: life.live(store, scheduler) for life in lives]
    for result in scheduler.run(work, random_order(seed)):
        if isinstance(result, BaseException):
            raise result
    last = Process(store, 77)
    assert Writer(last.logs[PARENT]).insert(99) == "done"
    assert Writer(last.logs[CHILD]).insert(99) == "done"
    check(last)
    return sum((life.counts for life in lives), Counter[str]())


@pytest.mark.parametrize("make", [MemoryStore, MemoryObjectStore], ids=["folders", "objects"])
def test_no_row_is_without_its_parent_whatever_is_killed_or_lost(make: Callable[[], Store]) -> None:
    seen = sum((simulate(seed, make) for seed in FIRST), Counter[str]())
    assert {"done", "refused", "killed", "published", "held"} <= seen.keys(), seen


@pytest.mark.parametrize("plant", [forgets_what_it_has_read, ignores_children, overlooks_conflicts_of_the_other_table])
def test_a_planted_bug_is_found(plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError, match="orphans"):
        for seed in PLANTED:
            simulate(seed)
