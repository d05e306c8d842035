"""A process that is killed at any write of a publication: readers see all of it or nothing, and others settle it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest

from dbt.adapters.silt.engine.catalog.names.log_end import end_log, is_last
from dbt.adapters.silt.engine.kernel.storage.store import Store
from tests.memory_object_store import MemoryObjectStore
from tests.memory_store import MemoryStore
from tests.publication.tables import NAMES, DyingStore, Killed, Process, check_put_once, create, has_whole
from tests.unit.engine.kernel.log_builder import paths

STORES: dict[str, Callable[[], Store]] = {"folders": MemoryStore, "objects": MemoryObjectStore}
FATES = ("lost", "done", "late")
_MOST_WRITES = 60


def killed(store: Store, writes: int, fate: str, **changes: object) -> DyingStore | None:
    """Publishes in a process that is killed at a write; None if it ended before."""
    dying = DyingStore(store, writes, fate)
    with contextlib.suppress(Killed):
        Process(dying, 1).publish("new", **changes)  # type: ignore[arg-type]
        return None
    return dying


def places(make: Callable[[], Store], fate: str, **changes: object) -> Iterator[tuple[Store, DyingStore]]:
    """For each write of a publication: the warehouse in which the process was killed at it."""
    for writes in range(_MOST_WRITES):
        store = make()
        create(store)
        dying = killed(store, writes, fate, **changes)
        if dying is None:
            return
        yield store, dying
    raise AssertionError("the publication does not end")


@pytest.mark.parametrize("fate", FATES)
@pytest.mark.parametrize("make", STORES.values(), ids=STORES)
def test_readers_see_all_or_nothing_before_and_after_the_next_writer(make: Callable[[], Store], fate: str) -> None:
    seen = set()
    for store, dying in places(make, fate):
        before = has_whole(Process(store, 2).rows(), "new")
        Process(store, 3).write("a", "next")
        rows = Process(store, 4).rows()
        dying.arrive()
        assert has_whole(Process(store, 5).rows(), "new") >= before
        for name in NAMES:
            Process(store, 6).write(name, f"last {name}")
        after = Process(store, 7).rows()
        assert has_whole(after, "new") >= before
        assert "next" in rows["a"] and {"old", "next", "last a"} <= after["a"] and {"old", "last b"} <= after["b"]
        assert Process(store, 8, settles=False).rows() == after, "other engines see something else"
        check_put_once(store)
        seen.add(has_whole(after, "new"))
    assert seen == {True, False}


@pytest.mark.parametrize("fate", FATES)
def test_a_conflict_with_another_engine_undoes_what_was_put(fate: str) -> None:
    undone = 0
    for store, dying in places(MemoryStore, fate, replaces=NAMES):
        Process(store, 2).append_as_another_engine("b", "theirs")
        dying.arrive()
        has_whole(Process(store, 3).rows(), "new")
        for name in NAMES:
            Process(store, 4).write(name, f"last {name}")
        after = Process(store, 5).rows()
        assert "theirs" in after["b"]
        assert has_whole(after, "new") is ("old" not in after["a"])
        assert ("old" in after["a"]) is ("old" in after["b"])
        assert Process(store, 6, settles=False).rows() == after
        undone += "old" in after["a"]
    assert undone > 2


def test_a_reader_that_cannot_write_leaves_an_undecided_publication_out() -> None:
    for store, _ in places(MemoryStore, "done"):
        reader = Process(DyingStore(store, 0), 99_000_000)
        with contextlib.suppress(Killed):
            has_whole(reader.rows(), "new")


def test_a_reader_settles_a_publication_that_was_left_for_long() -> None:
    for store, _ in places(MemoryStore, "done"):
        rows = Process(store, 99_000_000).rows()
        assert rows == Process(store, 3, settles=False).rows()
        has_whole(rows, "new")


def test_a_drop_of_a_table_leaves_the_publication_of_the_others_decided() -> None:
    ended = 0
    for store, dying in places(MemoryStore, "done"):
        dropping = Process(store, 2)
        end_log(dropping.logs["a"], dropping.register.clock)
        dying.arrive()
        assert is_last(Process(store, 3).logs["a"].snapshot())
        Process(store, 4).write("b", "next")
        log = Process(store, 5).logs["b"]
        assert {"old", "next"} <= paths(log) <= {"old", "next", "new"}
        assert paths(Process(store, 6, settles=False).logs["b"]) == paths(log)
        ended += 1
    assert ended > 10
