"""Branches of a database: their tables, and their publication by another process."""

from __future__ import annotations

import pytest

from dbt.adapters.silt.engine.catalog.branches.attempts import FOLDER
from dbt.adapters.silt.engine.catalog.branches.branch import Branch
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.documents import View
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.commands.maintenance import vacuum as vacuum_command
from dbt.adapters.silt.engine.commands.maintenance.vacuum import Retention
from dbt.adapters.silt.engine.commands.target import WriteSettings
from dbt.adapters.silt.engine.kernel.errors import (
    ConcurrentDropError,
    RelationExistsError,
    RelationNotFoundError,
    UnsupportedStatementError,
)
from dbt.adapters.silt.engine.kernel.publication.documents import NameChange
from dbt.adapters.silt.engine.kernel.storage.store import Store
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit
from tests.fixed_clock import FixedClock
from tests.memory_object_store import MemoryObjectStore
from tests.memory_store import MemoryStore
from tests.unit.engine.kernel.log_builder import METADATA, PROTOCOL, add, paths

NAMES = [RelationName("silt", "main", name) for name in ("a", "b")]
CREATE = Changes(Operation("CREATE TABLE"), protocol=PROTOCOL, metadata=METADATA)
WEEK_MS = 7 * 24 * 60 * 60 * 1000


@pytest.fixture(params=[MemoryStore, MemoryObjectStore], ids=["folders", "objects"])
def store(request: pytest.FixtureRequest) -> Store:
    """A database with two empty tables."""
    found: Store = request.param()
    catalog = opened(found)
    catalog.create_schema("silt", "main")
    for name in NAMES:
        log = catalog.new_table(name)
        commit(log, None, CREATE, ReadSet(), CommitSettings())
        catalog.publish_table(name, log)
    return found


def opened(store: Store, seed: int = 0, later_ms: int = 0) -> Catalog:
    """The catalog as another process opens it."""
    return Catalog({"silt": store}, FixedClock(1_700_000_000_000 + seed * 1_000 + later_ms, seed=seed))


def append(catalog: Catalog, name: RelationName, path: str) -> None:
    log = catalog.table(name)
    log.store.put(path, b"data")
    commit(log, log.snapshot(), Changes(Operation("WRITE"), (add(path),)), ReadSet(), CommitSettings())


def files(catalog: Catalog) -> list[set[str]]:
    return [paths(catalog.table(name)) for name in NAMES]


def test_tables_change_on_the_branch_and_then_everywhere_at_once(store: Store) -> None:
    catalog = opened(store)
    branch = catalog.new_branch("silt")
    inside = catalog.on_branch("silt", branch)
    for name in NAMES:
        append(inside, name, "new")
    assert (files(inside), files(catalog)) == ([{"new"}] * 2, [set()] * 2)
    assert branch.publish() == {"silt.main.a": 1, "silt.main.b": 1}
    assert files(catalog) == files(opened(store, 1)) == [{"new"}] * 2
    assert not store.files_below(FOLDER)


def test_a_process_that_knows_the_id_reads_writes_and_publishes_the_branch(store: Store) -> None:
    catalog, other = opened(store), opened(store, 1)
    branch = catalog.new_branch("silt")
    for name in NAMES:
        append(catalog.on_branch("silt", branch), name, "first")
    again = other.branch("silt", branch.id)
    inside = other.on_branch("silt", again)
    for name in NAMES:
        append(inside, name, "second")
    assert files(inside) == files(catalog.on_branch("silt", branch)) == [{"first", "second"}] * 2
    again.publish()
    assert files(opened(store, 2)) == [{"first", "second"}] * 2


def test_a_table_is_read_on_a_branch_without_opening_the_other_tables_of_the_branch(store: Store) -> None:
    catalog, new = opened(store), RelationName("silt", "main", "new")
    branch = catalog.new_branch("silt")
    inside = catalog.on_branch("silt", branch)
    for name in NAMES:
        append(inside, name, "new")
    commit(inside.new_table(new), None, CREATE, ReadSet(), CommitSettings())
    inside.drop_table(NAMES[1])
    other = opened(store, 1)

    def read(name: RelationName) -> set[str]:
        return paths(other.on_branch("silt", other.branch("silt", branch.id, only=name)).table(name))

    assert (read(NAMES[0]), read(new)) == ({"new"}, set())
    with pytest.raises(RelationNotFoundError):
        read(NAMES[1])
    catalog.drop_table(NAMES[1])
    assert read(NAMES[0]) == {"new"}
    with pytest.raises(ConcurrentDropError):
        other.branch("silt", branch.id)


