"""The catalog of relations in the documentation, and the time of a source's last change."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbt.adapters.silt.column import SiltColumn
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.documents import View
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.errors import RelationNotFoundError
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.kernel.table.actions import Action, AddFile, CommitInfo, Metadata, Protocol, serialize
from dbt.adapters.silt.engine.kernel.table.paths import commit_path
from dbt.adapters.silt.materializations.docs_catalog import RelationDocs, catalog_rows, changed_at, describe

ORDERS = RelationName("silt", "main", "orders")
SCHEMA = '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}'
KEY = '{"kind": "primary key", "columns": ["id"]}'


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    """A catalog with a table of one file, and a view."""
    made = Catalog({"silt": LocalStore(tmp_path)})
    made.create_schema("silt", "main")
    metadata = Metadata("id", SCHEMA, description="n/a", configuration={"silt.constraints.pk": KEY})
    file = AddFile("a.parquet", {}, size=7, modification_time=1, stats='{"numRecords":3}')
    actions: list[Action] = [CommitInfo(timestamp=1, operation="CREATE TABLE"), Protocol(), metadata, file]
    made.new_table(ORDERS).store.put_if_absent(commit_path(0), serialize(actions))
    made.put_view(View(ORDERS.sibling("seen"), "select 1 as id", comment="the view"))
    return made


def described(catalog: Catalog, name: RelationName) -> RelationDocs:
    entry = catalog.find(name)
    assert entry is not None
    return describe(catalog, entry, [SiltColumn("id", "bigint", comment="null"), SiltColumn("n", "int")])


def test_the_catalog_has_a_row_for_each_column_with_unchanged_texts(catalog: Catalog) -> None:
    table = catalog_rows([described(catalog, ORDERS), described(catalog, ORDERS.sibling("seen"))])
    rows = [dict(zip(table.column_names, row, strict=True)) for row in table.rows]
    assert [(row["table_name"], row["column_name"], row["column_index"]) for row in rows] == [
        ("orders", "id", 1),
        ("orders", "n", 2),
        ("seen", "id", 1),
        ("seen", "n", 2),
    ]
    assert (rows[0]["table_comment"], rows[0]["column_comment"], rows[1]["column_comment"]) == ("n/a", "null", None)
    figures = {name: rows[0][f"stats:{name}:value"] for name in ("rows", "bytes", "files", "version", "keys")}
    assert figures == {"rows": 3, "bytes": 7, "files": 1, "version": 0, "keys": "PRIMARY KEY (`id`)"}
    assert all(rows[2][name] is None for name in table.column_names if name.startswith("stats:"))


def test_an_empty_catalog_has_no_rows() -> None:
    assert len(catalog_rows([]).rows) == 0


def test_a_relation_without_a_time_of_change_is_named_with_a_remedy(catalog: Catalog) -> None:
    assert changed_at(catalog, ORDERS).timestamp() > 0
    with pytest.raises(RelationNotFoundError, match=r"it is a view.*loaded_at_field"):
        changed_at(catalog, ORDERS.sibling("seen"))
    with pytest.raises(RelationNotFoundError, match=r"the table does not exist.*schema and identifier"):
        changed_at(catalog, ORDERS.sibling("gone"))
