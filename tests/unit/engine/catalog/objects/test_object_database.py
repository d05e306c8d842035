"""Names in an object store: the behaviour that folders do not share. Common behaviour is tested in the folder above."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import TypeVar

import pytest

from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.documents import View
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.errors import (
    RelationExistsError,
    RelationNotFoundError,
    SchemaNotFoundError,
    StorageError,
    TableDamagedError,
    UnsupportedFeatureError,
)
from dbt.adapters.silt.engine.kernel.storage.store import Store, Tag
from dbt.adapters.silt.engine.kernel.table.paths import commit_name
from tests.faulty_store import Fault, FaultKind, FaultyStore
from tests.fixed_clock import FixedClock
from tests.memory_object_store import MemoryObjectStore
from tests.unit.engine.catalog.conftest import commit_first, make_table, named

T = TypeVar("T")
ORDERS = named("orders")
DOCUMENT = "_catalog.json"
_DAY_MS = 24 * 60 * 60 * 1000


class CountingStore(FaultyStore):
    """Counts the operations on a store, by name and by the last part of the path."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.counts: Counter[str] = Counter()

    def around(self, operation: str, path: str, run: Callable[[], T]) -> T:
        self.counts[f"{operation} {path.rpartition('/')[2]}"] += 1
        return super().around(operation, path, run)


@pytest.fixture
def bucket() -> MemoryObjectStore:
    return MemoryObjectStore()


def of(store: Store, clock: FixedClock | None = None) -> Catalog:
    """Returns the catalog of another process, with the schema `main`."""
    catalog = Catalog({"silt": store}, clock or FixedClock())
    catalog.create_schema("silt", "main", if_not_exists=True)
    return catalog


def folders(bucket: MemoryObjectStore, name: RelationName = ORDERS) -> list[str]:
    """Returns the undeleted folders that tables of a name have had."""
    parents = bucket.list_folders(name.schema) if name.schema in bucket.list_folders("") else []
    return bucket.list_folders(f"{name.schema}/{name.identifier}") if name.identifier in parents else []


def test_a_re_created_table_gets_another_folder(bucket: MemoryObjectStore) -> None:
    catalog = of(bucket)
    make_table(catalog, ORDERS)
    (first,) = folders(bucket)
    catalog.drop_table(ORDERS)
    assert folders(bucket) == []
    make_table(catalog, ORDERS)
    assert first not in folders(bucket)


def test_a_table_does_not_exist_before_it_has_its_name(bucket: MemoryObjectStore) -> None:
    catalog = of(bucket)
    log = catalog.new_table(ORDERS)
    commit_first(log)
    assert of(bucket).find(ORDERS) is None
    catalog.publish_table(ORDERS, log)
    assert of(bucket).table(ORDERS).snapshot().version == 0


def test_one_of_two_creators_gets_the_name_and_the_other_leaves_no_files(bucket: MemoryObjectStore) -> None:
    first, second = of(bucket), of(bucket, FixedClock(seed=2))
    logs = [catalog.new_table(ORDERS) for catalog in (first, second)]
    for number, log in enumerate(logs):
        commit_first(log, str(number))
    second.publish_table(ORDERS, logs[1])
    with pytest.raises(RelationExistsError):
        first.publish_table(ORDERS, logs[0])
    assert first.table(ORDERS).snapshot().metadata.id == "1"
    assert len(folders(bucket)) == 1


def test_dropping_a_schema_that_another_process_drops_meanwhile_succeeds_only_with_if_exists(
    bucket: MemoryObjectStore,
) -> None:
    others = of(bucket)

    class Beaten(FaultyStore):
        """Lets another process drop the schema before the first change of the names."""

        def swap_if_unchanged(self, path: str, data: bytes, tag: Tag) -> Tag | None:
            others.drop_schema("silt", "main", if_exists=True)
            return super().swap_if_unchanged(path, data, tag)

    Catalog({"silt": Beaten(bucket)}, FixedClock(seed=2)).drop_schema("silt", "main", if_exists=True)
    assert others.schemas("silt") == []
    others.create_schema("silt", "main")
    with pytest.raises(SchemaNotFoundError):
        Catalog({"silt": Beaten(bucket)}, FixedClock(seed=3)).drop_schema("silt", "main")