def test_a_branch_that_is_dropped_leaves_no_file(store: Store) -> None:
    catalog = opened(store)
    before = {file.path for file in store.files_below("")}
    branch = catalog.new_branch("silt")
    append(catalog.on_branch("silt", branch), NAMES[0], "new")
    branch.discard()
    assert {file.path for file in store.files_below("")} == before


def test_branches_that_were_left_are_deleted_after_a_week(store: Store) -> None:
    catalog = opened(store)
    append(catalog.on_branch("silt", catalog.new_branch("silt")), NAMES[0], "new")
    opened(store, 1, WEEK_MS // 2).new_branch("silt")
    assert store.files_below(FOLDER)
    opened(store, 1, WEEK_MS + 60_000).new_branch("silt")
    assert not store.files_below(FOLDER)


def vacuum(catalog: Catalog, name: RelationName) -> None:
    log = catalog.table(name)
    every_age = Retention(0, is_checked=False, held=catalog.held_files(log))
    vacuum_command.vacuum(log, every_age, WriteSettings())


def remove_all(catalog: Catalog, name: RelationName) -> None:
    log = catalog.table(name)
    removes = tuple(file.remove(0) for file in log.snapshot().add_files())
    commit(log, log.snapshot(), Changes(Operation("DELETE"), (), removes), ReadSet(), CommitSettings())


def test_vacuum_keeps_the_files_that_a_branch_reads_and_has_written(store: Store) -> None:
    catalog = opened(store)
    append(catalog, NAMES[0], "old")
    branch = catalog.new_branch("silt")
    inside = catalog.on_branch("silt", branch)
    append(inside, NAMES[0], "new")
    remove_all(catalog, NAMES[0])
    vacuum(opened(store, 1, 1_000), NAMES[0])
    assert all(catalog.table(NAMES[0]).store.status(path) for path in ("old", "new"))
    assert paths(inside.table(NAMES[0])) == {"old", "new"}
    branch.discard()
    append(catalog, NAMES[0], "last")
    vacuum(opened(store, 2, 2_000), NAMES[0])
    assert catalog.table(NAMES[0]).store.status("old") is None
    assert catalog.table(NAMES[0]).store.status("last") is not None


def test_vacuum_deletes_the_files_of_a_branch_that_a_program_left_a_week_ago(store: Store) -> None:
    catalog = opened(store)
    append(catalog.on_branch("silt", catalog.new_branch("silt")), NAMES[0], "new")
    vacuum(opened(store, 1, WEEK_MS // 2), NAMES[0])
    assert catalog.table(NAMES[0]).store.status("new") is not None
    vacuum(opened(store, 2, WEEK_MS + 60_000), NAMES[0])
    assert catalog.table(NAMES[0]).store.status("new") is None


def test_no_table_is_renamed_on_a_branch(store: Store) -> None:
    catalog = opened(store)
    inside = catalog.on_branch("silt", catalog.new_branch("silt"))
    with pytest.raises(UnsupportedStatementError, match="in a transaction"):
        inside.rename(NAMES[0], RelationName("silt", "main", "c"))
    assert [entry.name for entry in catalog.relations("silt", "main")] == NAMES


def test_a_view_is_renamed_on_a_branch_and_then_everywhere(store: Store) -> None:
    catalog, old, new = opened(store), RelationName("silt", "main", "v"), RelationName("silt", "main", "w")
    catalog.put_view(View(old, "select 1"))
    branch = catalog.new_branch("silt")
    inside = catalog.on_branch("silt", branch)
    with pytest.raises(RelationExistsError):
        inside.rename(old, NAMES[0])
    inside.rename(old, new)
    assert [entry.name for entry in inside.relations("silt", "main")] == [*NAMES, new]
    assert [entry.name for entry in opened(store, 1).relations("silt", "main")] == [*NAMES, old]
    with pytest.raises(RelationNotFoundError):
        inside.rename(old, new)
    branch.publish()
    assert [entry.name for entry in opened(store, 2).relations("silt", "main")] == [*NAMES, new]
    assert opened(store, 3).view(new).text == "select 1"


def test_an_interrupted_rename_of_a_view_is_completed_when_it_is_repeated(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog, old, new = opened(store), RelationName("silt", "main", "v"), RelationName("silt", "main", "w")
    catalog.put_view(View(old, "select 1"))
    branch = catalog.new_branch("silt")
    change, calls = Branch.change, []

    def killed_at_the_second(changed: Branch, to: NameChange) -> None:
        calls.append(to)
        if len(calls) == 2:
            raise KeyboardInterrupt
        change(changed, to)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Branch, "change", killed_at_the_second)
        catalog.on_branch("silt", branch).rename(old, new)
    other = opened(store, 1)
    again = other.branch("silt", branch.id)
    other.on_branch("silt", again).rename(old, new)
    again.publish()
    assert [entry.name for entry in opened(store, 2).relations("silt", "main")] == [*NAMES, new]
