"""Rows get their ids when they are published: no two rows have the same id, whatever other writers do."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from dbt.adapters.silt.engine.kernel.errors import ConcurrentModificationError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.publication import publication_tables
from dbt.adapters.silt.engine.kernel.publication.publish import PublishSettings, publish
from dbt.adapters.silt.engine.kernel.storage.store import PutResult, Store
from dbt.adapters.silt.engine.kernel.table.actions import (
    AddFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    serialize,
)
from dbt.adapters.silt.engine.kernel.table.paths import commit_path
from dbt.adapters.silt.engine.kernel.transaction import commit as committing
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit
from dbt.adapters.silt.engine.kernel.transaction.row_tracking import ROW_TRACKING_DOMAIN, high_water_mark
from tests.memory_object_store import MemoryObjectStore
from tests.memory_store import MemoryStore
from tests.publication.tables import NAMES, DyingStore, Killed, Process, has_whole
from tests.publication.test_interleaved import outcome
from tests.publication.test_planted_bugs import fails
from tests.simulation.interleaving import Scheduler, YieldingStore, random_order
from tests.unit.engine.kernel.log_builder import METADATA

STORES: dict[str, Callable[[], Store]] = {"folders": MemoryStore, "objects": MemoryObjectStore}
SEEDS = range(4)
TRACKED = Protocol(1, 7, None, ("rowTracking", "domainMetadata"))
TRACKING = replace(METADATA, configuration={"delta.enableRowTracking": "true"})
ROWS = 3
"""The number of rows in each file."""


def file(path: str) -> AddFile:
    return AddFile(path, {}, 10, 1_600_000_000_000, stats=json.dumps({"numRecords": ROWS}))


def tracked(store: Store, metadata: Metadata = TRACKING) -> Store:
    """Creates the tables, each with the file `old`."""
    for name in NAMES:
        child = store.child(f"main/{name}")
        child.make_folder("_delta_log")
        log = DeltaLog(child, name)
        commit(log, None, Changes(Operation("CREATE"), (), (), metadata, TRACKED), ReadSet(), CommitSettings())
        write(log, "old")
    return store


def write(log: DeltaLog, path: str, replaces: bool = False) -> None:
    log.store.put(path, b"data")
    base = log.snapshot()
    removes = tuple(each.remove(1) for each in base.add_files()) if replaces else ()
    commit(log, base, Changes(Operation("WRITE"), (file(path),), removes), ReadSet(), CommitSettings())


def publish_rows(process: Process, path: str, replaces: bool = False) -> dict[str, int]:
    """Adds two files to each table by two statements."""
    branch = process.branch()
    for log in branch.values():
        write(log, path, replaces)
        write(log, f"{path}-more")
    return publish(process.register, list(branch.values()))


def append_as_another_engine(process: Process, name: str, path: str) -> None:
    """Adds a file to a table with ids after the newest mark, without knowing publications."""
    store = process.store.child(f"main/{name}")
    store.put(path, b"data")
    while True:
        newest = DeltaLog(store, name).snapshot()
        first, version = high_water_mark(newest.domains) + 1, newest.version + 1
        added = replace(file(path), base_row_id=first, default_row_commit_version=version)
        mark = DomainMetadata(ROW_TRACKING_DOMAIN, json.dumps({"rowIdHighWaterMark": first + ROWS - 1}))
        entry = serialize([CommitInfo(operation="WRITE"), mark, added])
        if store.put_if_absent(commit_path(version), entry) is PutResult.CREATED:
            return


def check_ids(store: Store) -> None:
    """Checks that no row id was ever assigned twice, and that no mark ever falls."""
    for name in NAMES:
        log, used, mark = DeltaLog(store.child(f"main/{name}"), name), dict[int, str](), -1
        for each in log.commits():
            actions = each.actions
            for added in (action for action in actions if isinstance(action, AddFile)):
                first = added.base_row_id
                assert first is not None and added.default_row_commit_version is not None
                assert added.default_row_commit_version <= each.version
                for row in range(first, first + ROWS):
                    assert used.setdefault(row, added.path) == added.path, f"{name}: two rows have the id {row}"
            for domain in (action for action in actions if isinstance(action, DomainMetadata)):
                new = high_water_mark({ROW_TRACKING_DOMAIN: domain})
                assert new >= mark, f"{name}: the mark falls from {mark} to {new}"
                mark = new
            assert mark >= max(used, default=-1)


def story_of_writers(make: Callable[[], Store], replaces: bool) -> None:
    for seed in SEEDS:
        store, scheduler = tracked(make()), Scheduler()
        publisher, writer, other, second = (Process(YieldingStore(store, scheduler), number) for number in range(4))

        def append(writer: Process = writer) -> None:
            write(writer.logs["a"], "written")

        first, *_, last = scheduler.run(
            (
                partial(publish_rows, publisher, "new", replaces),
                append,
                partial(append_as_another_engine, other, "b", "theirs"),
                partial(publish_rows, second, "second"),
            ),
            random_order(seed),
        )
        outcome(first), outcome(last)
        for name in NAMES:
            write(Process(store, 90).logs[name], "last")
        has_whole(Process(store, 91).rows(), "new")
        check_ids(store)


def story_of_kills(make: Callable[[], Store], fate: str) -> None:
    seen = set()
    for writes in range(60):
        store = tracked(make())
        dying = DyingStore(store, writes, fate)
        with contextlib.suppress(Killed):
            publish_rows(Process(dying, 1), "new", replaces=True)
            break
        append_as_another_engine(Process(store, 2), "b", "theirs")
        write(Process(store, 3).logs["a"], "next")
        dying.arrive()
        for name in NAMES:
            write(Process(store, 4).logs[name], "last")
        seen.add(has_whole(Process(store, 5).rows(), "new"))
        check_ids(store)
    assert seen == {True, False}


def story_of_an_aborted_publication() -> None:
    store = tracked(MemoryStore())
    publisher, writer = Process(store, 1), Process(store, 2)
    base, branch = writer.logs["a"].snapshot(), publisher.branch()
    for log in branch.values():
        write(log, "new", replaces=True)
    conflicting = PublishSettings(announce=lambda _: write(writer.logs["b"], "theirs", replaces=True))
    with pytest.raises(ConcurrentModificationError):
        publish(publisher.register, list(branch.values()), settings=conflicting)
    assert [each.info.operation for each in publisher.logs["a"].commits(2)] == ["WRITE", "UNDO TRANSACTION"]
    writer.logs["a"].store.put("late", b"data")
    commit(writer.logs["a"], base, Changes(Operation("WRITE"), (file("late"),)), ReadSet(), CommitSettings())
    check_ids(store)


@pytest.mark.parametrize("replaces", [True, False])
@pytest.mark.parametrize("make", STORES.values(), ids=STORES)
def test_no_id_is_assigned_twice_beside_other_writers(make: Callable[[], Store], replaces: bool) -> None:
    story_of_writers(make, replaces)


@pytest.mark.parametrize("fate", ["lost", "done", "late"])
@pytest.mark.parametrize("make", STORES.values(), ids=STORES)
def test_no_id_is_assigned_twice_after_a_publisher_was_killed(make: Callable[[], Store], fate: str) -> None:
    story_of_kills(make, fate)


def test_ids_of_an_aborted_publication_are_not_assigned_again() -> None:
    story_of_an_aborted_publication()


def test_rows_have_no_ids_before_they_are_published() -> None:
    store = tracked(MemoryStore())
    process = Process(store, 1)
    branch = process.branch()
    for log in branch.values():
        write(log, "new")
        ids = {each.path: each.base_row_id for each in log.snapshot().add_files()}
        assert ids == {"old": 0, "new": None}
    write(process.logs["a"], "mains")
    publish(process.register, list(branch.values()))
    ids = {each.path: each.base_row_id for each in Process(store, 2).logs["a"].snapshot().add_files()}
    assert ids == {"old": 0, "mains": ROWS, "new": 2 * ROWS}


def assigns_on_the_branch(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(committing, "branch_of", lambda _: None)


def forgets_the_mark_of_an_aborted_publication(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(committing, "_is_lasting", lambda action: isinstance(action, (CommitInfo, Protocol)))


def ignores_the_marks_of_winners(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(publication_tables, "check_conflicts", lambda _, pending: pending)


@pytest.mark.parametrize(
    "plant",
    [assigns_on_the_branch, forgets_the_mark_of_an_aborted_publication, ignores_the_marks_of_winners],
)
def test_a_planted_bug_is_found(plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    stories = [
        partial(story_of_writers, MemoryStore, True),
        partial(story_of_kills, MemoryStore, "done"),
        story_of_an_aborted_publication,
    ]
    assert any(fails(story) for story in stories)  # type: ignore[arg-type]
