"""Children and parents in simulated histories: processes are killed and lose answers, and no row is without its parent.

A commit that depends on the other table is a publication. A process that is killed within it leaves it to the next
process that meets it, which completes or undoes it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

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
from tests.memory_object_store import MemoryObjectStore
from tests.memory_store import MemoryStore
from tests.publication.tables import Process
from tests.races.lives import Life, lived
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
from tests.unit.engine.kernel.log_builder import new_log

KEYS = range(8)
FIRST = range(25)
PLANTED = range(200)


@dataclass
class Relative(Life):
    """A process that changes parents and children."""

    def done(self, action: Callable[[Relative], str]) -> str:
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


Relative.actions = [
    *[Relative.child, Relative.remove, Relative.read] * 3,
    *[Relative.parent, Relative.both] * 2,
    Relative.forget,
]


def simulate(seed: int, make: Callable[[], Store] = MemoryStore) -> Counter[str]:
    """Runs the processes of a seed, which read consistent cuts meanwhile, and checks the end."""
    store = make()
    new_log(store.child(f"main/{PARENT}"), configuration=key_properties({"k": PRIMARY}), protocol=VECTORS)
    new_log(store.child(f"main/{CHILD}"), protocol=VECTORS)
    founder = Process(store, 9)
    for key in KEYS:
        assert Writer(founder.logs[PARENT]).insert(key) == "done"
    assert Writer(founder.logs[CHILD]).reference(founder.logs[PARENT].snapshot().metadata) == "done"
    lives = lived(Relative, seed, store)
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
