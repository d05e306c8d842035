"""Publications that move rows which they and other writers change: no row is lost or doubled, wherever they end."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable
from functools import partial

import pytest

from dbt.adapters.silt.engine.kernel.errors import ConcurrentModificationError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.publication import publication_tables
from dbt.adapters.silt.engine.kernel.publication.publish import publish
from dbt.adapters.silt.engine.kernel.storage.store import Store
from tests.memory_object_store import MemoryObjectStore
from tests.memory_store import MemoryStore
from tests.publication.tables import NAMES, DyingStore, Killed, Process, check_put_once, create
from tests.publication.test_interleaved import outcome
from tests.publication.test_net_changes import change, optimize, rows, rows_of
from tests.publication.test_planted_bugs import fails
from tests.simulation.interleaving import Scheduler, YieldingStore, random_order

STORES: dict[str, Callable[[], Store]] = {"folders": MemoryStore, "objects": MemoryObjectStore}
SEEDS = range(6)
BEFORE = ("old", "one", "two")


def tables(make: Callable[[], Store]) -> Store:
    """Creates the tables, each with the rows `BEFORE` in a file each."""
    store = make()
    create(store)
    for name in NAMES:
        for row in BEFORE[1:]:
            change(Process(store, 50).logs[name], "WRITE", [row], [])
    return store


def publish_moves(process: Process) -> dict[str, int]:
    """Adds the row `new` to each table, and moves all its rows into one file."""
    branch = process.branch()
    for log in branch.values():
        change(log, "WRITE", ["new"], [])
        for _ in BEFORE:
            optimize(log, 0)
        assert log.snapshot().num_files == 1
    return publish(process.register, list(branch.values()))


def delete(log: DeltaLog, row: str) -> None:
    """Deletes a row, as a statement of this package, which is repeated after a conflict."""
    while True:
        with contextlib.suppress(ConcurrentModificationError):
            found = [each for each in log.snapshot().add_files() if row in rows_of(each.path)]
            left = [each for file in found for each in rows_of(file.path) if each != row]
            change(log, "DELETE", ["+".join(left)] if left else [], found)
            return


def check(store: Store, is_deleted: bool) -> bool:
    """Returns whether the publication was applied; fails if a row is lost or doubled, or it was applied in part."""
    for name in NAMES:
        change(Process(store, 60).logs[name], "WRITE", ["last"], [])
    found = {name: rows(Process(store, 61).logs[name]) for name in NAMES}
    applied = {"new" in each for each in found.values()}
    assert len(applied) == 1, found
    expected = Counter([*BEFORE, "last", *(["new"] if applied == {True} else [])])
    assert found["a"] == expected
    assert found["b"] == expected - Counter(["one"] if is_deleted else [])
    check_put_once(store)
    return applied.pop()


def story_of_a_writer(make: Callable[[], Store]) -> None:
    seen = set()
    for seed in SEEDS:
        store, scheduler = tables(make), Scheduler()
        publisher, writer = (Process(YieldingStore(store, scheduler), number) for number in (1, 2))
        result, deleted = scheduler.run(
            (partial(publish_moves, publisher), partial(delete, writer.logs["b"], "one")), random_order(seed)
        )
        assert deleted is None, deleted
        seen.add(check(store, is_deleted=True))
        assert outcome(result) in seen
    assert True in seen


def story_of_kills(make: Callable[[], Store], fate: str) -> None:
    seen = set()
    for writes in range(80):
        store = tables(make)
        dying = DyingStore(store, writes, fate)
        with contextlib.suppress(Killed):
            publish_moves(Process(dying, 1))
            break
        delete(Process(store, 2).logs["b"], "one")
        dying.arrive()
        seen.add(check(store, is_deleted=True))
    assert seen == {True, False}


@pytest.mark.parametrize("make", STORES.values(), ids=STORES)
def test_no_row_is_lost_or_doubled_next_to_a_writer_that_deletes_a_row(make: Callable[[], Store]) -> None:
    story_of_a_writer(make)


@pytest.mark.parametrize("fate", ["lost", "done", "late"])
@pytest.mark.parametrize("make", STORES.values(), ids=STORES)
def test_no_row_is_lost_or_doubled_after_a_publisher_was_killed(make: Callable[[], Store], fate: str) -> None:
    story_of_kills(make, fate)


def test_a_planted_bug_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bug: a file that another writer has removed is moved nevertheless."""
    monkeypatch.setattr(publication_tables, "check_conflicts", lambda _, pending: pending)
    assert fails(partial(story_of_a_writer, MemoryStore)) or fails(partial(story_of_kills, MemoryStore, "done"))
