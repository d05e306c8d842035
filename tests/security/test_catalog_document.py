"""A `_catalog.json` that another user wrote can only name folders and files of the form that this package creates."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.errors import TableDamagedError
from tests.fixed_clock import FixedClock
from tests.memory_object_store import MemoryObjectStore
from tests.unit.engine.catalog.conftest import make_table, named

FOREIGN = "main/other/data.parquet"
UNIQUE = "0190000000000-0123456789ab"
_YEAR_MS = 365 * 24 * 60 * 60 * 1000

FOLDERS: tuple[Any, ...] = (
    "",
    "/",
    ".",
    "..",
    "main",
    "main/other",
    "main/other/",
    "other_prefix",
    f"main/../other/{UNIQUE}",
    f"main/other/{UNIQUE}/..",
    f"/main/other/{UNIQUE}",
    f"main//{UNIQUE}",
    f"main/%2e%2e/{UNIQUE}",
    f"main/other/{UNIQUE}\n",
    f"main/other/{UNIQUE}/_delta_log",
    f"main\0/other/{UNIQUE}",
    "_definitions/0123456789ab",
    7,
    None,
    [],
    {},
)
DEFINITIONS: tuple[Any, ...] = (
    "",
    "_catalog.json",
    FOREIGN,
    "_definitions/",
    "_definitions/../main/other/data.parquet",
    "_definitions/../../etc/passwd",
    "/_definitions/01234567-89ab-cdef-0123-456789abcdef.json",
    "_definitions/01234567-89ab-cdef-0123-456789abcdef.json\n",
    "file:///etc/passwd",
    None,
    1,
    {},
)
NAMES = ("", ".", "..", "a/b", "../x", "_delta_log", "a\0b", "a\x1b[2J", "x.json", "\ud800", "x" * 10_000)


def bucket_with(document: Any) -> MemoryObjectStore:
    """Returns a bucket with a table, with files of another program, and with a replaced document."""
    bucket = MemoryObjectStore()
    catalog = Catalog({"silt": bucket}, FixedClock())
    catalog.create_schema("silt", "main")
    make_table(catalog, named("orders"))
    bucket.put(FOREIGN, b"of another program")
    bucket.put(f"main/other/{UNIQUE}/_delta_log/{0:020d}.json", b"of another program")
    bucket.put("_catalog.json", json.dumps(document).encode())
    return bucket


def document(**of_main: Any) -> dict[str, Any]:
    """Returns a document with the schema `main`, which has these relations or functions."""
    schema = {"createdAt": 1, "relations": {}, "functions": {}, **of_main}
    return {"format": 1, "kind": "names", "schemas": {"main": schema}, "leftovers": {}, "changes": []}


def refuse(body: dict[str, Any]) -> None:
    """Reads and changes names in every way that reads the document; each is refused, and no file is changed."""
    bucket = bucket_with(body)
    before = bucket.read(FOREIGN)
    name = RelationName("silt", "main", "orders")
    for ask in (
        lambda catalog: catalog.find(name),
        lambda catalog: list(catalog.all_relations("silt")),
        lambda catalog: catalog.drop_table(name),
        lambda catalog: catalog.drop_schema("silt", "main", cascade=True),
        lambda catalog: catalog.rename(name, RelationName("silt", "main", "new")),
        lambda catalog: make_table(catalog, named("fresh")),
    ):
        with pytest.raises(TableDamagedError):
            ask(Catalog({"silt": bucket}, FixedClock(at_ms=100 * _YEAR_MS)))
    assert bucket.read(FOREIGN) == before
    assert bucket.read(f"main/other/{UNIQUE}/_delta_log/{0:020d}.json")


@pytest.mark.parametrize("folder", FOLDERS, ids=repr)
def test_a_table_location_that_cannot_be_a_table_folder_is_refused(folder: Any) -> None:
    refuse(document(relations={"orders": {"table": folder}}))


@pytest.mark.parametrize("folder", [each for each in FOLDERS if isinstance(each, str)], ids=repr)
def test_a_folder_to_be_deleted_that_cannot_be_a_table_folder_is_refused(folder: str) -> None:
    refuse({**document(), "leftovers": {folder: 1}})


@pytest.mark.parametrize("path", DEFINITIONS, ids=repr)
def test_a_definition_outside_its_folder_is_refused(path: Any) -> None:
    refuse(document(relations={"orders": {"view": path}}))
    refuse(document(functions={"double": path}))


@pytest.mark.parametrize("name", NAMES, ids=lambda name: repr(name)[:20])
def test_an_invalid_name_is_refused(name: str) -> None:
    location = f"main/other/{UNIQUE}"
    refuse(document(relations={name: {"table": location}}))
    refuse({**document(), "schemas": {name: {"createdAt": 1, "relations": {}, "functions": {}}}})


def test_two_names_for_one_folder_are_refused() -> None:
    entry = {"table": f"main/other/{UNIQUE}"}
    refuse(document(relations={"orders": entry, "copy": entry}))


@pytest.mark.parametrize(
    "body",
    [
        {**document(), "leftovers": {f"main/other/{UNIQUE}": "yesterday"}},
        {**document(), "changes": [1]},
        {**document(), "changes": ["\ud83d"]},
        document(comment="\ud83d"),
        {**document(), "schemas": []},
        {**document(), "schemas": {"main": None}},
        {**document(), "leftovers": None},
        document(relations={"orders": {"table": f"main/other/{UNIQUE}", "mark": 1, "isEnding": 1}}),
        document(relations=[]),
        document(createdAt="x"),
    ],
    ids=lambda body: json.dumps(body)[:60],
)
def test_a_document_with_values_of_wrong_types_is_refused(body: dict[str, Any]) -> None:
    refuse(body)


def test_a_live_tables_folder_is_kept_even_if_it_is_also_listed_for_deletion() -> None:
    location = f"main/other/{UNIQUE}"
    bucket = bucket_with({**document(relations={"orders": {"table": location}}), "leftovers": {location: 1}})
    catalog = Catalog({"silt": bucket}, FixedClock(at_ms=100 * _YEAR_MS))
    make_table(catalog, named("fresh"))
    catalog.drop_table(named("fresh"))
    assert bucket.read(f"{location}/_delta_log/{0:020d}.json")
