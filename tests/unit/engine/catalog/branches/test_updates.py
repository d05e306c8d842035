"""An update moves a branch to the present tables, keeps what is still valid, and names the nodes to build again."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from dbt.adapters.silt.engine.catalog.branches.conflicts import Relation
from dbt.adapters.silt.engine.catalog.branches.named_branches import NamedBranches
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.errors import ConcurrentModificationError, MergeConflictError, RunInProgressError
from dbt.adapters.silt.engine.kernel.storage.store import Store
from dbt.adapters.silt.engine.kernel.table.actions import CommitInfo
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit
from tests.publication.tables import Killed
from tests.unit.engine.catalog.branches.test_branch_names import (
    AGAIN,
    DROPPED,
    KEPT,
    MOST_WRITES,
    STORES,
    VIEW,
    Dying,
    append,
    create,
    filled,
    opened,
    shown,
    view,
)
from tests.unit.engine.catalog.branches.test_run_branches import RUN
from tests.unit.engine.kernel.log_builder import add

MakeStore = Callable[[], Store]
LATER = RelationName("silt", "main", "later")


def branches(catalog: Catalog) -> NamedBranches:
    return catalog.named_branches("silt")


def on_branch(catalog: Catalog, joins: bool = False) -> Catalog:
    known = branches(catalog)
    return catalog.on_branch("silt", known.join("pr_17") if joins else known.branch("pr_17"))


def by_node(relation: Relation, infos: Sequence[CommitInfo]) -> frozenset[str]:
    """Every table was written by the node of its name."""
    return frozenset({f"model.shop.{relation[1]}"})


def write(catalog: Catalog, name: RelationName, path: str, *read: RelationName) -> None:
    """Appends a file to a table, after reading other tables."""
    log = catalog.table(name)
    log.store.put(path, b"data")
    versions = {str(each): [catalog.table(each).snapshot().version] for each in read}
    changes = Changes(Operation("WRITE"), (add(path),))
    commit(log, log.snapshot(), changes, ReadSet(whole_table=True), CommitSettings(read_versions=versions))


def moved(make: MakeStore) -> Store:
    """A branch that has changed three tables, of which one has read a table that its base has changed since."""
    store = filled(make)
    branches(opened(store, 98)).create("pr_17", "ann")
    inside = on_branch(opened(store, 1), joins=True)
    write(inside, KEPT, "branch")
    write(inside, AGAIN, "branch", DROPPED)
    inside.put_view(view(VIEW, "select 7"), replace=True)
    base = opened(store, 2, later_ms=60_000)
    append(base.table(DROPPED), "base")
    create(base, LATER, "base")
    return store


MOVED = {"kept": "table ['branch', 'old']", "again": "table ['old']", "dropped": "table ['base', 'old']"}


@pytest.fixture(params=STORES.values(), ids=list(STORES))
def store(request: pytest.FixtureRequest) -> Store:
    return moved(request.param)


def seen(store: Store, later_ms: int = 120_000) -> dict[str, str]:
    found = shown(on_branch(opened(store, 9, later_ms)))
    return {name: text for name, text in found.items() if name in ("kept", "again", "dropped", "later", "v")}


def test_changes_of_one_side_are_kept_and_what_has_read_a_changed_table_is_built_again(store: Store) -> None:
    found = branches(opened(store, 3, later_ms=120_000)).update("pr_17", by_node)
    assert found.nodes == {"model.shop.again"}
    assert found.kept == [("main", "kept"), ("main", "v")]
    assert found.lost == {("main", "again"): "it has read main.dropped"}
    assert seen(store) == {**MOVED, "later": "table ['base']", "v": "view select 7"}


def test_a_branch_is_merged_when_its_nodes_are_built_again(store: Store) -> None:
    branches(opened(store, 3, later_ms=120_000)).update("pr_17", by_node)
    with pytest.raises(ConcurrentModificationError, match=r"must build model.shop.again again"):
        branches(opened(store, 4, later_ms=120_000)).merge("pr_17")
    catalog = opened(store, 5, later_ms=120_000)
    write(on_branch(catalog, joins=True), AGAIN, "rebuilt", DROPPED)
    branches(catalog).built_again("pr_17")
    branches(opened(store, 6, later_ms=120_000)).merge("pr_17")
    after = shown(opened(store, 7, later_ms=180_000))
    assert {**MOVED, "again": "table ['old', 'rebuilt']", "v": "view select 7"}.items() <= after.items()


def test_a_table_that_both_have_changed_is_taken_from_the_base_and_built_again(store: Store) -> None:
    append(opened(store, 3, later_ms=60_000).table(KEPT), "base")
    found = branches(opened(store, 4, later_ms=120_000)).update("pr_17", by_node)
    assert found.nodes == {"model.shop.again", "model.shop.kept"}
    assert seen(store)["kept"] == "table ['base', 'old']"


def test_a_second_update_has_nothing_to_do_but_what_is_still_owed(store: Store) -> None:
    branches(opened(store, 3, later_ms=120_000)).update("pr_17", by_node)
    found = branches(opened(store, 4, later_ms=180_000)).update("pr_17", by_node)
    assert found.nodes == {"model.shop.again"} and not found.lost


def test_a_change_by_hand_that_would_be_lost_stops_the_update(store: Store) -> None:
    before = seen(store)
    with pytest.raises(MergeConflictError, match=r"by hand.*main.again \(it has read main.dropped\)"):
        branches(opened(store, 3, later_ms=120_000)).update("pr_17", lambda *_: frozenset())
    assert seen(store) == before


def test_a_branch_with_a_held_run_is_not_updated(store: Store) -> None:
    opened(store, 3).run_branches("silt").open(replace(RUN, onto="pr_17"))
    with pytest.raises(RunInProgressError, match="is held"):
        branches(opened(store, 4, later_ms=120_000)).update("pr_17", by_node)


@pytest.mark.parametrize("fate", ["lost", "done", "late"])
@pytest.mark.parametrize("every", [11, pytest.param(1, marks=pytest.mark.long)], ids=["a few writes", "each write"])
@pytest.mark.parametrize("make", STORES.values(), ids=list(STORES))
def test_an_update_killed_at_any_write_is_done_whole_or_not_and_completed(
    make: MakeStore, every: int, fate: str
) -> None:
    expected = {**MOVED, "later": "table ['base']", "v": "view select 7"}
    before = seen(moved(make))
    for writes in range(0, MOST_WRITES, every):
        store = moved(make)
        dying = Dying(store, writes, fate)
        with contextlib.suppress(Killed):
            branches(opened(dying, 3, later_ms=120_000)).update("pr_17", by_node)
            assert writes > 6
            return
        assert seen(store) in (before, expected)
        dying.arrive()
        found = branches(opened(store, 4, later_ms=180_000)).update("pr_17", by_node)
        assert seen(store, 180_000) == expected and found.nodes == {"model.shop.again"}, writes
    raise AssertionError("the update does not end")
