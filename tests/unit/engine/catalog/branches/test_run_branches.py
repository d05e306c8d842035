"""A run works on a branch that the next process finds by the run's id, and is published once, wherever it is killed."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable

import pytest

from dbt.adapters.silt.engine.catalog.branches.attempts import BranchAttempts
from dbt.adapters.silt.engine.catalog.branches.branch import Branch
from dbt.adapters.silt.engine.catalog.branches.run_branches import BranchedRun, RunBranches
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.errors import (
    ConcurrentDropError,
    ConcurrentModificationError,
    CorruptLogError,
    SiltError,
    StorageError,
)
from dbt.adapters.silt.engine.kernel.publication.publications import Publications
from dbt.adapters.silt.engine.kernel.storage.store import Store
from dbt.adapters.silt.engine.kernel.table.actions import SetTransaction
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit
from tests.publication.tables import Killed
from tests.unit.engine.catalog.branches.test_branch_names import (
    AFTER,
    AGAIN,
    BEFORE,
    CREATE,
    DROPPED,
    FROM_VIEW,
    KEPT,
    MOST_WRITES,
    NEW,
    NEW_VIEW,
    STORES,
    TO_VIEW,
    VIEW,
    Dying,
    create_again,
    filled,
    function,
    opened,
    shown,
    view,
)
from tests.unit.engine.kernel.log_builder import add

RUN = BranchedRun("shop", "dev", "run-1")
DAY_MS = 24 * 60 * 60 * 1000
PUBLISHED = "_branches/published/"


@pytest.fixture(params=STORES.values(), ids=list(STORES))
def store(request: pytest.FixtureRequest) -> Store:
    return filled(request.param)


def append_once(inside: Catalog, name: RelationName) -> None:
    """Appends the file `new` as a unit of work."""
    log = inside.table(name)
    if log.snapshot().transaction_version("unit") is None:
        log.store.put("new", b"data")
        changes = Changes(Operation("WRITE"), (add("new"),), transactions=(SetTransaction("unit", 1),))
        commit(log, log.snapshot(), changes, ReadSet(), CommitSettings())


def create_once(inside: Catalog, name: RelationName, replace_view: bool = False) -> None:
    found = inside.find(name)
    if found is None or found.kind.value == "view":
        log = inside.new_table(name, replace_view)
        commit(log, None, CREATE, ReadSet(), CommitSettings())
        inside.publish_table(name, log, replace_view)
    append_once(inside, name)


def create_again_once(inside: Catalog, name: RelationName) -> None:
    found = inside.find(name)
    if found is None or inside.table(name).snapshot().transaction_version("unit") is None:
        inside.drop_table(name, if_exists=True)
        create_again(inside, name)
        append_once(inside, name)


def work(inside: Catalog) -> None:
    """Changes the database from `BEFORE` to `AFTER`, without what an earlier process has done."""
    append_once(inside, KEPT)
    inside.drop_table(DROPPED, if_exists=True)
    create_again_once(inside, AGAIN)
    inside.put_view(view(TO_VIEW, "select 2"), replace=True, replace_table=True)
    create_once(inside, NEW)
    create_once(inside, FROM_VIEW, replace_view=True)
    inside.put_view(view(VIEW, "select 2"), replace=True)
    inside.put_view(view(NEW_VIEW, "select 2"), replace=True)
    inside.put_function(function("return 2"), replace=True)
    inside.drop_schema("silt", "gone", cascade=True, if_exists=True)


def begun(catalog: Catalog, run: BranchedRun = RUN) -> tuple[RunBranches, BranchedRun, Branch, Catalog]:
    runs = catalog.run_branches("silt")
    found, branch = runs.open(run)
    return runs, found, branch, catalog.on_branch("silt", branch)


def run_to_its_end(catalog: Catalog) -> dict[str, int]:
    runs, run, branch, inside = begun(catalog)
    if shown(catalog) == AFTER:
        return runs.publish(run, branch)  # its units of work are in the tables, so it does nothing
    work(inside)
    return runs.publish(run, branch)


def left(store: Store) -> set[str]:
    """The files of branches, except the records of attempts and of publications."""
    paths = (each.path for each in store.files_below("_branches"))
    return {path for path in paths if not path.endswith(".attempt.json") and not path.startswith(PUBLISHED)}


def test_the_next_process_of_a_run_continues_on_its_branch(store: Store) -> None:
    _, _, branch, inside = begun(opened(store))
    append_once(inside, KEPT)
    runs, run, again, within = begun(opened(store, 1))
    assert again.id == branch.id
    assert shown(within)["kept"] == AFTER["kept"]
    assert shown(opened(store, 2)) == BEFORE
    work(within)
    runs.publish(run, again)
    assert shown(opened(store, 3)) == AFTER
    assert not left(store)


def test_a_schema_that_a_run_creates_exists_at_once(store: Store) -> None:
    begun(opened(store))[3].create_schema("silt", "other")
    assert opened(store, 1).has_schema("silt", "other")


def test_another_run_has_a_branch_of_its_own(store: Store) -> None:
    _, _, branch, inside = begun(opened(store))
    append_once(inside, KEPT)
    for other in (BranchedRun("shop", "prod", "run-1"), BranchedRun("shop", "dev", "run-2")):
        _, _, elsewhere, within = begun(opened(store, 1), other)
        assert elsewhere.id != branch.id
        assert shown(within) == BEFORE
    assert [each.run_id for each in opened(store, 2).run_branches("silt").all()] == ["run-1", "run-1", "run-2"]


@pytest.mark.parametrize("fate", ["lost", "done", "late"])
@pytest.mark.parametrize("every", [7, pytest.param(1, marks=pytest.mark.long)], ids=["a few writes", "each write"])
@pytest.mark.parametrize("make", STORES.values(), ids=list(STORES))
def test_a_run_killed_at_any_write_and_continued_is_published_whole_and_once(
    make: Callable[[], Store], every: int, fate: str
) -> None:
    for writes in range(0, 2 * MOST_WRITES, every):
        store = filled(make)
        dying = Dying(store, writes, fate)
        with contextlib.suppress(Killed):
            run_to_its_end(opened(dying, 1))
            break
        seen = shown(opened(store, 2))
        assert seen in (BEFORE, AFTER)
        dying.arrive()
        run_to_its_end(opened(store, 3, later_ms=60_000))
        assert shown(opened(store, 4)) == AFTER
        assert opened(store, 5).table(KEPT).snapshot().version == 2, "the unit of work was committed twice"
    else:
        raise AssertionError("the run does not end")
    assert not left(store)


def test_of_two_processes_that_end_the_same_run_one_publishes(store: Store) -> None:
    first = begun(opened(store))
    work(first[3])
    second = begun(opened(store, 1))
    work(second[3])
    first[0].publish(first[1], first[2])
    with pytest.raises(ConcurrentModificationError, match="another process"):
        second[0].publish(second[1], second[2])
    assert shown(opened(store, 2)) == AFTER
    assert opened(store, 2).table(KEPT).snapshot().version == 2


def test_a_process_that_is_late_publishes_nothing_of_a_run_that_was_dropped(store: Store) -> None:
    before = {file.path for file in store.files_below("")}
    late = begun(opened(store))
    work(late[3])
    runs = opened(store, 1).run_branches("silt")
    (run,) = runs.all()
    runs.drop(run, runs.existing(run, to_drop=True))
    with pytest.raises(ConcurrentModificationError):
        late[0].publish(late[1], late[2])
    assert shown(opened(store, 2)) == BEFORE
    assert not left(store)
    assert {each for each in {file.path for file in store.files_below("")} - before if "attempt" not in each} == set()


def test_a_run_is_published_even_if_nothing_can_be_deleted_afterwards(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs, run, branch, inside = begun(opened(store))
    work(inside)
    inside.put_view(view(VIEW, "select 2"), replace=True)

    def refused(*_: object) -> None:
        raise StorageError("no right to delete")

    for name in ("delete", "delete_all", "delete_folder"):
        monkeypatch.setattr(type(store), name, refused)
    assert runs.publish(run, branch)["silt.main.kept"] == 2
    monkeypatch.undo()
    assert shown(opened(store, 1)) == AFTER
    assert run_to_its_end(opened(store, 2)) == {}


@pytest.mark.parametrize("body", [b"{}", b'{"publication": "x"}', b"[]", b""])
def test_an_attempt_that_cannot_be_read_is_refused_by_name(store: Store, body: bytes) -> None:
    runs, _, branch, inside = begun(opened(store))
    append_once(inside, KEPT)
    store.put(f"_branches/{branch.id}/1.attempt.json", body)
    with pytest.raises(CorruptLogError, match=r"attempt\.json cannot be read"):
        runs.open(RUN)


def test_a_run_that_was_published_or_dropped_cannot_be_ended_again(store: Store) -> None:
    runs, run, branch, inside = begun(opened(store))
    work(inside)
    runs.publish(run, branch)
    with pytest.raises(ConcurrentModificationError, match="has published the run run-1"):
        runs.existing(run)
    assert runs.all() == []


def test_a_conflict_publishes_nothing_and_keeps_the_run(store: Store) -> None:
    runs, run, branch, inside = begun(opened(store))
    work(inside)
    opened(store, 1).put_view(view(NEW_VIEW, "theirs"))
    with pytest.raises(ConcurrentModificationError):
        runs.publish(run, branch)
    assert shown(opened(store, 2)) == {**BEFORE, "new_view": "view theirs"}
    assert opened(store, 2).run_branches("silt").all() == [run]


def test_a_run_does_not_depend_on_tables_that_it_only_reads(store: Store) -> None:
    runs, run, branch, inside = begun(opened(store))
    read = inside.table(DROPPED)
    read.snapshot()
    append_once(inside, KEPT)
    other = opened(store, 1)
    append_once(other, DROPPED)
    assert runs.publish(run, branch) == {"silt.main.kept": 2}
    assert shown(opened(store, 2))["dropped"] == "table ['new', 'old']"


def test_a_run_whose_changed_table_was_dropped_can_only_be_dropped(store: Store) -> None:
    _, _, _, inside = begun(opened(store))
    append_once(inside, KEPT)
    other = opened(store, 1)
    other.drop_table(KEPT)
    runs = other.run_branches("silt")
    (run,) = runs.all()
    with pytest.raises(ConcurrentDropError, match="silt drop-run"):
        runs.open(run)
    runs.drop(run, runs.existing(run, to_drop=True))
    assert runs.all() == []


def test_a_branch_that_is_too_old_is_not_continued(store: Store) -> None:
    _, _, branch, inside = begun(opened(store))
    append_once(inside, KEPT)
    later = opened(store, 1, later_ms=8 * DAY_MS)
    assert later.run_branches("silt").all() == []
    _, _, new, within = begun(later)
    assert new.id != branch.id
    assert shown(within) == BEFORE


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{}", json.dumps({**vars(RUN), "branch": "../main"}).encode(), b'{"branch": ' + b"[" * 100_000],
    ids=["empty", "list", "object", "path", "deep"],
)
def test_a_document_that_this_package_did_not_write_stops_no_other_run(store: Store, body: bytes) -> None:
    store.make_folder("_branches/runs")
    store.put("_branches/runs/foreign.json", body)
    runs, run, branch, inside = begun(opened(store))
    append_once(inside, KEPT)
    assert [each.run_id for each in runs.all()] == ["run-1"]
    runs.publish(run, branch)
    assert shown(opened(store, 1))["kept"] == AFTER["kept"]


def forgets_its_attempts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(BranchAttempts, "announce", lambda *_: None)
    patch.setattr(BranchAttempts, "was_published", lambda _: False)


def continues_after_an_attempt(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(BranchAttempts, "was_published", lambda _: False)


def completes_no_names(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Branch, "_complete_names", lambda _: None)


def never_closes_an_attempt(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Publications, "close", lambda self, publication: self.is_decided_published(publication))


@pytest.mark.long
@pytest.mark.parametrize(
    "plant", [forgets_its_attempts, continues_after_an_attempt, completes_no_names, never_closes_an_attempt]
)
def test_a_planted_bug_is_found(plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises((AssertionError, SiltError)):
        for make in STORES.values():
            for fate in ("done", "late"):
                test_a_run_killed_at_any_write_and_continued_is_published_whole_and_once(make, 1, fate)
            test_of_two_processes_that_end_the_same_run_one_publishes(filled(make))
