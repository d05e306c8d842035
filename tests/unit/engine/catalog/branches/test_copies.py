"""A run that is published into a named branch shows all of its changes there at one moment, and nowhere else."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from dbt.adapters.silt.engine.catalog.branches import copies, named_documents
from dbt.adapters.silt.engine.catalog.branches.attempts import BranchAttempts
from dbt.adapters.silt.engine.catalog.branches.copies import BranchCopy
from dbt.adapters.silt.engine.catalog.branches.named_branches import NamedBranches
from dbt.adapters.silt.engine.catalog.branches.named_documents import NamedBranch
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.kernel.errors import (
    BranchNotFoundError,
    ConcurrentModificationError,
    RunInProgressError,
)
from dbt.adapters.silt.engine.kernel.storage.store import Store
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
    filled,
    opened,
    shown,
    view,
)
from tests.unit.engine.catalog.branches.test_run_branches import RUN, append_once, begun, work

MakeStore = Callable[[], Store]
ONTO = replace(RUN, onto="pr_17")
DAY_MS = 24 * 60 * 60 * 1000


def branches(catalog: Catalog) -> NamedBranches:
    return catalog.named_branches("silt")


def on_branch(catalog: Catalog) -> Catalog:
    return catalog.on_branch("silt", branches(catalog).branch("pr_17"))


def branched(make: MakeStore) -> Store:
    store = filled(make)
    branches(opened(store, 98)).create("pr_17", "ann")
    return store


@pytest.fixture(params=STORES.values(), ids=list(STORES))
def store(request: pytest.FixtureRequest) -> Store:
    return branched(request.param)


def run_to_its_end(catalog: Catalog) -> dict[str, int]:
    runs, run, branch, inside = begun(catalog, ONTO)
    if shown(on_branch(catalog)) != AFTER:
        work(inside)
    return runs.publish(run, branch)


def test_the_changes_of_a_run_are_on_the_branch_at_once_and_can_be_merged(store: Store) -> None:
    runs, run, branch, inside = begun(opened(store), ONTO)
    work(inside)
    assert shown(on_branch(opened(store, 1))) == BEFORE
    versions = runs.publish(run, branch)
    assert versions == {"silt.main.kept": 2, "silt.main.again": 4, "silt.main.new": 1, "silt.main.from_view": 1}
    assert shown(on_branch(opened(store, 2))) == AFTER
    assert shown(opened(store, 3)) == BEFORE
    branches(opened(store, 4)).merge("pr_17")
    assert shown(opened(store, 5)) == AFTER


def test_a_run_begins_with_the_changes_of_the_branch_and_adds_to_them(store: Store) -> None:
    run_to_its_end(opened(store))
    runs, run, branch, inside = begun(opened(store, 1), replace(ONTO, run_id="run-2"))
    append(inside.table(NEW), "more")
    inside.put_view(view(VIEW, "select 3"), replace=True)
    assert runs.publish(run, branch) == {"silt.main.new": 2}
    expected = {**AFTER, "new": "table ['more', 'new']", "v": "view select 3"}
    assert shown(on_branch(opened(store, 2))) == expected


def test_a_held_run_that_is_dropped_leaves_the_branch_as_it_was(store: Store) -> None:
    run_to_its_end(opened(store))
    runs, run, branch, inside = begun(opened(store, 1), replace(ONTO, run_id="run-2"))
    inside.drop_table(NEW)
    inside.put_view(view(VIEW, "select 3"), replace=True)
    runs.drop(run, branch)
    later = opened(store, 2)
    assert shown(on_branch(later)) == AFTER
    assert later.table(KEPT).store.read("new") == b"data"


def test_changes_on_the_branch_since_the_run_began_are_kept(store: Store) -> None:
    runs, run, branch, inside = begun(opened(store), ONTO)
    append_once(inside, KEPT)
    other = opened(store, 1)
    session = branches(other).join("pr_17")
    other.on_branch("silt", session).put_view(view(VIEW, "select 7"), replace=True)
    runs.publish(run, branch)
    assert shown(on_branch(opened(store, 2))) == {**BEFORE, "kept": AFTER["kept"], "v": "view select 7"}
    with pytest.raises(ConcurrentModificationError, match="was published"):
        session.attempts.check_open()


def test_a_table_that_both_have_changed_is_a_conflict_and_runs_again(store: Store) -> None:
    runs, run, branch, inside = begun(opened(store), ONTO)
    append_once(inside, KEPT)
    inside.put_view(view(VIEW, "select 2"), replace=True)
    other = opened(store, 1)
    append(other.on_branch("silt", branches(other).join("pr_17")).table(KEPT), "by hand")
    assert list(branch.conflicts("silt")) == [("main", "kept")] == list(branch.outdated())
    with pytest.raises(ConcurrentModificationError, match=r"main.kept: another program has changed it on the branch"):
        runs.publish(run, branch)
    run, branch, _ = runs.begin_again(run, branch, {("main", "kept")}, runs.later(run))
    again = opened(store, 2).on_branch("silt", branch)
    assert shown(again) == {**BEFORE, "kept": "table ['by hand', 'old']", "v": "view select 2"}
    append_once(again, KEPT)
    assert runs.publish(run, branch) == {"silt.main.kept": 3}
    expected = {**BEFORE, "kept": "table ['by hand', 'new', 'old']", "v": "view select 2"}
    assert shown(on_branch(opened(store, 3))) == expected


def test_two_runs_on_a_branch_are_published_one_after_the_other(store: Store) -> None:
    first = begun(opened(store), ONTO)
    second = begun(opened(store, 1), replace(ONTO, run_id="run-2"))
    append_once(first[3], KEPT)
    second[3].put_view(view(VIEW, "select 2"), replace=True)
    for runs, run, branch, _ in (second, first):
        runs.publish(run, branch)
    assert shown(on_branch(opened(store, 2))) == {**BEFORE, "kept": AFTER["kept"], "v": "view select 2"}


def test_a_branch_is_not_merged_without_a_held_run_and_deleted_with_it(store: Store) -> None:
    runs, run, branch, inside = begun(opened(store), ONTO)
    work(inside)
    runs.hold(run, "a test failed")
    with pytest.raises(RunInProgressError, match="the run run-1 on the branch `pr_17` is held"):
        branches(opened(store, 1)).merge("pr_17")
    known = branches(opened(store, 2))
    known.delete(known.find("pr_17"))
    assert not opened(store, 3).run_branches("silt").all() and shown(opened(store, 4)) == BEFORE
    branches(opened(store, 5)).create("pr_17", "ann")
    with pytest.raises(ConcurrentModificationError):
        runs.publish(run, branch)


def test_a_run_onto_an_unknown_branch_begins_nothing(store: Store) -> None:
    with pytest.raises(BranchNotFoundError, match="the branch `pr_71` does not exist"):
        opened(store).run_branches("silt").open(replace(ONTO, onto="pr_71"))
    assert not opened(store, 1).run_branches("silt").all()


def test_the_same_run_id_outside_of_the_branch_is_another_run(store: Store) -> None:
    begun(opened(store), ONTO)
    _, run, _, _ = begun(opened(store, 1))
    assert run.onto == "" and len(opened(store, 2).run_branches("silt").all()) == 2


def test_a_branch_whose_name_means_the_earlier_copy_is_kept_longer_than_a_run(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(named_documents, "move", lambda *_: None)  # killed after the decision
        run_to_its_end(opened(store))
    opened(store, 1, later_ms=10 * DAY_MS).new_branch("silt")  # deletes old branches
    assert shown(on_branch(opened(store, 2, later_ms=10 * DAY_MS))) == AFTER


def killed_and_continued(make: MakeStore, fate: str, every: int) -> None:
    for writes in range(0, 3 * MOST_WRITES, every):
        store = branched(make)
        dying = Dying(store, writes, fate)
        with contextlib.suppress(Killed):
            run_to_its_end(opened(dying, 1))
            assert writes > 20
            return
        seen = shown(on_branch(opened(store, 2)))
        assert seen in (BEFORE, AFTER), (writes, seen)
        dying.arrive()
        run_to_its_end(opened(store, 3, later_ms=60_000))
        later = opened(store, 4, later_ms=60_000)
        assert shown(on_branch(later)) == AFTER and shown(later) == BEFORE, writes
        assert on_branch(later).table(KEPT).snapshot().version == 2, "the unit of work was committed twice"
    raise AssertionError("the run does not end")


@pytest.mark.parametrize("fate", ["lost", "done", "late"])
@pytest.mark.parametrize("every", [37, pytest.param(1, marks=pytest.mark.long)], ids=["a few writes", "each write"])
@pytest.mark.parametrize("make", STORES.values(), ids=list(STORES))
def test_a_run_killed_at_any_write_is_published_into_the_branch_whole_and_once(
    make: MakeStore, every: int, fate: str
) -> None:
    killed_and_continued(make, fate, every)


def looks_for_no_changes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(BranchCopy, "_check_publishable", lambda *_: None)


def forgets_the_changes_of_others(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(copies, "present_state", lambda _, branch: branch.hashes())


def ends_only_the_branch(patch: pytest.MonkeyPatch) -> None:
    announce = BranchAttempts.announce

    def announced(attempts: BranchAttempts, publication: int | None, following: NamedBranch | None = None) -> None:
        if following is not None or publication is None:
            announce(attempts, publication, following)

    patch.setattr(BranchAttempts, "announce", announced)


def test_a_change_while_the_run_is_published_is_not_lost(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    runs, run, branch, inside = begun(opened(store), ONTO)
    append_once(inside, KEPT)
    other = opened(store, 1)
    session = other.on_branch("silt", branches(other).join("pr_17"))
    announced = BranchCopy._announced

    def after_a_change(*arguments: Any) -> bool:
        if session.view(VIEW).text != "select 7":
            session.put_view(view(VIEW, "select 7"), replace=True)
        return announced(*arguments)

    monkeypatch.setattr(BranchCopy, "_announced", after_a_change)
    runs.publish(run, branch)
    assert shown(on_branch(opened(store, 2))) == {**BEFORE, "kept": AFTER["kept"], "v": "view select 7"}
    assert opened(store, 3).run_branches("silt").end_of(run) == "published"


@pytest.mark.parametrize("plant", [looks_for_no_changes, forgets_the_changes_of_others, ends_only_the_branch])
def test_a_planted_bug_is_found(plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        test_a_table_that_both_have_changed_is_a_conflict_and_runs_again(branched(STORES["objects"]))
        test_a_change_while_the_run_is_published_is_not_lost(branched(STORES["objects"]), monkeypatch)
