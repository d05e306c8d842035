"""A publication changes a table and consumes its changes: each row is copied once, whatever other writers do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from dbt.adapters.silt.engine.kernel.errors import ConcurrentModificationError, SiltError, UnsupportedStatementError
from dbt.adapters.silt.engine.kernel.log.builds import INFO_KEY, BuildFacts, TableState
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.publication import attempts, publication_tables, publish, published_versions
from dbt.adapters.silt.engine.kernel.scan.change_feed import changes_after
from dbt.adapters.silt.engine.kernel.storage.store import PutResult, Store
from dbt.adapters.silt.engine.kernel.table.actions import CommitInfo, Metadata, SetTransaction, serialize
from dbt.adapters.silt.engine.kernel.table.paths import commit_path
from dbt.adapters.silt.engine.kernel.transaction.branch_log import BranchLog
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit
from dbt.adapters.silt.engine.kernel.transaction.positions import app_id_of, recorded_position
from tests.memory_object_store import MemoryObjectStore
from tests.memory_store import MemoryStore
from tests.publication.tables import NAMES, DyingStore, Killed, Process
from tests.publication.test_interleaved import Story
from tests.unit.engine.kernel.log_builder import METADATA, add

SEEDS = range(8)
STORES: dict[str, Callable[[], Store]] = {"folders": MemoryStore, "objects": MemoryObjectStore}


def tables(store: Store) -> None:
    """Gives the tables ids of their own; `b` holds no copy yet."""
    for name in NAMES:
        log = DeltaLog(store.child(f"main/{name}"), name)
        metadata = replace(METADATA, id=f"id-{name}")
        removes = [each.remove(1) for each in log.snapshot().add_files()] if name == "b" else []
        entry = serialize([CommitInfo(), metadata, *removes])
        assert log.store.put_if_absent(commit_path(2), entry) is PutResult.CREATED


def story(seed: int, make: Callable[[], Store] = MemoryStore) -> Story:
    found = Story(seed, make)
    tables(found.store)
    return found


def consume(source: DeltaLog, target: DeltaLog, tag: str) -> None:
    """Copies to a table the rows that were added to another table since its position."""
    base, end = target.snapshot(), source.snapshot()
    recorded = recorded_position(base, end.metadata.id)
    rows = {each.path for each in end.add_files()} if recorded is None else added(source, recorded.version)
    position = SetTransaction(app_id_of(end.metadata.id, "a"), end.version)
    files = tuple(add(f"{row}@{tag}") for row in sorted(rows))
    for file in files:
        target.store.put(file.path, b"data")
    facts = BuildFacts("b", "code", tables={"a": TableState.of(end.metadata, end.version)})
    settings = CommitSettings(commit_info=facts.commit_info(), read_versions={"a": [end.version]})
    commit(target, base, Changes(Operation("WRITE"), files, transactions=(position,)), ReadSet(), settings)


def added(source: DeltaLog, after: int) -> set[str]:
    found: set[str] = set()
    for version in changes_after(source, after, source.snapshot()).versions:
        found -= {each.path for each in version.deleted}
        found |= {each.path for each in version.inserted}
    return found


def write(log: DeltaLog, row: str) -> None:
    log.store.put(row, b"data")
    commit(log, log.snapshot(), Changes(Operation("WRITE"), (add(row),)), ReadSet(), CommitSettings())


def run(process: Process, row: str, announce: Callable[[int], None] | None = None) -> dict[str, int]:
    """Adds a row to `a` and consumes the changes of `a`, in one publication."""
    branch = process.branch()
    write(branch["a"], row)
    consume(branch["a"], branch["b"], row)
    settings = publish.PublishSettings(announce=announce)
    return publish.publish(process.register, list(branch.values()), settings=settings)


def optimize(process: Process) -> None:
    """Adds commits to `a` that change no rows."""
    for _ in range(3):
        log = process.logs["a"]
        commit(log, log.snapshot(), Changes(Operation("OPTIMIZE")), ReadSet(), CommitSettings())


def check_copies(store: Store) -> None:
    """Consumes what is left, and checks that each row of `a` has one copy in `b`."""
    process = Process(store, 90)
    for name in NAMES:
        process.write(name, f"last-{name}")
    consume(process.logs["a"], process.logs["b"], "end")
    rows = process.rows()
    copies = sorted(row.split("@")[0] for row in rows["b"] - {"last-b"})
    assert copies == sorted(rows["a"]), rows


def outcomes(results: Iterable[object]) -> list[bool]:
    found = list(results)
    assert all(isinstance(each, (dict, ConcurrentModificationError)) for each in found), found
    return [isinstance(each, dict) for each in found]


def published(story: Story) -> CommitInfo:
    """The `commitInfo` of the newest commit of `b`."""
    return next(iter(Process(story.store, 80).logs["b"].newest_commits())).info


@pytest.mark.parametrize("make", STORES.values(), ids=STORES)
def test_commits_that_change_no_rows_are_not_in_the_way(make: Callable[[], Store]) -> None:
    for seed in SEEDS:
        beside = story(seed, make)
        publisher, other = beside.process(1), beside.process(2)
        result, done = beside.run(partial(run, publisher, "new"), partial(optimize, other))
        assert (outcomes([result]), done) == ([True], None)
        version, facts = result["a"], BuildFacts.of_info(published(beside))
        recorded = recorded_position(Process(beside.store, 80).logs["b"].snapshot(), "id-a")
        assert recorded is not None and recorded.version == version
        assert facts is None or facts.tables["a"].version == version
        check_copies(beside.store)


@pytest.mark.parametrize("make", STORES.values(), ids=STORES)
def test_a_commit_between_the_checks_and_the_publication_moves_the_publication(make: Callable[[], Store]) -> None:
    beside = story(1, make)
    publisher, other = Process(beside.store, 1), Process(beside.store, 2)
    announced: list[int] = []

    def announce(publication: int) -> None:
        announced.append(publication)
        if len(announced) == 1:
            optimize(other)

    version = run(publisher, "new", announce)["a"]
    recorded = recorded_position(Process(beside.store, 80).logs["b"].snapshot(), "id-a")
    assert recorded is not None and recorded.version == version
    assert len(announced) == 2
    check_copies(beside.store)


def test_a_row_that_is_added_between_the_checks_and_the_publication_is_a_conflict() -> None:
    beside = story(1)
    publisher, other = Process(beside.store, 1), Process(beside.store, 2)
    with pytest.raises(ConcurrentModificationError, match="another writer"):
        run(publisher, "new", lambda _: other.write("a", "theirs"))
    check_copies(beside.store)


@pytest.mark.parametrize("make", STORES.values(), ids=STORES)
def test_rows_that_another_writer_adds_are_copied_once(make: Callable[[], Store]) -> None:
    seen = set()
    for seed in SEEDS:
        beside = story(seed, make)
        publisher, writer, engine = (beside.process(number) for number in (1, 2, 3))
        results = beside.run(
            partial(run, publisher, "new"),
            partial(writer.write, "a", "written"),
            partial(engine.append_as_another_engine, "a", "theirs"),
        )
        seen.add(outcomes(results[:1])[0])
        assert results[1:] == [None, None]
        check_copies(beside.store)
    assert seen == {True, False}


def test_of_two_runs_that_consume_the_same_changes_each_row_is_copied_once() -> None:
    seen = set()
    for seed in SEEDS:
        beside = story(seed)
        left, right = beside.process(1), beside.process(2)
        seen.add(tuple(outcomes(beside.run(partial(run, left, "left"), partial(run, right, "right")))))
        check_copies(beside.store)
    assert seen & {(True, False), (False, True)}


@pytest.mark.parametrize("fate", ["lost", "done", "late"])
def test_a_killed_run_copies_each_row_once(fate: str) -> None:
    for seed in SEEDS:
        beside = story(seed)
        dying = DyingStore(beside.store, 6 + seed % 10, fate)
        killed, other = Process(dying, 1), Process(beside.store, 2)
        try:
            run(killed, "new")
        except Killed:
            optimize(other)
        dying.arrive()
        check_copies(beside.store)


def test_changes_after_the_consumed_version_cannot_be_published() -> None:
    process = Process(story(1).store, 1)
    branch = process.branch()
    write(branch["a"], "one")
    consume(branch["a"], branch["b"], "one")
    write(branch["a"], "two")
    with pytest.raises(UnsupportedStatementError, match="changed again"):
        publish.publish(process.register, list(branch.values()))
    consume(branch["a"], branch["b"], "two")
    publish.publish(process.register, list(branch.values()))
    check_copies(process.store)


def test_a_version_before_the_branch_is_left_as_it_is() -> None:
    beside = story(1)
    process = Process(beside.store, 1)
    branch = process.branch()
    consume(branch["a"], branch["b"], "one")
    write(branch["a"], "two")
    publish.publish(process.register, list(branch.values()))
    facts = BuildFacts.of_info(published(beside))
    assert (facts and facts.tables["a"].version, published(beside).read_versions) == (2, {"a": [2]})
    check_copies(process.store)


def test_facts_of_rows_that_are_not_published_are_left_out() -> None:
    beside = story(1)
    process = Process(beside.store, 1)
    branch = process.branch()
    write(branch["a"], "one")
    snapshot = branch["a"].snapshot()
    facts = BuildFacts("b", "code", tables={"a": TableState.of(snapshot.metadata, snapshot.version)})
    settings = CommitSettings(commit_info=facts.commit_info(), read_versions={"a": [snapshot.version]})
    changes = Changes(Operation("WRITE"), (add("copy"),))
    branch["b"].store.put("copy", b"data")
    commit(branch["b"], branch["b"].snapshot(), changes, ReadSet(), settings)
    write(process.logs["a"], "of another writer")
    publish.publish(process.register, list(branch.values()))
    assert INFO_KEY not in published(beside).extra
    assert published(beside).read_versions == {"a": [2]}


@pytest.mark.parametrize("later", ["rows", "columns", "comment"])
def test_facts_of_a_build_are_kept_if_nothing_has_changed_its_rows_or_columns_since(later: str) -> None:
    beside = story(1)
    process = Process(beside.store, 1)
    branch = process.branch()
    facts = BuildFacts("b", "code")
    write(branch["a"], "one")
    base = branch["b"].snapshot()
    changes = Changes(Operation("WRITE"), (add("row"),))
    branch["b"].store.put("row", b"data")
    commit(branch["b"], base, changes, ReadSet(), CommitSettings(commit_info=facts.commit_info()))
    follow(branch["b"], base.metadata, later)
    publish.publish(process.register, list(branch.values()))
    assert (BuildFacts.of_info(published(beside)) is not None) is (later == "comment")


def follow(log: BranchLog, metadata: Metadata, change: str) -> None:
    others = {
        "columns": replace(metadata, schema_string=metadata.schema_string.replace('"day"', '"date"')),
        "comment": replace(metadata, description="a comment"),
    }
    if change == "rows":
        write(log, "later")
    else:
        changes = Changes(Operation("ALTER"), metadata=others[change])
        commit(log, log.snapshot(), changes, ReadSet(), CommitSettings())


def forgets_the_versions(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(attempts, "with_published_versions", lambda tables, _: tables)


def pins_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(publication_tables.ExistingTable, "pinned", lambda table: table)


def sees_no_other_writer(patch: pytest.MonkeyPatch) -> None:
    version = property(lambda table: table.pending.base.version + 1)
    patch.setattr(publication_tables.ExistingTable, "next_version", version)


def takes_any_version(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(published_versions._Published, "version_of", lambda each, _: each.table.next_version)


BUGS: Sequence[Callable[[pytest.MonkeyPatch], None]] = (
    forgets_the_versions,
    pins_nothing,
    sees_no_other_writer,
    takes_any_version,
)


@pytest.mark.parametrize("plant", BUGS, ids=[bug.__name__ for bug in BUGS])
def test_a_planted_bug_is_found(plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    stories: tuple[Callable[[], Any], ...] = (
        lambda: test_commits_that_change_no_rows_are_not_in_the_way(MemoryStore),
        lambda: test_a_commit_between_the_checks_and_the_publication_moves_the_publication(MemoryStore),
        test_a_row_that_is_added_between_the_checks_and_the_publication_is_a_conflict,
        test_changes_after_the_consumed_version_cannot_be_published,
        test_a_version_before_the_branch_is_left_as_it_is,
    )
    with pytest.raises((AssertionError, SiltError, pytest.fail.Exception)):
        for each in stories:
            each()
