"""Names of schemas, tables, views and functions: created, found, renamed and dropped."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.folders.locks import LOCK_FILE
from dbt.adapters.silt.engine.catalog.names.documents import Function, View
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationEntry, RelationKind, RelationName
from dbt.adapters.silt.engine.kernel.clock import SystemClock
from dbt.adapters.silt.engine.kernel.errors import (
    InvalidNameError,
    NotATableError,
    RelationExistsError,
    RelationNotFoundError,
    SchemaNotFoundError,
    SiltError,
    StorageError,
    UnsupportedStatementError,
)
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.sql.ast import Parameter
from tests.memory_store import MemoryStore
from tests.unit.engine.catalog.conftest import commit_first, in_folders, make_table, named

Create = Callable[..., DeltaLog]
ORDERS = named("orders")
WRITE = "9bf66de0-8cef-4bf4-89b6-363c318599d5"
VECTOR = f"deletion_vector_{WRITE}.bin"
"""A folder for the data files of a write."""


def entries(catalog: Catalog, schema: str = "main") -> dict[str, str]:
    return {entry.name.identifier: entry.kind.value for entry in catalog.relations("silt", schema)}


# schemas


def test_creating_the_first_schema_creates_the_warehouse(catalog: Catalog, warehouse: Path) -> None:
    assert (warehouse / "main" / "_schema.json").is_file()
    assert catalog.schemas("silt") == ["main"]
    assert catalog.has_schema("SILT", "Main")


def test_git_ignores_a_new_warehouse_and_an_existing_folder_stays_as_it_is(tmp_path: Path) -> None:
    new, foreign = tmp_path / "new", tmp_path / "foreign"
    foreign.mkdir()
    both = Catalog({"new": LocalStore(new), "foreign": LocalStore(foreign)})
    for database in ("new", "foreign"):
        both.create_schema(database, "main")
    assert (new / ".gitignore").read_text() == "*\n"
    assert not (foreign / ".gitignore").exists()
    (new / ".gitignore").unlink()
    both.create_schema("new", "marts")
    assert not (new / ".gitignore").exists(), "the user has deleted it"
    assert both.schemas("new") == ["main", "marts"]


def test_a_missing_warehouse_has_no_schemas(tmp_path: Path) -> None:
    catalog = Catalog({"silt": LocalStore(tmp_path / "none")})
    assert catalog.schemas("silt") == []
    assert not catalog.has_schema("silt", "main")
    assert catalog.find(ORDERS) is None


def test_a_schema_is_created_once(catalog: Catalog) -> None:
    with pytest.raises(RelationExistsError, match=r"silt\.main: the schema already exists"):
        catalog.create_schema("silt", "MAIN")
    catalog.create_schema("silt", "MAIN", if_not_exists=True)
    assert catalog.schemas("silt") == ["main"]


def test_a_folder_without_the_marker_is_not_a_schema(catalog: Catalog, warehouse: Path) -> None:
    (warehouse / "landing").mkdir()
    assert catalog.schemas("silt") == ["main"]


def test_a_missing_schema_or_database_is_named_in_the_error(catalog: Catalog) -> None:
    with pytest.raises(SchemaNotFoundError, match=r"silt\.nope: the schema does not exist"):
        catalog.relations("silt", "nope")
    with pytest.raises(SchemaNotFoundError, match=r"nope: the database does not exist\. Use one of silt"):
        catalog.relations("nope", "main")


IN_A_SCHEMA: dict[str, Callable[[Catalog, RelationName], object]] = {
    "relations": lambda catalog, name: catalog.relations("silt", name.schema),
    "table": lambda catalog, name: catalog.table(name),
    "new_table": lambda catalog, name: catalog.new_table(name),
    "drop_table": lambda catalog, name: catalog.drop_table(name),
    "rename": lambda catalog, name: catalog.rename(name, RelationName("silt", name.schema, "other")),
    "view": lambda catalog, name: catalog.view(name),
    "put_view": lambda catalog, name: catalog.put_view(View(name, "select 1"), replace=True),
    "functions": lambda catalog, name: catalog.functions("silt", name.schema),
    "function": lambda catalog, name: catalog.function(name),
    "put_function": lambda catalog, name: catalog.put_function(Function(name, (), "1", returns="int"), replace=True),
    "drop_function": lambda catalog, name: catalog.drop_function(name),
    "drop_schema": lambda catalog, name: catalog.drop_schema("silt", name.schema, cascade=True),
}


@pytest.mark.parametrize("operation", IN_A_SCHEMA)
def test_nothing_can_be_done_in_a_missing_schema(catalog: Catalog, operation: str) -> None:
    with pytest.raises(SchemaNotFoundError, match=r"silt\.nope: the schema does not exist"):
        IN_A_SCHEMA[operation](catalog, named("orders", "nope"))
    assert catalog.schemas("silt") == ["main"]


def test_a_missing_schema_has_no_relations_and_no_functions(catalog: Catalog) -> None:
    name = named("orders", "nope")
    assert catalog.find(name) is None
    assert not catalog.has_function(name)
    catalog.drop_table(name, if_exists=True)
    catalog.drop_view(name, if_exists=True)
    catalog.drop_function(name, if_exists=True)
    with pytest.raises(RelationNotFoundError):
        catalog.drop_view(name)


@pytest.mark.parametrize("operation", IN_A_SCHEMA)
def test_nothing_is_read_or_changed_in_a_foreign_folder(catalog: Catalog, warehouse: Path, operation: str) -> None:
    catalog.create_schema("silt", "other")
    view = View(named("orders", "other"), "select 1")
    catalog.put_view(view)
    catalog.put_function(Function(view.name, (), "1", returns="int"))
    (warehouse / "other" / "_schema.json").unlink()
    before = sorted(each.name for each in (warehouse / "other").iterdir())
    with pytest.raises(SchemaNotFoundError, match=r"silt\.other: the schema does not exist"):
        IN_A_SCHEMA[operation](catalog, view.name)
    assert catalog.find(view.name) is None
    assert not catalog.has_function(view.name)
    assert sorted(each.name for each in (warehouse / "other").iterdir()) == before


def test_files_whose_names_are_no_identifiers_are_not_relations(catalog: Catalog, warehouse: Path) -> None:
    (warehouse / "Upper").mkdir()
    (warehouse / "Upper" / "_schema.json").write_text("{}")
    for name in ("Upper.view.json", ".hidden.view.json", "plain", "plain.json", "Upper.function.json"):
        (warehouse / "main" / name).write_text("{}")
    assert catalog.schemas("silt") == ["main"]
    assert entries(catalog) == {}
    assert catalog.functions("silt", "main") == []


def test_a_read_only_warehouse_is_named_in_the_error_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    (tmp_path / "link").symlink_to("nothing")
    reasons = {
        tmp_path / "file": "file is a file, not a folder",
        tmp_path / "file" / "warehouse": "file is a file, not a folder",
        tmp_path / "link": "link is a link to a missing folder",
        Path("/proc/warehouse"): "the file system does not create the folder /proc/warehouse",
    }
    for root, reason in reasons.items():
        with pytest.raises(StorageError) as caught:
            Catalog({"silt": LocalStore(root)}).create_schema("silt", "main")
        assert str(root) in str(caught.value)
        assert reason in str(caught.value)
        assert str(caught.value).endswith("Move it, or set `warehouse` to another folder.")


def test_the_root_folder_is_created_but_no_folder_above_it(tmp_path: Path) -> None:
    above = tmp_path / "wharehouses"
    place = Catalog({"silt": LocalStore(above / "shop")})
    with pytest.raises(StorageError, match=f"the folder {above} does not exist") as raised:
        place.create_schema("silt", "main")
    assert raised.value.action.startswith("Create that folder, or correct the path: `warehouse` in the profile")
    assert not above.exists()
    above.mkdir()
    place.create_schema("silt", "main")
    assert place.schemas("silt") == ["main"]


def test_a_schema_that_is_not_empty_is_dropped_only_with_cascade(
    catalog: Catalog, create: Create, warehouse: Path
) -> None:
    create(ORDERS)
    catalog.put_view(View(named("daily"), "select 1"))
    with pytest.raises(RelationExistsError, match="Drop it with `cascade`"):
        catalog.drop_schema("silt", "main")
    assert entries(catalog) == {"orders": "table", "daily": "view"}
    catalog.drop_schema("silt", "main", cascade=True)
    assert catalog.schemas("silt") == []
    assert set(os.listdir(warehouse)) == {LOCK_FILE, ".gitignore"}


def test_an_empty_schema_is_dropped(catalog: Catalog) -> None:
    catalog.drop_schema("silt", "main")
    with pytest.raises(SchemaNotFoundError):
        catalog.drop_schema("silt", "main")
    catalog.drop_schema("silt", "main", if_exists=True)


def test_a_schema_that_contains_a_foreign_folder_is_not_empty(catalog: Catalog, warehouse: Path) -> None:
    (warehouse / "main" / "landing").mkdir()
    with pytest.raises(RelationExistsError):
        catalog.drop_schema("silt", "main")


# relations


def test_tables_and_views_are_listed_by_name(catalog: Catalog, create: Create) -> None:
    create(named("B table"))
    catalog.put_view(View(named("a"), "select 1"))
    assert catalog.relations("silt", "main") == [
        RelationEntry(named("a"), RelationKind.VIEW),
        RelationEntry(named("b table"), RelationKind.TABLE),
    ]


@pytest.mark.parametrize("identifier", ["grün", "order items", "price$", "a-b", "select", "a.b", "_tmp", "注文"])
def test_a_table_with_any_permitted_name_is_created_found_and_dropped(
    catalog: Catalog, create: Create, identifier: str, warehouse: Path
) -> None:
    create(named(identifier))
    assert catalog.find(named(identifier.upper())) == RelationEntry(named(identifier), RelationKind.TABLE)
    assert (warehouse / "main" / named(identifier).identifier / "_delta_log").is_dir()
    catalog.drop_table(named(identifier))
    assert entries(catalog) == {}


@pytest.mark.parametrize("text", ["..", "../out", "/etc", "a/b", "it's", 'q"', "b`t", "x" * 300, "", "nul\0"])
def test_a_name_that_leads_out_of_the_warehouse_is_refused_before_anything_is_written(
    catalog: Catalog, warehouse: Path, tmp_path: Path, text: str
) -> None:
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InvalidNameError):
        catalog.create_schema("silt", text)
    with pytest.raises(InvalidNameError):
        named(text)
    assert sorted(tmp_path.rglob("*")) == before


@in_folders
def test_a_failed_listing_is_an_error_not_a_missing_table(catalog: Catalog, create: Create) -> None:
    create(ORDERS)

    class Failing(LocalStore):
        def list_folders(self, folder: str) -> list[str]:
            raise StorageError("the listing failed half-way")

    failing = Catalog({"silt": Failing(catalog.table(ORDERS).store.root.removesuffix("/main/orders"))})
    with pytest.raises(StorageError, match="half-way"):
        failing.relations("silt", "main")
    with pytest.raises(StorageError, match="half-way"):
        failing.schemas("silt")


def test_a_log_that_cannot_be_listed_is_an_error_not_a_missing_table(
    catalog: Catalog, create: Create, warehouse: Path
) -> None:
    create(ORDERS)

    class Failing(LocalStore):
        def status(self, path: str):  # type: ignore[no-untyped-def]
            if "_delta_log" in path:
                raise StorageError("permission denied")
            return super().status(path)

        def child(self, folder: str) -> Failing:
            return Failing(self.local_path(folder))

    with pytest.raises(StorageError, match="permission denied"):
        Catalog({"silt": Failing(warehouse)}).find(ORDERS)


def test_foreign_folders_are_not_relations(catalog: Catalog, warehouse: Path) -> None:
    for folder in (".hidden", "Upper", "plain", "with:colon", ".dropped-1"):
        (warehouse / "main" / folder).mkdir()
    assert entries(catalog) == {}


def test_a_folder_that_is_not_a_table_is_named_if_a_table_is_expected(catalog: Catalog, warehouse: Path) -> None:
    (warehouse / "main" / "orders").mkdir()
    (warehouse / "main" / "orders" / "data.csv").write_text("1")
    assert catalog.find(ORDERS) is None
    for ask in (catalog.table, catalog.drop_table):
        with pytest.raises(
            NotATableError, match=r"silt\.main\.orders: the folder .*/main/orders has no table log"
        ) as caught:
            ask(ORDERS)
        assert "remove the folder" in str(caught.value)
    catalog.drop_table(ORDERS, if_exists=True)
    assert (warehouse / "main" / "orders" / "data.csv").exists()


@in_folders
@pytest.mark.parametrize(
    "left", [(), ("_delta_log",), ("_delta_log", f"{WRITE}/p=1", "_change_data"), (WRITE,), (VECTOR, "_delta_log")]
)
def test_a_table_whose_creation_failed_is_reported_as_not_created(
    catalog: Catalog, warehouse: Path, left: tuple[str, ...]
) -> None:
    folder = warehouse / "main" / "orders"
    folder.mkdir()
    for each in left:
        (folder / each).parent.mkdir(parents=True, exist_ok=True)
        if each == VECTOR:
            (folder / each).touch()
            continue
        (folder / each).mkdir()
        (folder / each / ".part-0.parquet.crc").touch()
    assert catalog.find(ORDERS) is None
    for ask in (catalog.table, catalog.drop_table):
        with pytest.raises(RelationNotFoundError, match=r"silt\.main\.orders: the table is not built yet"):
            ask(ORDERS)
    catalog.drop_table(ORDERS, if_exists=True)
    commit_first(catalog.new_table(ORDERS))
    assert entries(catalog) == {"orders": "table"}


@in_folders
@pytest.mark.parametrize("other", ["part-0.parquet", "day=2026-03-01/part-0.parquet", f"{WRITE}0/part-0.parquet"])
def test_a_folder_with_foreign_files_is_not_reported_as_a_failed_creation(
    catalog: Catalog, warehouse: Path, other: str
) -> None:
    file = warehouse / "main" / "orders" / other
    file.parent.mkdir(parents=True)
    file.touch()
    with pytest.raises(NotATableError, match="has no table log"):
        catalog.table(ORDERS)


# tables


@in_folders
def test_a_table_exists_from_its_first_commit(catalog: Catalog) -> None:
    log = catalog.new_table(ORDERS)
    assert catalog.find(ORDERS) is None
    commit_first(log)
    assert entries(catalog) == {"orders": "table"}
    assert catalog.table(ORDERS).snapshot().metadata.id == "first"


def test_an_existing_name_cannot_be_created_again(catalog: Catalog, create: Create) -> None:
    create(ORDERS)
    catalog.put_view(View(named("daily"), "select 1"))
    with pytest.raises(RelationExistsError, match="the table already exists"):
        catalog.new_table(ORDERS)
    with pytest.raises(RelationExistsError, match="a view with that name exists"):
        catalog.new_table(named("daily"))
    with pytest.raises(RelationExistsError, match="a table with that name exists"):
        catalog.put_view(View(ORDERS, "select 1"), replace=True)


@in_folders
def test_one_of_two_creators_gets_the_table(catalog: Catalog) -> None:
    results = {commit_first(catalog.new_table(ORDERS), "a").value, commit_first(catalog.table(ORDERS), "b").value}
    assert results == {"created", "exists"}
    assert catalog.table(ORDERS).snapshot().metadata.id == "a"


def test_the_handle_of_a_table_is_cached_and_shared(catalog: Catalog, create: Create) -> None:
    create(ORDERS)
    found: list[DeltaLog] = []
    threads = [threading.Thread(target=lambda: found.append(catalog.table(ORDERS))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(log) for log in found}) == 1


def test_a_table_re_created_by_another_process_is_noticed(catalog: Catalog, create: Create, warehouse: Path) -> None:
    create(ORDERS)
    assert catalog.table(ORDERS).snapshot().metadata.id == "first"
    other = Catalog({"silt": LocalStore(warehouse)}, SystemClock())
    other.drop_table(ORDERS)
    assert catalog.find(ORDERS) is None
    make_table(other, ORDERS, "second")
    assert catalog.table(ORDERS).snapshot().metadata.id == "second"


def test_a_missing_table_and_a_view_of_its_name_raise_different_errors(catalog: Catalog) -> None:
    catalog.put_view(View(named("daily"), "select 1"))
    with pytest.raises(RelationNotFoundError, match=r"silt\.main\.orders: the table or view does not exist"):
        catalog.table(ORDERS)
    with pytest.raises(RelationNotFoundError, match="it is a view, not a table"):
        catalog.table(named("daily"))
    with pytest.raises(RelationNotFoundError, match="it is a view, not a table"):
        catalog.drop_table(named("daily"), if_exists=True)


def test_a_table_is_found_by_its_path(catalog: Catalog, create: Create, warehouse: Path) -> None:
    create(named("order items"))
    path = f"{warehouse}/main/order items"
    assert catalog.table_at(path).snapshot().metadata.id == "first"
    assert catalog.table_at("file://" + path.replace(" ", "%20")).snapshot().metadata.id == "first"
    with pytest.raises(NotATableError, match=r"delta\.`.*/main`"):
        catalog.table_at(f"{warehouse}/main").snapshot()


@pytest.mark.parametrize("path", ["", "hdfs://host/table", "nul\0"])
def test_a_path_outside_every_known_storage_is_refused(catalog: Catalog, path: str) -> None:
    with pytest.raises(InvalidNameError):
        catalog.table_at(path)


# renaming


def test_a_renamed_table_keeps_its_identity(catalog: Catalog, create: Create) -> None:
    create(ORDERS)
    catalog.create_schema("silt", "archive")
    catalog.rename(ORDERS, named("old orders", "archive"))
    assert catalog.find(ORDERS) is None
    assert catalog.table(named("old orders", "archive")).snapshot().metadata.id == "first"
    create(ORDERS, "second")
    assert catalog.table(ORDERS).snapshot().metadata.id == "second"


def test_a_renamed_view_keeps_its_query(catalog: Catalog) -> None:
    catalog.put_view(View(named("daily"), "select 1", comment="c", current_schema="main"))
    catalog.rename(named("daily"), named("hourly"))
    assert entries(catalog) == {"hourly": "view"}
    assert catalog.view(named("hourly")) == View(named("hourly"), "select 1", comment="c", current_schema="main")


@in_folders
def test_repeating_an_interrupted_rename_of_a_view_finishes_it(catalog: Catalog) -> None:
    catalog.put_view(View(named("daily"), "select 1"))
    catalog.put_view(View(named("hourly"), "select 1"))
    catalog.rename(named("daily"), named("hourly"))
    assert entries(catalog) == {"hourly": "view"}


def test_a_rename_never_overwrites(catalog: Catalog, create: Create, warehouse: Path) -> None:
    create(ORDERS)
    create(named("other"), "other")
    catalog.put_view(View(named("daily"), "select 1"))
    (warehouse / "main" / "foreign").mkdir()
    for taken in ("other", "daily", "foreign"):
        with pytest.raises(RelationExistsError):
            catalog.rename(ORDERS, named(taken))
    with pytest.raises(RelationExistsError):
        catalog.rename(named("daily"), ORDERS)
    assert entries(catalog) == {"orders": "table", "other": "table", "daily": "view"}


def test_a_rename_needs_an_existing_source_and_a_target_in_the_same_database(catalog: Catalog) -> None:
    with pytest.raises(RelationNotFoundError):
        catalog.rename(ORDERS, named("x"))
    with pytest.raises(SchemaNotFoundError):
        catalog.rename(ORDERS, named("x", "nope"))
    with pytest.raises(UnsupportedStatementError, match="another database"):
        catalog.rename(ORDERS, RelationName("raw", "main", "x"))


# views and functions


def test_of_two_concurrent_creators_of_a_view_one_gets_the_already_exists_error(catalog: Catalog) -> None:
    outcomes: list[str] = []

    def make(text: str) -> None:
        try:
            catalog.put_view(View(named("daily"), text))
            outcomes.append(text)
        except RelationExistsError:
            outcomes.append("exists")

    threads = [threading.Thread(target=make, args=(f"select {n}",)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    winners = [outcome for outcome in outcomes if outcome != "exists"]
    assert len(outcomes) == 6
    assert winners == [catalog.view(named("daily")).text]


def test_a_view_is_replaced_only_on_request(catalog: Catalog) -> None:
    catalog.put_view(View(named("daily"), "select 1"))
    catalog.put_view(View(named("Daily"), "select 2"), replace=True)
    assert catalog.view(named("daily")).text == "select 2"


def test_a_view_is_dropped_by_drop_view_only(catalog: Catalog, create: Create) -> None:
    create(ORDERS)
    catalog.put_view(View(named("daily"), "select 1"))
    catalog.drop_view(named("daily"))
    with pytest.raises(RelationNotFoundError, match="the view does not exist"):
        catalog.drop_view(named("daily"))
    catalog.drop_view(named("daily"), if_exists=True)
    catalog.drop_view(named("x", "no_schema"), if_exists=True)
    with pytest.raises(RelationNotFoundError, match="it is a table"):
        catalog.drop_view(ORDERS, if_exists=True)
    with pytest.raises(RelationNotFoundError):
        catalog.view(named("daily"))


def test_creating_a_view_requires_an_existing_schema(catalog: Catalog) -> None:
    with pytest.raises(SchemaNotFoundError):
        catalog.put_view(View(named("daily", "nope"), "select 1"))


def test_a_function_may_have_the_name_of_a_table(catalog: Catalog, create: Create) -> None:
    create(ORDERS)
    function = Function(ORDERS, (Parameter("x", "int"),), "x + 1", returns="int")
    catalog.put_function(function)
    with pytest.raises(RelationExistsError):
        catalog.put_function(function)
    catalog.put_function(function, replace=True)
    assert catalog.functions("silt", "main") == [ORDERS]
    assert catalog.function(ORDERS) == function
    assert entries(catalog) == {"orders": "table"}
    catalog.drop_function(ORDERS)
    with pytest.raises(RelationNotFoundError):
        catalog.drop_function(ORDERS)
    catalog.drop_function(ORDERS, if_exists=True)


def test_every_error_names_its_relation(catalog: Catalog) -> None:
    with pytest.raises(SiltError) as caught:
        catalog.table(named("x", "nope"))
    assert caught.value.table == "silt.nope"


# other stores


def test_a_catalog_over_memory_creates_renames_and_drops_like_one_over_a_folder() -> None:
    catalog = Catalog({"silt": MemoryStore(), "raw": MemoryStore()})
    catalog.create_schema("silt", "main")
    make_table(catalog, ORDERS)
    catalog.rename(ORDERS, named("archive"))
    catalog.put_view(View(named("daily"), "select 1"))
    assert entries(catalog) == {"archive": "table", "daily": "view"}
    assert catalog.schemas("raw") == []
    catalog.drop_table(named("archive"))
    assert entries(catalog) == {"daily": "view"}
    catalog.drop_schema("silt", "main", cascade=True)
    assert catalog.schemas("silt") == []


def test_all_tables_of_all_databases_are_listed_by_name(tmp_path: Path) -> None:
    catalog = Catalog({name: LocalStore(tmp_path / name) for name in ("silt", "raw", "empty")})
    for name in ("silt.main.b", "silt.main.a", "silt.early.c", "raw.main.d"):
        database, schema, identifier = name.split(".")
        catalog.create_schema(database, schema, if_not_exists=True)
        make_table(catalog, RelationName(database, schema, identifier))
    catalog.put_view(View(RelationName("silt", "main", "aa"), "select 1"))
    assert list(map(str, catalog.all_tables())) == ["raw.main.d", "silt.early.c", "silt.main.a", "silt.main.b"]
    kinds = {str(entry.name): entry.kind.value for entry in catalog.all_relations("silt")}
    assert list(kinds) == ["silt.early.c", "silt.main.a", "silt.main.aa", "silt.main.b"]
    assert kinds["silt.main.aa"] == "view"
