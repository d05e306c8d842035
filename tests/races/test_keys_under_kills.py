"""Tables with an enforced key in simulated histories: processes are killed and lose answers, and no key is ever twice.

Each process draws inserts, merges, updates by vectors, clean-ups, and runs that it holds and publishes later. A killed
process begins again with new handles, and does the rest of its work.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from dbt.adapters.silt.engine.kernel.errors import CommitStateUnknownError, ConcurrentModificationError, StorageError
from dbt.adapters.silt.engine.kernel.publication.publish import OF_STATEMENTS, PublishSettings, publish
from dbt.adapters.silt.engine.kernel.storage.store import Store
from dbt.adapters.silt.engine.kernel.table.keys import key_properties, unverified_since
from dbt.adapters.silt.engine.kernel.transaction.branch_log import BranchLog
from tests.memory_object_store import MemoryObjectStore
from tests.memory_store import MemoryStore
from tests.publication.tables import NAMES, Process
from tests.races.lives import Life, lived
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
from tests.unit.engine.kernel.log_builder import new_log

KEYS = range(12)
FIRST = range(25)
"""The seeds that each run of the tests simulates."""
PLANTED = range(200)


@dataclass
class Holder(Life):
    """A process that also holds runs.

    Attributes:
        held: the branch of a run that is not yet published.
        told: versions at which rows were committed, with their keys.
    """

    told: list[tuple[int, frozenset[int]]] = field(default_factory=list)
    held: dict[str, BranchLog] = field(default_factory=dict)

    length = 6

    def begin(self, process: Process) -> None:
        super().begin(process)
        self.held = {}

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


Holder.actions = [
    *[lambda life: life.write(lambda writer: writer.insert(*life.some()))] * 3,
    *[lambda life: life.write(lambda writer: writer.upsert(*life.some()))] * 2,
    lambda life: life.write(lambda writer: writer.renumber(*life.chance.sample(KEYS, 2))),
    lambda life: life.write(Writer.optimize),
    *[Holder.hold, Holder.publish] * 2,
]


def simulate(seed: int, make: Callable[[], Store] = MemoryStore) -> Counter[str]:
    """Runs the processes of a seed, and checks every version of both tables, as another engine reads them."""
    store = make()
    for name in NAMES:
        new_log(store.child(f"main/{name}"), configuration=key_properties({"k": KEY}), protocol=VECTORS)
    lives = lived(Holder, seed, store)
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