def test_a_table_created_in_a_schema_that_is_dropped_meanwhile_gets_no_name(bucket: MemoryObjectStore) -> None:
    catalog = of(bucket)
    log = catalog.new_table(ORDERS)
    commit_first(log)
    of(bucket).drop_schema("silt", "main")
    with pytest.raises(SchemaNotFoundError):
        catalog.publish_table(ORDERS, log)


def test_a_listing_is_one_request_and_a_statement_sends_it_once(bucket: MemoryObjectStore) -> None:
    catalog = of(bucket)
    for number in range(20):
        make_table(catalog, named(f"t{number}"))
    counting = CountingStore(bucket)
    reader = of(counting)
    counting.counts.clear()
    assert len(reader.relations("silt", "main")) == 20
    assert counting.counts == {f"read_if_changed {DOCUMENT}": 1}
    statement = reader.for_statement()
    counting.counts.clear()
    assert statement.has_schema("silt", "main")
    assert statement.find(named("t3")) is not None
    assert statement.find(named("other")) is None
    assert counting.counts == {f"read_if_changed {DOCUMENT}": 1}


def test_a_statement_sees_the_tables_created_before_its_start(bucket: MemoryObjectStore) -> None:
    reader, writer = of(bucket), of(bucket, FixedClock(seed=2))
    assert reader.for_statement().find(ORDERS) is None
    make_table(writer, ORDERS)
    assert reader.for_statement().find(ORDERS) is not None


def test_a_rename_does_not_move_the_tables_files(bucket: MemoryObjectStore) -> None:
    catalog = of(bucket)
    log = make_table(catalog, ORDERS)
    catalog.rename(ORDERS, named("sales"))
    assert catalog.table(named("sales")).store.root == log.store.root
    assert catalog.table_of_file(f"{log.store.root}/part-0.parquet") == named("sales")
    make_table(catalog, ORDERS, "another")
    assert of(bucket).table(named("sales")).snapshot().metadata.id == "first"


def test_the_folder_of_an_interrupted_creation_is_deleted_after_a_week(bucket: MemoryObjectStore) -> None:
    clock = FixedClock()
    commit_first(of(bucket, clock).new_table(ORDERS))
    later = FixedClock(clock.now_ms() + 6 * _DAY_MS, seed=2)
    of(bucket, later).new_table(ORDERS)
    assert len(folders(bucket)) == 1
    of(bucket, FixedClock(clock.now_ms() + 8 * _DAY_MS, seed=3)).new_table(ORDERS)
    assert folders(bucket) == []


def test_the_files_of_a_table_replaced_by_a_view_are_kept_for_a_day(bucket: MemoryObjectStore) -> None:
    clock = FixedClock()
    catalog = of(bucket, clock)
    make_table(catalog, ORDERS)
    catalog.put_view(View(ORDERS, "select 1"), replace=True, replace_table=True)
    catalog.put_view(View(named("other"), "select 1"))
    assert len(folders(bucket)) == 1
    later = of(bucket, FixedClock(clock.now_ms() + 2 * _DAY_MS, seed=2))
    later.put_view(View(ORDERS, "select 2"), replace=True)
    assert folders(bucket) == []
    assert json.loads(bucket.read(DOCUMENT))["leftovers"] == {}


def test_the_definition_of_a_replaced_view_is_deleted(bucket: MemoryObjectStore) -> None:
    catalog = of(bucket)
    for number in range(3):
        catalog.put_view(View(ORDERS, f"select {number}"), replace=True)
    with pytest.raises(RelationExistsError):
        catalog.put_view(View(ORDERS, "select 3"))
    assert len(bucket.list_from("_definitions")) == 1
    catalog.drop_view(ORDERS)
    assert [status.name for status in bucket.list_from("")] == [DOCUMENT]


def test_a_reader_finds_the_new_view_if_the_view_is_replaced_after_the_lookup(bucket: MemoryObjectStore) -> None:
    reader, writer = of(bucket), of(bucket, FixedClock(seed=2))
    writer.put_view(View(ORDERS, "select 1"))
    statement = reader.for_statement()
    assert statement.find(ORDERS) is not None
    writer.put_view(View(ORDERS, "select 2"), replace=True)
    assert statement.view(ORDERS).text == "select 2"
    writer.drop_view(ORDERS)
    with pytest.raises(RelationNotFoundError):
        reader.for_statement().view(ORDERS)


