"""Names on a branch: what it creates, replaces and drops has its name everywhere at one moment, or nowhere."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

import pytest

from dbt.adapters.silt.engine.catalog.branches.branch import Branch
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.folders.folder_names import FolderNames
from dbt.adapters.silt.engine.catalog.names.documents import Function, View
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.catalog.objects.object_names import ObjectNames
from dbt.adapters.silt.engine.kernel.errors import (
    ConcurrentModificationError,
    CorruptLogError,
    RelationExistsError,
    RelationNotFoundError,
    SchemaNotFoundError,
    SiltError,
    UnsupportedStatementError,
)
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.publication import publications
from dbt.adapters.silt.engine.kernel.publication.documents import Begun, Kind, Meaning, NameChange
from dbt.adapters.silt.engine.kernel.publication.publications import Publications
from dbt.adapters.silt.engine.kernel.storage.store import ObjectMissing, Store
from dbt.adapters.silt.engine.kernel.table.actions import SetTransaction
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit
from tests.fixed_clock import FixedClock
from tests.memory_object_store import MemoryObjectStore
from tests.memory_store import MemoryStore
from tests.publication.tables import DyingStore, Killed
from tests.unit.engine.kernel.log_builder import METADATA, PROTOCOL, add, paths

T = TypeVar("T")
KEPT, DROPPED, AGAIN, TO_VIEW, NEW, FROM_VIEW, VIEW, NEW_VIEW = (
    RelationName("silt", "main", each)
    for each in ("kept", "dropped", "again", "to_view", "new", "from_view", "v", "new_view")
)
FUNCTION = RelationName("silt", "main", "f")
GONE_TABLE, GONE_VIEW = (RelationName("silt", "gone", each) for each in ("t", "v"))
CREATE = Changes(Operation("CREATE TABLE"), protocol=PROTOCOL, metadata=METADATA)
BEFORE = {
    "kept": "table ['old']",
    "dropped": "table ['old']",
    "again": "table ['old']",
    "to_view": "table ['old']",
    "from_view": "view select 1",
    "v": "view select 1",
    "f()": "return 1",
    "gone.t": "table ['old']",
    "gone.v": "view select 1",
}
AFTER = {
    "kept": "table ['new', 'old']",
    "again": "table ['new']",
    "to_view": "view select 2",
    "new": "table ['new']",
    "from_view": "table ['new']",
    "v": "view select 2",
    "new_view": "view select 2",
    "f()": "return 2",
}
STORES: dict[str, Callable[[], Store]] = {"folders": MemoryStore, "objects": MemoryObjectStore}
MOST_WRITES = 120


def opened(store: Store, seed: int = 0, later_ms: int = 0) -> Catalog:
    """The catalog as another process opens it."""
    return Catalog({"silt": store}, FixedClock(1_700_000_000_000 + seed * 1_000 + later_ms, seed=seed))


def view(name: RelationName, text: str) -> View:
    return View(name, text, current_database="silt", current_schema="main")


def function(text: str) -> Function:
    return Function(FUNCTION, (), text, current_database="silt", current_schema="main")


def create(catalog: Catalog, name: RelationName, path: str, replace_view: bool = False) -> None:
    log = catalog.new_table(name, replace_view)
    log.store.put(path, b"data")
    commit(log, None, CREATE, ReadSet(), CommitSettings())
    append(log, path)
    catalog.publish_table(name, log, replace_view)


def create_again(inside: Catalog, name: RelationName) -> None:
    """Creates a table that the branch has dropped."""
    log = inside.dropped_table(name)
    assert log is not None and inside.find(name) is None
    base = log.snapshot()
    removes = tuple(each.remove(1) for each in base.add_files())
    commit(log, base, replace(CREATE, removes=removes), ReadSet(whole_table=True), CommitSettings())
    inside.publish_table(name, log)


def append(log: DeltaLog, path: str) -> None:
    log.store.put(path, b"data")
    commit(log, log.snapshot(), Changes(Operation("WRITE"), (add(path),)), ReadSet(), CommitSettings())


def filled(make: Callable[[], Store]) -> Store:
    """A database as in `BEFORE`."""
    store = make()
    catalog = opened(store, 99)
    catalog.create_schema("silt", "main")
    for name in (KEPT, DROPPED, AGAIN, TO_VIEW):
        create(catalog, name, "old")
    for name in (FROM_VIEW, VIEW):
        catalog.put_view(view(name, "select 1"))
    catalog.put_function(function("return 1"))
    catalog.create_schema("silt", "gone")
    create(catalog, GONE_TABLE, "old")
    catalog.put_view(view(GONE_VIEW, "select 1"))
    return store


def change_all(inside: Catalog) -> None:
    """Changes the database from `BEFORE` to `AFTER`."""
    append(inside.table(KEPT), "new")
    inside.drop_table(DROPPED)
    inside.drop_table(AGAIN)
    create_again(inside, AGAIN)
    append(inside.table(AGAIN), "new")
    inside.put_view(view(TO_VIEW, "select 2"), replace=True, replace_table=True)
    create(inside, NEW, "new")
    create(inside, FROM_VIEW, "new", replace_view=True)
    inside.put_view(view(VIEW, "select 2"), replace=True)
    inside.put_view(view(NEW_VIEW, "select 2"))
    inside.put_function(function("return 2"), replace=True)
    inside.drop_schema("silt", "gone", cascade=True)


def shown(catalog: Catalog) -> dict[str, str]:
    """The relations and functions of the database, each with its content."""
    catalog = catalog.for_statement()
    found = {}
    for schema in catalog.schemas("silt"):
        prefix = "" if schema == "main" else f"{schema}."
        for each in catalog.relations("silt", schema):
            found[f"{prefix}{each.name.identifier}"] = content(catalog, each.name)
        for name in catalog.functions("silt", schema):
            found[f"{prefix}{name.identifier}()"] = catalog.function(name).body or ""
    return found


def content(catalog: Catalog, name: RelationName) -> str:
    entry = catalog.find(name)
    assert entry is not None
    if entry.kind.value == "view":
        return f"view {catalog.view(name).text}"
    return f"table {sorted(paths(catalog.table(name)))}"


def branch_of(catalog: Catalog) -> tuple[Branch, Catalog]:
    branch = catalog.new_branch("silt")
    return branch, catalog.on_branch("silt", branch)


@pytest.fixture(params=STORES.values(), ids=list(STORES))
def store(request: pytest.FixtureRequest) -> Store:
    return filled(request.param)


def test_names_change_on_the_branch_and_then_everywhere_at_once(store: Store) -> None:
    catalog = opened(store)
    branch, inside = branch_of(catalog)
    change_all(inside)
    assert (shown(inside), shown(catalog), shown(opened(store, 1))) == (AFTER, BEFORE, BEFORE)
    assert branch.publish() == {
        "silt.main.kept": 2,
        "silt.main.again": 2,
        "silt.main.new": 0,
        "silt.main.from_view": 0,
    }
    assert shown(catalog) == shown(opened(store, 2)) == AFTER
    assert catalog.schemas("silt") == opened(store, 2).schemas("silt") == ["main"]
    assert not [file.path for file in store.files_below("") if "next" in file.path or "begun" in file.path]


def test_a_discarded_branch_changes_nothing(store: Store) -> None:
    before = {file.path for file in store.files_below("")}
    catalog = opened(store)
    branch, inside = branch_of(catalog)
    change_all(inside)
    branch.discard()
    assert shown(catalog) == shown(opened(store, 1)) == BEFORE
    left = {file.path for file in store.files_below("")} - before
    assert not left


def test_a_process_that_knows_the_id_sees_the_names_of_the_branch_and_publishes_them(store: Store) -> None:
    catalog, other = opened(store), opened(store, 1)
    branch, inside = branch_of(catalog)
    change_all(inside)
    again = other.branch("silt", branch.id)
    assert shown(other.on_branch("silt", again)) == AFTER
    again.publish()
    assert shown(catalog) == AFTER


def test_names_that_come_and_go_on_the_branch_leave_nothing(store: Store) -> None:
    catalog = opened(store)
    branch, inside = branch_of(catalog)
    for _ in range(2):
        create(inside, NEW, "new")
        inside.drop_table(NEW)
        inside.put_view(view(NEW, "select 2"))
        inside.drop_view(NEW)
    assert branch.publish() == {}
    assert shown(catalog) == BEFORE


def test_a_table_comes_and_goes_as_a_table_and_a_view_on_the_branch(store: Store) -> None:
    branch, inside = branch_of(opened(store))
    for _ in range(2):
        inside.drop_table(AGAIN)
        inside.put_view(view(AGAIN, "select 2"))
        inside.drop_view(AGAIN)
        create_again(inside, AGAIN)
    append(inside.table(AGAIN), "new")
    inside.drop_table(DROPPED)
    with pytest.raises(RelationNotFoundError):
        inside.table(DROPPED)
    assert inside.dropped_table(KEPT) is inside.dropped_table(NEW) is None
    branch.publish()
    assert shown(opened(store, 1)) == {each: BEFORE[each] for each in BEFORE if each != "dropped"} | {
        "again": "table ['new']"
    }


def test_a_schema_that_the_branch_has_dropped_is_missing_there_and_can_be_created_again(store: Store) -> None:
    branch, inside = branch_of(opened(store))
    with pytest.raises(RelationExistsError, match="not empty"):
        inside.drop_schema("silt", "gone")
    inside.drop_schema("silt", "gone", cascade=True)
    again = opened(store, 1).on_branch("silt", opened(store, 1).branch("silt", branch.id))
    for catalog in (inside, again):
        assert catalog.schemas("silt") == ["main"] and not catalog.has_schema("silt", "gone")
        assert catalog.find(GONE_TABLE) is None and not catalog.has_function(GONE_VIEW)
        for missing in (
            lambda catalog: catalog.relations("silt", "gone"),
            lambda catalog: catalog.functions("silt", "gone"),
            lambda catalog: catalog.table(GONE_TABLE),
            lambda catalog: catalog.view(GONE_VIEW),
            lambda catalog: catalog.function(GONE_VIEW),
            lambda catalog: catalog.new_table(GONE_TABLE),
            lambda catalog: catalog.put_view(view(GONE_VIEW, "select 2")),
            lambda catalog: catalog.drop_schema("silt", "gone"),
        ):
            with pytest.raises(SchemaNotFoundError):
                missing(catalog)  # type: ignore[no-untyped-call]
        catalog.drop_schema("silt", "gone", if_exists=True)
    assert opened(store, 2).has_schema("silt", "gone")
    inside.create_schema("silt", "gone")
    assert inside.relations("silt", "gone") == []
    inside.put_view(view(GONE_VIEW, "select 2"))
    branch.publish()
    assert shown(opened(store, 3)) == {name: BEFORE[name] for name in BEFORE if name != "gone.t"} | {
        "gone.v": "view select 2"
    }


def test_a_schema_without_names_is_dropped_at_the_end(store: Store) -> None:
    branch, inside = branch_of(opened(store))
    inside.create_schema("silt", "empty")
    create(inside, RelationName("silt", "empty", "t"), "new")
    inside.drop_table(RelationName("silt", "empty", "t"))
    inside.drop_schema("silt", "empty")
    assert opened(store, 1).schemas("silt") == ["empty", "gone", "main"]
    assert branch.publish() == {}
    assert opened(store, 2).schemas("silt") == ["gone", "main"]


@pytest.mark.parametrize("meanwhile", ["create", "drop"])
def test_a_schema_in_which_another_program_creates_a_table_remains_with_it(store: Store, meanwhile: str) -> None:
    branch, inside = branch_of(opened(store))
    inside.drop_schema("silt", "gone", cascade=True)
    if meanwhile == "create":
        create(opened(store, 1), RelationName("silt", "gone", "theirs"), "theirs")
        branch.publish()
        found = {name: each for name, each in shown(opened(store, 2)).items() if name.startswith("gone.")}
        assert found == {"gone.theirs": "table ['theirs']"}
        return
    opened(store, 1).drop_schema("silt", "gone", cascade=True)
    with pytest.raises(ConcurrentModificationError):
        branch.publish()


def test_files_of_no_relation_keep_a_schema_unless_its_content_is_dropped_too() -> None:
    for cascade in (False, True):
        store = filled(MemoryStore)
        branch, inside = branch_of(opened(store))
        inside.create_schema("silt", "files")
        store.make_folder("files/more")
        store.put("files/more/notes.csv", b"1")
        inside.drop_schema("silt", "files", cascade=cascade)
        branch.publish()
        assert opened(store, 1).has_schema("silt", "files") is not cascade


def test_a_dropped_table_of_the_branch_cannot_be_a_new_table(store: Store) -> None:
    _, inside = branch_of(opened(store))
    inside.drop_table(DROPPED)
    with pytest.raises(UnsupportedStatementError, match="dropped cannot be created again"):
        inside.new_table(DROPPED)


def test_a_table_that_a_killed_process_has_created_again_has_its_name(store: Store) -> None:
    branch, inside = branch_of(opened(store))
    inside.drop_table(AGAIN)
    log = inside.dropped_table(AGAIN)
    assert log is not None
    commit(log, log.snapshot(), CREATE, ReadSet(), CommitSettings())
    again = opened(store, 1).branch("silt", branch.id)
    assert shown(opened(store, 2).on_branch("silt", again)) == {**BEFORE, "again": "table ['old']"}


def test_a_table_that_is_created_again_has_done_no_unit_of_work(store: Store) -> None:
    unit = Changes(Operation("WRITE"), transactions=(SetTransaction("unit", 7),))
    log = opened(store).table(AGAIN)
    commit(log, log.snapshot(), unit, ReadSet(), CommitSettings())
    branch, inside = branch_of(opened(store))
    inside.drop_table(AGAIN)
    create_again(inside, AGAIN)
    assert not inside.table(AGAIN).snapshot().holds(("unit", 7))
    branch.publish()
    assert not opened(store, 1).table(AGAIN).snapshot().holds(("unit", 7))


def test_a_table_that_is_created_again_conflicts_with_a_writer(store: Store) -> None:
    branch, inside = branch_of(opened(store))
    inside.drop_table(AGAIN)
    create_again(inside, AGAIN)
    append(opened(store, 1).table(AGAIN), "theirs")
    with pytest.raises(ConcurrentModificationError):
        branch.publish()
    branch.discard()
    assert shown(opened(store, 2)) == {**BEFORE, "again": "table ['old', 'theirs']"}


@pytest.mark.parametrize(
    "change",
    [
        lambda inside: inside.new_table(KEPT),
        lambda inside: inside.new_table(VIEW),
        lambda inside: inside.put_view(view(VIEW, "x")),
        lambda inside: inside.put_view(view(KEPT, "x"), replace=True),
        lambda inside: inside.put_function(function("x")),
    ],
)
def test_a_name_that_is_taken_is_refused_on_the_branch(store: Store, change: Callable[[Catalog], object]) -> None:
    with pytest.raises(RelationExistsError):
        change(branch_of(opened(store))[1])


MEANWHILE: dict[str, Callable[[Catalog], object]] = {
    "create": lambda other: create(other, NEW, "theirs"),
    "view": lambda other: other.put_view(view(NEW_VIEW, "select 3")),
    "replace view": lambda other: other.put_view(view(VIEW, "select 3"), replace=True),
    "drop view": lambda other: other.drop_view(VIEW),
    "view to table": lambda other: create(other, FROM_VIEW, "theirs", replace_view=True),
    "drop table": lambda other: other.drop_table(DROPPED),
    "table to view": lambda other: other.put_view(view(TO_VIEW, "select 3"), replace=True, replace_table=True),
    "rename": lambda other: other.rename(TO_VIEW, RelationName("silt", "main", "elsewhere")),
    "function": lambda other: other.put_function(function("return 3"), replace=True),
    "drop function": lambda other: other.drop_function(FUNCTION),
    "drop schema": lambda other: other.drop_schema("silt", "main", cascade=True),
}


@pytest.mark.parametrize("meanwhile", MEANWHILE.values(), ids=MEANWHILE)
def test_a_name_that_another_program_has_changed_meanwhile_is_a_conflict(
    store: Store, meanwhile: Callable[[Catalog], object]
) -> None:
    branch, inside = branch_of(opened(store))
    change_all(inside)
    meanwhile(opened(store, 1))
    before = shown(opened(store, 2)) if opened(store, 3).has_schema("silt", "main") else {}
    with pytest.raises(ConcurrentModificationError):
        branch.publish()
    branch.discard()
    after = shown(opened(store, 4)) if before else {}
    assert before == after != AFTER


class Dying(DyingStore):
    """A store whose process is killed at a write; in folders, a write under a lock does not arrive after it."""

    def around(self, operation: str, path: str, run: Callable[[], T]) -> T:
        was_over = self.life.is_over
        try:
            return super().around(operation, path, run)
        finally:
            is_locked = self.inner.has_folders and not path.startswith(("_publications", "_delta_log"))
            if is_locked and self.life.is_over and not was_over:
                self.life.held = None

    def arrive(self) -> None:
        with contextlib.suppress(ObjectMissing):  # the folder of the log was moved away
            super().arrive()


def killed(make: Callable[[], Store], fate: str) -> Iterator[tuple[Store, DyingStore]]:
    """For each write of a publication: the database in which its process was killed at it."""
    for writes in range(MOST_WRITES):
        store = filled(make)
        catalog = opened(store, 1)
        branch, inside = branch_of(catalog)
        change_all(inside)
        dying = Dying(store, writes, fate)
        with contextlib.suppress(Killed):
            opened(dying, 2).branch("silt", branch.id).publish()
            return
        yield store, dying
    raise AssertionError("the publication does not end")


@pytest.mark.parametrize("fate", ["lost", "done", "late"])
@pytest.mark.parametrize("make", STORES.values(), ids=list(STORES))
def test_a_publication_killed_at_any_write_shows_all_names_or_none(make: Callable[[], Store], fate: str) -> None:
    seen = []
    for store, dying in killed(make, fate):
        first = shown(opened(store, 3))
        assert first in (BEFORE, AFTER)
        with contextlib.suppress(SiltError):
            opened(store, 4).put_view(view(NEW_VIEW, "select 9"))  # settles the publication
        dying.arrive()
        settled = shown(opened(store, 5, later_ms=60_000))
        is_published = settled["kept"] == AFTER["kept"]
        expected = AFTER if is_published else {**BEFORE, "new_view": "view select 9"}
        assert settled == expected
        assert is_published or first == BEFORE
        check_usable(store, is_published)
        seen.append(is_published)
    assert True in seen and False in seen


def check_usable(store: Store, is_published: bool) -> None:
    """Checks that every name can be changed by later statements, whatever happened to the publication."""
    catalog = opened(store, 6, later_ms=60_000)
    if not is_published:
        create(catalog, NEW, "later")
        catalog.drop_table(TO_VIEW)
        catalog.put_view(view(FROM_VIEW, "select 5"), replace=True)
    else:
        catalog.drop_table(NEW)
        catalog.put_view(view(TO_VIEW, "select 5"), replace=True)
    catalog.drop_view(VIEW)
    catalog.put_function(function("return 5"), replace=True)
    append(catalog.table(KEPT), "later")
    found = shown(opened(store, 7, later_ms=60_000))
    assert "later" in found["kept"] and "v" not in found and found["f()"] == "return 5"
    assert ("new" in found) is not is_published
    catalog.drop_schema("silt", "main", cascade=True)
    assert not opened(store, 8).has_schema("silt", "main")


@pytest.mark.parametrize("text", ["", "..", "main", "main/kept", "main/../main", "main/kept/_delta_log"])
@pytest.mark.parametrize("is_published", [True, False])
def test_a_document_of_a_publication_deletes_only_folders_that_this_package_names(
    text: str, is_published: bool
) -> None:
    store = filled(MemoryObjectStore)
    names = opened(store).on_branch("silt", opened(store).new_branch("silt"))._database("silt").published
    before = {file.path for file in store.files_below("")}
    for change in (
        NameChange("main", "kept", Meaning(Kind.TABLE, text), None),
        NameChange("main", "kept", None, Meaning(Kind.TABLE, text)),
        NameChange("main", "v", Meaning(Kind.VIEW, text), None),
    ):
        with pytest.raises(CorruptLogError, match="cannot be completed"):
            names.finish(Begun(1, 1, (), (change,)), is_published)
    assert {file.path for file in store.files_below("")} == before


def shows_undecided(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Publications, "is_decided_published", lambda *_: True)


def notes_nothing(patch: pytest.MonkeyPatch) -> None:
    for names in (FolderNames, ObjectNames):
        patch.setattr(names, "note", lambda *_: None)


def leaves_drops_of_aborted_publications(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(publications, "undo", lambda *_: None)
    patch.setattr(Publications, "is_published", lambda *_: True)


@pytest.mark.parametrize("make", STORES.values(), ids=list(STORES))
@pytest.mark.parametrize(
    "plant",
    [shows_undecided, notes_nothing, leaves_drops_of_aborted_publications],
)
def test_a_planted_bug_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], make: Callable[[], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with pytest.raises((AssertionError, SiltError, ObjectMissing)):
        test_a_publication_killed_at_any_write_shows_all_names_or_none(make, "done")
