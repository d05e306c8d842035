"""A run that conflicts continues on another branch without the relations that conflict, wherever it is killed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace

import pytest

from dbt.adapters.silt.engine.catalog.branches.conflicts import Relation
from dbt.adapters.silt.engine.catalog.branches.named_documents import NamedBranch
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.kernel.errors import ConcurrentModificationError
from dbt.adapters.silt.engine.kernel.storage.store import Store
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit
from tests.publication.tables import Killed
from tests.unit.engine.catalog.branches.test_branch_names import (
    AFTER,
    BEFORE,
    DROPPED,
    KEPT,
    NEW,
    NEW_VIEW,
    STORES,
    Dying,
    append,
    filled,
    opened,
    shown,
    view,
)
from tests.unit.engine.catalog.branches.test_later_statements import A, waiting
from tests.unit.engine.catalog.branches.test_run_branches import RUN, append_once, begun, create_once, left, work
from tests.unit.engine.kernel.log_builder import METADATA, PROTOCOL

_KEPT: Relation = ("main", KEPT.identifier)
_NEW_VIEW: Relation = ("main", NEW_VIEW.identifier)
_MOST_WRITES = 60


@pytest.fixture(params=STORES.values(), ids=list(STORES))
def store(request: pytest.FixtureRequest) -> Store:
    return filled(request.param)


def disturb(catalog: Catalog) -> None:
    """Another program changes the metadata of `kept`, and creates the view that the run creates too."""
    log = catalog.table(KEPT)
    snapshot = log.snapshot()
    metadata = replace(snapshot.metadata, description="theirs")
    commit(log, snapshot, Changes(Operation("COMMENT"), metadata=metadata), ReadSet(), CommitSettings())
    catalog.put_view(view(NEW_VIEW, "theirs"), replace=True)


def test_the_relations_that_conflict_are_found_and_the_others_are_kept(store: Store) -> None:
    runs, run, branch, inside = begun(opened(store))
    work(inside)
    assert branch.conflicts("silt") == {}
    disturb(opened(store, 1))
    conflicts = branch.conflicts("silt")
    assert set(conflicts) == {_KEPT, _NEW_VIEW}
    run, other, _ = runs.begin_again(run, branch, conflicts, runs.later(run))
    within = opened(store, 2).on_branch("silt", other)
    seen = shown(within)
    assert seen["kept"] == BEFORE["kept"] and seen["new_view"] == "view theirs"
    assert {name: each for name, each in seen.items() if name not in ("kept", "new_view")} == {
        name: each for name, each in AFTER.items() if name not in ("kept", "new_view")
    }
    append_once(within, KEPT)
    within.put_view(view(NEW_VIEW, "select 2"), replace=True)
    assert other.conflicts("silt") == {}
    runs.publish(run, other)
    assert shown(opened(store, 3)) == AFTER
    assert opened(store, 3).table(KEPT).snapshot().metadata.description == "theirs"
    assert not left(store)


@pytest.mark.parametrize("kind", ["dropped", "created again", "created"])
def test_a_table_that_was_dropped_or_created_by_others_is_a_conflict(store: Store, kind: str) -> None:
    _, _, branch, inside = begun(opened(store))
    append_once(inside, KEPT)
    create_once(inside, NEW)
    other = opened(store, 1)
    if kind == "created":
        create_once(other, NEW)
    else:
        other.drop_table(KEPT)
    if kind == "created again":
        log = other.new_table(KEPT, False)
        metadata = replace(METADATA, id="another table")
        commit(
            log,
            None,
            Changes(Operation("CREATE TABLE"), protocol=PROTOCOL, metadata=metadata),
            ReadSet(),
            CommitSettings(),
        )
        other.publish_table(KEPT, log, False)
    assert set(branch.conflicts("silt")) == {("main", "new") if kind == "created" else _KEPT}


def test_a_process_that_still_works_on_the_branch_can_end_nothing(store: Store) -> None:
    first, second = begun(opened(store)), begun(opened(store, 1))
    work(first[3])
    disturb(opened(store, 2))
    first[0].begin_again(first[1], first[2], {_KEPT, _NEW_VIEW}, first[0].later(first[1]))
    with pytest.raises(ConcurrentModificationError, match="another process"):
        second[0].begin_again(second[1], second[2], {_KEPT}, second[0].later(second[1]))
    with pytest.raises(ConcurrentModificationError):
        second[0].publish(second[1], second[2])


def test_what_a_session_has_changed_before_it_sees_the_end_is_kept(store: Store) -> None:
    runs, run, branch, inside = begun(opened(store))
    work(inside)
    session = opened(store, 1).run_branches("silt").join(RUN.run_id)
    announce = branch.attempts.announce

    def after_the_session(publication: int | None, following: NamedBranch | None = None) -> None:
        append(opened(store, 1).on_branch("silt", session).table(NEW), "by hand")
        announce(publication)

    branch.attempts.announce = after_the_session  # type: ignore[method-assign]
    run, other, _ = runs.begin_again(run, branch, {_KEPT}, runs.later(run))
    runs.publish(run, other)
    assert shown(opened(store, 2)) == {**AFTER, "kept": BEFORE["kept"], "new": "table ['by hand', 'new']"}
    with pytest.raises(ConcurrentModificationError, match="continues on another branch"):
        session.attempts.check_open()


def test_a_table_that_was_only_read_stays_at_its_version_unless_it_is_lost(store: Store) -> None:
    runs, run, branch, inside = begun(opened(store))
    for name in (KEPT, DROPPED):
        inside.table(name).snapshot()
    for name in (KEPT, DROPPED):
        append(opened(store, 1).table(name), "theirs")
    assert set(branch.outdated()) == {_KEPT, ("main", DROPPED.identifier)}
    run, other, _ = runs.begin_again(run, branch, {_KEPT}, runs.later(run))
    seen = shown(opened(store, 2).on_branch("silt", other))
    assert (seen["kept"], seen["dropped"]) == ("table ['old', 'theirs']", "table ['old']")
    assert set(other.outdated()) == {("main", DROPPED.identifier)}


@pytest.mark.parametrize("kind", ["dropped", "replaced"])
def test_a_table_that_is_no_longer_the_table_that_was_read_is_outdated(store: Store, kind: str) -> None:
    _, _, branch, inside = begun(opened(store))
    inside.table(KEPT).snapshot()
    other = opened(store, 1)
    other.drop_table(KEPT)
    if kind == "replaced":
        other.put_view(view(KEPT, "select 1"))
    assert branch.outdated() == {_KEPT: f"silt.main.kept was {kind}"}


@pytest.mark.parametrize("fate", ["lost", "done", "late"])
@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.long)], ids=["a few writes", "each write"])
@pytest.mark.parametrize("make", STORES.values(), ids=list(STORES))
def test_a_run_killed_while_it_begins_again_is_published_whole(
    make: Callable[[], Store], every: int, fate: str
) -> None:
    for writes in range(0, _MOST_WRITES, every):
        store = filled(make)
        runs, run, branch, inside = begun(opened(store))
        work(inside)
        runs.later(run).add("model.a", [A])
        disturb(opened(store, 1))
        dying, over = Dying(store, writes, fate), False
        with contextlib.suppress(Killed):
            late = opened(dying, 2).run_branches("silt")
            late.begin_again(run, late.existing(run), {_KEPT, _NEW_VIEW}, late.later(run))
            over = True
        dying.arrive()
        runs, run, branch, inside = begun(opened(store, 3, later_ms=60_000))
        if conflicts := branch.conflicts("silt"):
            run, branch, _ = runs.begin_again(run, branch, conflicts, runs.later(run))
            inside = opened(store, 4, later_ms=60_000).on_branch("silt", branch)
        if inside.find(DROPPED) is not None or over:
            runs.later(run).add("model.a", [A])
        work(inside)
        runs.publish(run, branch)
        assert shown(opened(store, 5)) == AFTER
        assert waiting(opened(store, 6, later_ms=60_000)) == [A]
        if over:
            break
    else:
        raise AssertionError("it does not end")
