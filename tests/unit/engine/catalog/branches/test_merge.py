"""A merge publishes all changes of a named branch at one moment or none, with the result of a serial order."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from dbt.adapters.silt.engine.catalog.branches.branch import Branch
from dbt.adapters.silt.engine.catalog.branches.command_documents import CommandDocuments
from dbt.adapters.silt.engine.catalog.branches.named_branches import NamedBranches
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.errors import (
    BranchNotFoundError,
    ConcurrentModificationError,
    MergeConflictError,
    RunInProgressError,
    SiltError,
)
from dbt.adapters.silt.engine.kernel.storage.store import Store
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit
from tests.publication.tables import Killed
from tests.unit.engine.catalog.branches.test_branch_names import (
    AFTER,
    BEFORE,
    KEPT,
    MOST_WRITES,
    NEW,
    STORES,
    VIEW,
    Dying,
    append,
    change_all,
    create,
    filled,
    opened,
    shown,
    view,
)
from tests.unit.engine.kernel.log_builder import add, paths

MakeStore = Callable[[], Store]
FATES = ("lost", "done", "late")


def branches(catalog: Catalog) -> NamedBranches:
    return catalog.named_branches("silt")


def begun(store: Store, change: Callable[[Catalog], None]) -> None:
    """Creates a branch, and changes it in another process."""
    branches(opened(store)).create("pr_17", "ann")
    catalog = opened(store, 1)
    change(catalog.on_branch("silt", branches(catalog).join("pr_17")))


@pytest.fixture(params=list(STORES.values()), ids=list(STORES))
def store(request: pytest.FixtureRequest) -> Store:
    return filled(request.param)


def test_all_changes_are_visible_after_the_merge_and_the_branch_has_ended(store: Store) -> None:
    begun(store, change_all)
    joined = branches(opened(store, 2)).join("pr_17")
    versions = branches(opened(store, 3)).merge("PR_17")
    assert versions == {"silt.main.kept": 2, "silt.main.again": 2, "silt.main.new": 0, "silt.main.from_view": 0}
    assert shown(opened(store, 4)) == AFTER
    assert not branches(opened(store, 5)).all()
    with pytest.raises(ConcurrentModificationError, match="the branch `pr_17`"):
        joined.attempts.check_open()
    with pytest.raises(BranchNotFoundError):
        branches(opened(store, 6)).merge("pr_17")


def test_an_expired_branch_is_not_merged(store: Store) -> None:
    begun(store, change_all)
    late = opened(store, 3, later_ms=15 * 24 * 60 * 60 * 1000)
    with pytest.raises(BranchNotFoundError):
        branches(late).merge("pr_17")
    assert shown(late) == BEFORE


def test_two_merges_at_once_return_the_same_publication(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    begun(store, change_all)
    publish = Branch.publish_once

    def after_another(branch: Branch, *arguments: Any) -> dict[str, int]:
        monkeypatch.setattr(Branch, "publish_once", publish)
        branches(opened(store, 3)).merge("pr_17")
        return publish(branch, *arguments)

    monkeypatch.setattr(Branch, "publish_once", after_another)
    versions = branches(opened(store, 4)).merge("pr_17")
    assert versions["silt.main.kept"] == 2
    assert shown(opened(store, 5)) == AFTER and opened(store, 6).table(KEPT).snapshot().version == 2


def test_a_reader_on_a_deleted_branch_is_refused(store: Store) -> None:
    begun(store, change_all)
    known = branches(opened(store, 2))
    reader = known.join("pr_17")
    known.delete(known.find("pr_17"))
    with pytest.raises(ConcurrentModificationError, match="the branch `pr_17`"):
        reader.attempts.check_open()
    with pytest.raises(BranchNotFoundError):
        branches(opened(store, 3)).find("pr_17")


def test_a_conflict_names_the_table_and_the_commits_of_the_base(store: Store) -> None:
    def change(inside: Catalog) -> None:
        overwrite(inside, "branch")
        append(inside.table(NEWER), "x")

    begun(store, change)
    base = opened(store, 2)
    overwrite(base, "base")
    append(base.table(NEWER), "y")
    before = shown(base)
    with pytest.raises(MergeConflictError, match=r"silt.main.kept: .*\(v2 overwrite\)") as raised:
        branches(opened(store, 3)).merge("pr_17")
    assert "silt.main.again" not in str(raised.value)  # both sides have only appended
    assert shown(opened(store, 4)) == before and branches(opened(store, 5)).find("pr_17")
    append(opened(store, 6).on_branch("silt", branches(opened(store, 6)).join("pr_17")).table(NEWER), "z")


NEWER = RelationName("silt", "main", "again")


def test_only_the_state_with_the_hash_is_merged(store: Store) -> None:
    begun(store, lambda inside: append(inside.table(KEPT), "new"))
    known = branches(opened(store, 2))
    reviewed = known.opened(known.find("pr_17")).state_hash()
    changed = opened(store, 3)
    changed.on_branch("silt", branches(changed).join("pr_17")).put_view(view(VIEW, "select 3"), replace=True)
    for wrong in (reviewed, reviewed[:4], ""):
        with pytest.raises(ConcurrentModificationError, match="does not have the hash"):
            branches(opened(store, 4)).merge("pr_17", if_hash=wrong)
        assert shown(opened(store, 5)) == BEFORE
    present = known.opened(known.find("pr_17")).state_hash()
    assert present != reviewed
    assert branches(opened(store, 6)).merge("pr_17", if_hash=present[:12]) == {"silt.main.kept": 2}


def test_the_hash_covers_rows_names_and_code(store: Store) -> None:
    begun(store, lambda _: None)
    known, seen = branches(opened(store, 2)), set()
    changes: tuple[Callable[[Catalog], object], ...] = (
        lambda _: None,
        lambda inside: append(inside.table(KEPT), "new"),
        lambda inside: inside.put_view(view(VIEW, "select 3"), replace=True),
        lambda inside: inside.drop_table(NEWER),
        lambda inside: create(inside, NEW, "new"),
        lambda inside: inside.drop_schema("silt", "gone", cascade=True),
    )
    for seed, change in enumerate(changes):
        catalog = opened(store, 3 + seed)
        change(catalog.on_branch("silt", branches(catalog).join("pr_17")))
        seen.add(known.opened(known.find("pr_17")).state_hash())
    assert len(seen) == 6


def test_a_branch_on_which_a_command_works_is_not_merged(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    begun(store, change_all)
    with monkeypatch.context() as patch:
        patch.setattr(CommandDocuments, "at_work", lambda _: ("`dbt build`",))
        with pytest.raises(RunInProgressError):
            branches(opened(store, 2)).merge("pr_17")
    assert shown(opened(store, 3)) == BEFORE
    branches(opened(store, 4)).merge("pr_17")


def test_of_two_merges_at_once_one_merges(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    begun(store, change_all)
    publish, merged = Branch.publish_once, []

    def meanwhile(branch: Branch, *check: Callable[[], None]) -> dict[str, int]:
        monkeypatch.setattr(Branch, "publish_once", publish)
        merged.append(branches(opened(store, 3)).merge("pr_17"))
        return publish(branch, *check)

    monkeypatch.setattr(Branch, "publish_once", meanwhile)
    assert [branches(opened(store, 2)).merge("pr_17")] == merged
    assert shown(opened(store, 4)) == AFTER


@pytest.mark.parametrize("fate", FATES)
@pytest.mark.parametrize("make", STORES.values(), ids=STORES)
def test_a_merge_that_is_killed_at_any_write_is_whole_or_absent_and_is_completed(make: MakeStore, fate: str) -> None:
    for writes in range(MOST_WRITES):
        store = filled(make)
        begun(store, change_all)
        dying = Dying(store, writes, fate)
        with contextlib.suppress(Killed):
            branches(opened(dying, 2)).merge("pr_17")
            assert writes > 20
            return
        assert shown(opened(store, 3)) in (BEFORE, AFTER)
        dying.arrive()
        with contextlib.suppress(BranchNotFoundError):  # its last write was the end of the branch
            branches(opened(store, 4, later_ms=60_000)).merge("pr_17")
        assert shown(opened(store, 5, later_ms=60_000)) == AFTER
        assert not branches(opened(store, 6, later_ms=60_000)).all()
    raise AssertionError("the merge does not end")


@pytest.mark.parametrize("fate", FATES)
@pytest.mark.parametrize("make", STORES.values(), ids=STORES)
def test_a_deletion_that_is_killed_at_any_write_changes_nothing_and_is_completed(make: MakeStore, fate: str) -> None:
    for writes in range(MOST_WRITES):
        store = filled(make)
        begun(store, change_all)
        dying = Dying(store, writes, fate)
        with contextlib.suppress(Killed):
            known = branches(opened(dying, 2))
            known.delete(known.find("pr_17"))
            assert writes > 3
            return
        dying.arrive()
        again = branches(opened(store, 3))
        with contextlib.suppress(BranchNotFoundError):
            again.delete(again.find("pr_17"))
        assert shown(opened(store, 4)) == BEFORE and not branches(opened(store, 5)).all()
        assert branches(opened(store, 6)).create("pr_17", "bob").owner == "bob"
    raise AssertionError("the deletion does not end")


# The matrix: an operation on the branch, and an operation on the base


def write(catalog: Catalog, operation: str, adds: list[str], removes: list[str], reads: ReadSet) -> None:
    log = catalog.table(KEPT)
    snapshot = log.snapshot()
    for path in adds:
        log.store.put(path, b"data")
    gone = tuple(each.remove(1) for each in snapshot.add_files() if each.path in removes)
    if adds or gone:
        commit(log, snapshot, Changes(Operation(operation), tuple(map(add, adds)), gone), reads, CommitSettings())


def has_old(catalog: Catalog) -> list[str]:
    return [path for path in paths(catalog.table(KEPT)) if path == "old"]


def insert(catalog: Catalog, side: str) -> None:
    write(catalog, "insert", [f"inserted-{side}"], [], ReadSet())


def delete(catalog: Catalog, side: str) -> None:
    old = has_old(catalog)
    write(catalog, "delete", [], old, ReadSet(paths=frozenset(old)))


def update(catalog: Catalog, side: str) -> None:
    old = has_old(catalog)
    write(catalog, "update", [f"updated-{side}"] if old else [], old, ReadSet(paths=frozenset(old)))


def merge(catalog: Catalog, side: str) -> None:
    write(catalog, "merge", [f"merged-{side}"], has_old(catalog), ReadSet(whole_table=True))


def overwrite(catalog: Catalog, side: str) -> None:
    write(catalog, "overwrite", [f"all-{side}"], list(paths(catalog.table(KEPT))), ReadSet(whole_table=True))


def create_table(catalog: Catalog, side: str) -> None:
    create(catalog, NEW, f"created-{side}")


def drop(catalog: Catalog, side: str) -> None:
    catalog.drop_table(KEPT)


def rename(catalog: Catalog, side: str) -> None:
    catalog.rename(VIEW, RelationName("silt", "main", f"renamed_{side}"))


def alter(catalog: Catalog, side: str) -> None:
    log = catalog.table(KEPT)
    snapshot = log.snapshot()
    metadata = replace(snapshot.metadata, configuration={"side": side})
    commit(log, snapshot, Changes(Operation("alter"), metadata=metadata), ReadSet(), CommitSettings())


def put_view(catalog: Catalog, side: str) -> None:
    catalog.put_view(view(VIEW, f"select '{side}'"), replace=True)


OPERATIONS: Mapping[str, Callable[[Catalog, str], None]] = {
    each.__name__: each
    for each in (insert, delete, update, merge, overwrite, create_table, drop, rename, alter, put_view)
}
OBJECTS = {**dict.fromkeys(OPERATIONS, "kept"), "create_table": "new", "rename": "v", "put_view": "v"}


def state(store: Store) -> Mapping[str, object]:
    catalog = opened(store, 50)
    found: dict[str, object] = dict(shown(catalog))
    if catalog.find(KEPT) is not None:
        found["side"] = catalog.table(KEPT).snapshot().metadata.configuration.get("side")
    return found


def serial(make: MakeStore, *steps: tuple[str, str]) -> Mapping[str, object] | None:
    """The database after the operations, one after the other; None if one of them is impossible then."""
    store = filled(make)
    try:
        for seed, (operation, side) in enumerate(steps):
            OPERATIONS[operation](opened(store, 10 + seed), side)
    except SiltError:
        return None
    return state(store)


@pytest.mark.parametrize("on_base", OPERATIONS)
@pytest.mark.parametrize("on_branch", OPERATIONS)
@pytest.mark.parametrize("make", STORES.values(), ids=STORES)
def test_a_merge_has_the_result_of_a_serial_order_or_is_a_conflict(
    make: MakeStore, on_branch: str, on_base: str
) -> None:
    store = filled(make)
    begun(store, partial(lambda change, inside: change(inside, "branch"), OPERATIONS[on_branch]))
    OPERATIONS[on_base](opened(store, 2), "base")
    base = state(store)
    try:
        branches(opened(store, 3)).merge("pr_17")
    except ConcurrentModificationError:
        assert OBJECTS[on_branch] == OBJECTS[on_base] and (on_branch, on_base) != ("insert", "insert")
        assert state(store) == base
        return
    first, second = (on_branch, "branch"), (on_base, "base")
    assert state(store) in (serial(make, first, second), serial(make, second, first))
