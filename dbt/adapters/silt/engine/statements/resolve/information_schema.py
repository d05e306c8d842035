"""The schema `information_schema` of each database of ours: what is in the catalog, as rows that a query can read.

It has the relations `tables`, `views` and `schemata` of the SQL standard, with the columns that say what there is.
A schema of ours that really has this name comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from dbt.adapters.silt.engine.catalog.catalog import Catalog, RelationKind
from dbt.adapters.silt.engine.kernel.errors import RelationNotFoundError
from dbt.adapters.silt.engine.sql.ast import Name
from dbt.adapters.silt.engine.statements.resolve.namespace import Namespace

SCHEMA = "information_schema"


@dataclass(frozen=True)
class Listing:
    """One relation of the information schema of one database."""

    database: str
    relation: str

    def rows(self, catalog: Catalog) -> pa.Table:
        """What the catalog holds now."""
        columns, found = _RELATIONS[self.relation]
        rows = list(found(catalog, self.database))
        schema = pa.schema([(name, pa.string()) for name in columns])
        return pa.Table.from_pylist([dict(zip(columns, row, strict=True)) for row in rows], schema)


def listing(name: Name, namespace: Namespace) -> Listing | None:
    """The relation that the name stands for; None if it names nothing of an information schema of ours.

    Raises:
        RelationNotFoundError: the information schema has no such relation.
    """
    if len(name) not in (2, 3) or name[-2].lower() != SCHEMA:
        return None
    database = name[0].lower() if len(name) == 3 else namespace.database
    if not namespace.is_database(database) or namespace.catalog.has_schema(database, SCHEMA):
        return None
    relation = name[-1].lower()
    if relation not in _RELATIONS:
        raise RelationNotFoundError(
            "there is no such relation", table=".".join(name), remedy=f"There are {', '.join(sorted(_RELATIONS))}"
        )
    return Listing(database, relation)


def _tables(catalog: Catalog, database: str) -> Iterator[tuple[str, ...]]:
    kinds = {RelationKind.TABLE: "BASE TABLE", RelationKind.VIEW: "VIEW"}
    for each in catalog.all_relations(database):
        yield each.name.database, each.name.schema, each.name.identifier, kinds[each.kind]


def _views(catalog: Catalog, database: str) -> Iterator[tuple[str, ...]]:
    for each in catalog.all_relations(database):
        if each.kind is RelationKind.VIEW:
            yield each.name.database, each.name.schema, each.name.identifier, catalog.view(each.name).text


def _schemata(catalog: Catalog, database: str) -> Iterator[tuple[str, ...]]:
    for schema in catalog.schemas(database):
        yield database, schema


_Rows = Callable[[Catalog, str], Iterator[tuple[str, ...]]]

_RELATIONS: Mapping[str, tuple[tuple[str, ...], _Rows]] = {
    "tables": (("table_catalog", "table_schema", "table_name", "table_type"), _tables),
    "views": (("table_catalog", "table_schema", "table_name", "view_definition"), _views),
    "schemata": (("catalog_name", "schema_name"), _schemata),
}
