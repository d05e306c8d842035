"""Two publishers, a writer, another engine and a reader, which take turns at each request."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from dbt.adapters.silt.engine.kernel.errors import ConcurrentModificationError, RunAgainError
from dbt.adapters.silt.engine.kernel.publication.publications import Publications
from dbt.adapters.silt.engine.kernel.storage.store import Store
from tests.memory_object_store import MemoryObjectStore
from tests.memory_store import MemoryStore
from tests.publication.tables import NAMES, DyingStore, Killed, Process, Rows, check_put_once, create, has_whole
from tests.simulation.interleaving import Scheduler, YieldingStore, random_order

SEEDS = range(10)
STORES: dict[str, Callable[[], Store]] = {"folders": MemoryStore, "objects": MemoryObjectStore}


class Story:
    """A warehouse, and processes that take turns in an order that depends on the seed."""

    def __init__(self, seed: int, make: Callable[[], Store] = MemoryStore) -> None:
        self.store = make()
        create(self.store)
        self.seed = seed
        self.scheduler = Scheduler()

    def process(self, seed: int) -> Process:
        return Process(YieldingStore(self.store, self.scheduler), seed)

    def run(self, *tasks: Callable[[], object]) -> list[Any]:
        return self.scheduler.run(tasks, random_order(self.seed))

    def rows(self) -> Rows:
        """The rows after all processes have ended, which another engine sees too."""
        for name in NAMES:
            Process(self.store, 98).write(name, "last")
        rows = Process(self.store, 99).rows()
        assert Process(self.store, 97, settles=False).rows() == rows
        check_put_once(self.store)
        return rows


def cuts(reader: Process) -> list[Rows]:
    """Three cuts, one after the other."""
    return [reader.rows() for _ in range(3)]


def outcome(result: object) -> bool:
    """Whether a publication was applied; fails on any result but the versions or a conflict."""
    assert isinstance(result, (dict, RunAgainError)), result
    return isinstance(result, dict)


@pytest.mark.parametrize("make", STORES.values(), ids=STORES)
def test_two_publications_that_replace_all_rows_are_in_one_order(make: Callable[[], Store]) -> None:
    applied = set()
    for seed in SEEDS:
        story = Story(seed, make)
        left, right, reader = (story.process(number) for number in (1, 2, 3))
        *results, seen = story.run(
            partial(left.publish, "left", replaces=NAMES),
            partial(right.publish, "right", replaces=NAMES),
            partial(cuts, reader),
        )
        outcomes = [outcome(result) for result in results]
        rows = story.rows()
        assert [has_whole(rows, "left"), has_whole(rows, "right")] in (
            outcomes,
            [outcomes[0], False],
            [False, outcomes[1]],
        )
        for each in seen:
            whole = has_whole(each, "left") + has_whole(each, "right") + has_whole(each, "old")
            assert whole == 1, each
        assert len(rows["a"] & {"left", "right", "old"}) == 1
        applied.add(tuple(outcomes))
    assert (True, False) in applied or (False, True) in applied


def test_publications_that_only_add_rows_are_both_applied() -> None:
    for seed in SEEDS:
        story = Story(seed)
        left, right, reader = (story.process(number) for number in (1, 2, 3))
        *results, seen = story.run(
            partial(left.publish, "left"), partial(right.publish, "right"), partial(cuts, reader)
        )
        assert all(map(outcome, results)), results
        for each in [*seen, story.rows()]:
            has_whole(each, "left")
            has_whole(each, "right")
        assert all({"old", "left", "right"} <= each for each in story.rows().values())


@pytest.mark.parametrize("replaces", [True, False])
def test_a_writer_and_another_engine_lose_nothing(replaces: bool) -> None:
    applied = set()
    for seed in SEEDS:
        story = Story(seed)
        publisher, writer, other, reader = (story.process(number) for number in (1, 2, 3, 4))
        *results, seen = story.run(
            partial(publisher.publish, "new", replaces=NAMES if replaces else ()),
            partial(writer.write, "b", "written"),
            partial(other.append_as_another_engine, "a", "theirs"),
            partial(cuts, reader),
        )
        is_applied = outcome(results[0])
        assert results[1:3] == [None, None], results
        rows = story.rows()
        assert has_whole(rows, "new") is is_applied
        assert is_applied or ("theirs" in rows["a"] and "written" in rows["b"])
        if not replaces:
            assert is_applied and "theirs" in rows["a"] and "written" in rows["b"]
        for each in seen:
            has_whole(each, "new")
        applied.add(is_applied)
    assert applied == ({True, False} if replaces else {True})


def test_a_read_of_a_table_is_checked_when_another_is_changed() -> None:
    results = set()
    for seed in SEEDS:
        story = Story(seed)
        publisher, writer = story.process(1), story.process(2)

        def skewed(publisher: Process = publisher) -> object:
            branch = publisher.branch()
            branch["a"].snapshot()
            return publisher.publish_with_read(branch, "new")

        result, _ = story.run(skewed, partial(writer.write, "a", "written"))
        results.add(type(result))
        assert isinstance(result, (dict, ConcurrentModificationError)), result
    assert dict in results and len(results) > 1


@pytest.mark.parametrize("fate", ["lost", "done", "late"])
def test_a_killed_publisher_beside_another_publisher_is_completed_or_undone(fate: str) -> None:
    for seed in range(2 * len(SEEDS)):
        story = Story(seed)
        dying = DyingStore(story.store, seed % 12, fate)
        killed, other = Process(YieldingStore(dying, story.scheduler), 1), story.process(2)

        def ends(killed: Process = killed) -> object:
            try:
                return killed.publish("left", replaces=NAMES)
            except Killed:
                return None

        _, result = story.run(ends, partial(other.publish, "right", replaces=NAMES))
        dying.arrive()
        rows = story.rows()
        has_whole(rows, "left")
        if has_whole(rows, "right"):
            assert outcome(result)
        assert len(rows["a"] & {"left", "right", "old"}) == 1


def test_a_statement_that_meets_no_publication_sends_no_request_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    create(store)
    writer = Process(store, 1)
    writer.publish("new")
    for name in NAMES:
        Process(store, 2).write(name, "next")
    monkeypatch.setattr(Publications, "is_published", None)
    assert has_whole(Process(store, 3).rows(), "new")