@pytest.mark.parametrize("left", ["nothing", commit_name(1)])
def test_a_reader_during_the_deletion_of_a_dropped_table_finds_no_table(bucket: MemoryObjectStore, left: str) -> None:
    class Deleting(FaultyStore):
        """Deletes all objects of a folder except one."""

        def delete_folder(self, folder: str) -> None:
            for file in self.inner.files_below(folder):
                if file.name != left:
                    self.inner.delete(file.path)

    class Overtaken(FaultyStore):
        """Lets another process drop the table between the lookup of the name and the read of the log."""

        is_dropping = False

        def around(self, operation: str, path: str, run: Callable[[], T]) -> T:
            if operation == "list_from" and Overtaken.is_dropping:
                Overtaken.is_dropping = False
                dropper.drop_table(ORDERS)
            return super().around(operation, path, run)

    dropper, reader = of(Deleting(bucket)), of(Overtaken(bucket), FixedClock(seed=2))
    make_table(dropper, ORDERS)
    interrupted = of(FaultyStore(bucket, [Fault("put", FaultKind.FAIL_BEFORE, "*_drop.json")]))
    with pytest.raises(StorageError):
        interrupted.drop_table(ORDERS)  # the name is already marked as dropped
    Overtaken.is_dropping = True
    assert reader.for_statement().find(ORDERS) is None


@pytest.mark.parametrize("kind", [FaultKind.FAIL_AFTER, FaultKind.TWICE, FaultKind.FAIL_BEFORE])
def test_a_change_whose_answer_is_lost_is_applied_once(bucket: MemoryObjectStore, kind: FaultKind) -> None:
    of(bucket)
    catalog = of(FaultyStore(bucket, [Fault("swap_if_unchanged", kind, times=1)]))
    make_table(catalog, ORDERS)
    assert of(bucket).table(ORDERS).snapshot().version == 0
    assert len(json.loads(bucket.read(DOCUMENT))["changes"]) == 2


def test_a_storage_that_never_accepts_a_change_of_names_raises_an_error_and_creates_no_table(
    bucket: MemoryObjectStore,
) -> None:
    of(bucket)
    catalog = of(FaultyStore(bucket, [Fault("swap_if_unchanged", FaultKind.FAIL_BEFORE)]))
    with pytest.raises(StorageError):
        make_table(catalog, ORDERS)
    assert of(bucket).find(ORDERS) is None


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"format": 1, "kind": "names"}'])
def test_a_damaged_document_is_an_error_not_an_empty_warehouse(bucket: MemoryObjectStore, text: bytes) -> None:
    of(bucket)
    bucket.put(DOCUMENT, text)
    with pytest.raises(TableDamagedError, match=r"_catalog\.json"):
        Catalog({"silt": bucket}).find(ORDERS)
    with pytest.raises(TableDamagedError):
        Catalog({"silt": bucket}).create_schema("silt", "main")
    assert bucket.read(DOCUMENT) == text


def test_a_document_of_a_later_format_is_not_changed(bucket: MemoryObjectStore) -> None:
    bucket.put(DOCUMENT, b'{"format": 3, "kind": "names"}')
    with pytest.raises(UnsupportedFeatureError, match="format 3"):
        Catalog({"silt": bucket}).schemas("silt")


def test_a_rename_after_an_interrupted_drop_keeps_the_in_commit_timestamps(bucket: MemoryObjectStore) -> None:
    log = make_table(catalog := of(bucket, FixedClock(at_ms=_DAY_MS)), ORDERS, with_in_commit_timestamps=True)
    interrupted = of(FaultyStore(bucket, [Fault("put_if_absent", FaultKind.FAIL_BEFORE, "*.json")]))
    with pytest.raises(StorageError):
        interrupted.drop_table(ORDERS)
    catalog.rename(ORDERS, named("sales"))
    before, after = (each.info.in_commit_timestamp for each in log.commits())
    assert before is not None and after == before + 1, "the clock of the rename is behind"
