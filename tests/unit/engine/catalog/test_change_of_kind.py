"""A table replaces a view, and a view a table: at every step a reader finds one of the two."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.folders.locks import LOCK_FILE
from dbt.adapters.silt.engine.catalog.names.documents import View
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationKind
from dbt.adapters.silt.engine.kernel.errors import RelationExistsError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.kernel.storage.store import PutResult
from tests.unit.engine.catalog.conftest import make_table, named

Create = Callable[..., DeltaLog]
Watch = Callable[[], None]
ORDERS = named("orders")
VIEW = View(ORDERS, "select 1")


class CutOff(BaseException):
    """Simulates the end of the process: the code under test does not catch it."""


class WatchedStore(LocalStore):
    """Calls a function before and after each change that it makes."""

    def __init__(self, root: Path | str, watch: Watch) -> None:
        super().__init__(root)
        self.watch = watch

    def child(self, folder: str) -> WatchedStore:
        return WatchedStore(self.local_path(folder), self.watch)

    def put(self, path: str, data: bytes) -> None:
        self._watched(lambda: LocalStore.put(self, path, data))

    def put_if_absent(self, path: str, data: bytes) -> PutResult:
        return self._watched(lambda: LocalStore.put_if_absent(self, path, data))  # type: ignore[return-value]

    def delete(self, path: str) -> None:
        self._watched(lambda: LocalStore.delete(self, path))

    def rename_folder(self, source: str, target: str) -> None:
        self._watched(lambda: LocalStore.rename_folder(self, source, target))

    def delete_folder(self, folder: str) -> None:
        self._watched(lambda: LocalStore.delete_folder(self, folder))

    def _watched(self, change: Callable[[], object]) -> object:
        self.watch()
        result = change()
        self.watch()
        return result


class Steps:
    """Counts the calls of a watched store, and ends the process at a given call."""

    def __init__(self, catalog: Catalog, end_at: int | None = None) -> None:
        self.catalog, self.end_at, self.taken = catalog, end_at, 0
        self.seen: list[RelationKind | None] = []

    def __call__(self) -> None:
        self.taken += 1
        self.seen.append(kind_of(self.catalog))
        if self.taken == self.end_at:
            raise CutOff


def kind_of(catalog: Catalog) -> RelationKind | None:
    """Returns the kind of relation that a reader finds, after checking that the listing agrees."""
    entry = catalog.find(ORDERS)
    assert ([] if entry is None else [entry]) == catalog.relations("silt", "main")
    return None if entry is None else entry.kind


def table_over_view(catalog: Catalog) -> None:
    make_table(catalog, ORDERS, replace_view=True)


def view_over_table(catalog: Catalog) -> None:
    catalog.put_view(VIEW, replace=True, replace_table=True)


def watched(warehouse: Path, steps: Steps) -> Catalog:
    return Catalog({"silt": WatchedStore(warehouse, steps)})


def test_a_reader_finds_the_view_until_the_table_is_committed(catalog: Catalog, warehouse: Path) -> None:
    catalog.put_view(VIEW)
    steps = Steps(catalog)
    table_over_view(watched(warehouse, steps))
    kinds = [kind for at, kind in enumerate(steps.seen) if at == 0 or kind is not steps.seen[at - 1]]
    assert kinds == [RelationKind.VIEW, RelationKind.TABLE]
    assert sorted(os.listdir(warehouse / "main")) == [LOCK_FILE, "_schema.json", "orders"]


def test_a_reader_finds_the_table_until_its_log_is_ended(catalog: Catalog, create: Create, warehouse: Path) -> None:
    create(ORDERS)
    steps = Steps(catalog)
    view_over_table(watched(warehouse, steps))
    kinds = [kind for at, kind in enumerate(steps.seen) if at == 0 or kind is not steps.seen[at - 1]]
    assert kinds == [RelationKind.TABLE, RelationKind.VIEW]


@pytest.mark.parametrize("change", [table_over_view, view_over_table])
def test_an_interrupted_change_of_kind_leaves_one_relation_and_a_repetition_finishes_it(
    catalog: Catalog, create: Create, warehouse: Path, change: Callable[[Catalog], None]
) -> None:
    end_at = 1
    while True:
        _ = catalog.put_view(VIEW) if change is table_over_view else create(ORDERS)  # type: ignore[func-returns-value]
        before = kind_of(catalog)
        try:
            change(watched(warehouse, Steps(catalog, end_at)))
            break
        except CutOff:
            assert kind_of(catalog) is not None
            if kind_of(catalog) is before:
                change(catalog)
            assert kind_of(catalog) not in (None, before)
        _drop(catalog)
        assert sorted(os.listdir(warehouse / "main")) == [LOCK_FILE, "_schema.json"]
        end_at += 1
    assert end_at > 3


def test_the_files_of_a_replaced_table_are_kept_until_the_view_is_created_again(
    catalog: Catalog, create: Create, warehouse: Path
) -> None:
    create(ORDERS)
    reading = catalog.table(ORDERS)
    (warehouse / "main" / "orders" / "part-0.parquet").write_bytes(b"rows")
    view_over_table(catalog)
    assert reading.snapshot().num_files == 1
    assert (warehouse / "main" / "orders" / "part-0.parquet").exists()
    view_over_table(catalog)
    assert sorted(os.listdir(warehouse / "main")) == [LOCK_FILE, "_schema.json", "orders.view.json"]


def test_a_table_created_after_a_view_is_a_new_table(catalog: Catalog, create: Create) -> None:
    create(ORDERS, "first")
    view_over_table(catalog)
    make_table(catalog, ORDERS, "second", replace_view=True)
    assert catalog.table(ORDERS).snapshot().metadata.id == "second"


def test_a_view_hidden_by_a_table_does_not_reappear(catalog: Catalog, warehouse: Path) -> None:
    for end in (
        lambda: catalog.drop_table(ORDERS),
        lambda: catalog.rename(ORDERS, named("other")),
        lambda: view_over_table(catalog),
    ):
        catalog.put_view(View(ORDERS, "select 'hidden'"), replace=True)
        make_table(catalog, ORDERS, replace_view=True)
        end()  # type: ignore[no-untyped-call]
        entry = catalog.find(ORDERS)
        assert entry is None or catalog.view(ORDERS).text == "select 1"


def test_a_new_view_is_not_confused_with_the_hidden_view(catalog: Catalog, create: Create) -> None:
    log = create(ORDERS)
    catalog.drop_table(ORDERS)
    catalog.put_view(VIEW)
    with contextlib.suppress(RelationExistsError):  # folders cannot detect a late creator
        catalog.publish_table(ORDERS, log)
    assert kind_of(catalog) is RelationKind.VIEW


def test_a_table_or_view_replaces_the_other_kind_only_on_request(catalog: Catalog, create: Create) -> None:
    create(ORDERS)
    with pytest.raises(RelationExistsError, match="a table with that name exists"):
        catalog.put_view(VIEW, replace=True)
    with pytest.raises(RelationExistsError, match="a table with that name exists"):
        catalog.put_view(VIEW, replace_table=True)
    catalog.put_view(View(named("seen"), "select 1"))
    with pytest.raises(RelationExistsError, match="a view with that name exists"):
        catalog.new_table(named("seen"))


def _drop(catalog: Catalog) -> None:
    if kind_of(catalog) is RelationKind.TABLE:
        catalog.drop_table(ORDERS)
    else:
        catalog.drop_view(ORDERS)
