"""Lists the catalog as rows that queries can read: the schema `information_schema` of each database of the warehouse.

It has the relations `tables`, `views`, `columns` and `schemata` of the SQL standard, with a part of their columns. A
real schema of the warehouse with this name takes precedence.

Values that need a table's log, or an analysis of a view's query, are looked up only for the relations that the query's
conditions select, and only for the columns that it may use.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.documents import View
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationEntry, RelationKind, RelationName
from dbt.adapters.silt.engine.kernel.errors import (
    NotATableError,
    RelationNotFoundError,
    TableDamagedError,
    UnavailableError,
    UnsupportedFeatureError,
)
from dbt.adapters.silt.engine.kernel.files.stats_json import row_count
from dbt.adapters.silt.engine.kernel.table.expressions import TRUE, Expression, may_be_true
from dbt.adapters.silt.engine.kernel.table.schema import (
    CURRENT_DEFAULT,
    DecimalType,
    PrimitiveType,
    StructField,
    StructType,
)
from dbt.adapters.silt.engine.kernel.table.text_lengths import declared_type, length_limit
from dbt.adapters.silt.engine.sql.ast import Name
from dbt.adapters.silt.engine.sql.spans import Tokens
from dbt.adapters.silt.engine.statements.resolve.namespace import Namespace

_logger = logging.getLogger(__name__)

SCHEMA = "information_schema"

ViewColumns = Callable[[RelationName], StructType | None]
"""Returns the columns of a view, if its query can be analysed."""


@dataclass(frozen=True)
class Asked:
    """The kinds of relations and the columns that a query requests.

    Attributes:
        predicate: condition that a row must fulfil to contribute to the query's result.
        row_count: whether the query may use the column `row_count`.
    """

    predicate: Expression = TRUE
    row_count: bool = True

    def of(self, **row: str) -> bool:
        """Returns whether the query may ask for a row with these values, among other columns."""
        return may_be_true(self.predicate, row)


@dataclass(frozen=True)
class Listing:
    """A relation of a database's information schema."""

    database: str
    relation: str

    @property
    def schema(self) -> StructType:
        names = _RELATIONS[self.relation][0]
        return StructType(tuple(StructField(name, PrimitiveType(_KINDS.get(name, "string"))) for name in names))

    def rows(self, catalog: Catalog, asked: Asked, view_columns: ViewColumns) -> pa.Table:
        """Returns the current rows of the catalog, at least the requested rows.

        Columns and numbers of rows of an unreadable table or view are missing.

        Raises:
            StorageError: if the names cannot be listed.
        """
        columns, found = _RELATIONS[self.relation]
        rows = found(_Source(catalog, self.database, asked, view_columns))
        schema = pa.schema([(name, _ARROW[_KINDS.get(name, "string")]) for name in columns])
        return pa.Table.from_pylist([dict(zip(columns, row, strict=True)) for row in rows], schema)


def listing(name: Name, namespace: Namespace) -> Listing | None:
    """Returns the relation that the name refers to, if it is in an information schema of the warehouse.

    Raises:
        RelationNotFoundError: if the information schema has no such relation.
    """
    if len(name) not in (2, 3) or name[-2].lower() != SCHEMA:
        return None
    database = name[0].lower() if len(name) == 3 else namespace.database
    if not namespace.is_database(database) or namespace.catalog.has_schema(database, SCHEMA):
        return None
    relation = name[-1].lower()
    if relation not in _RELATIONS:
        raise RelationNotFoundError(
            "the relation does not exist",
            table=".".join(name),
            remedy=f"information_schema has {', '.join(sorted(_RELATIONS))}",
        )
    return Listing(database, relation)


def asked(text: Tokens, predicate: Expression) -> Asked:
    """Returns the part of a relation that the text asks for.

    Args:
        predicate: condition that a row must fulfil to contribute to the text's result.
    """
    words = {token.identifier.lower() for token in text if token.is_identifier}
    # Without a star, all columns are still used by position if a query begins with FROM, or is TABLE.
    by_position = any(
        token.word == "TABLE" or (token.word == "FROM" and (not index or text[index - 1].word == "("))
        for index, token in enumerate(text)
    )
    return Asked(predicate, "row_count" in words or by_position or any(token.word == "*" for token in text))


@dataclass(frozen=True)
class _Source:
    catalog: Catalog
    database: str
    asked: Asked
    view_columns: ViewColumns

    def relations(self) -> Iterator[RelationEntry]:
        """Yields the requested tables and views."""
        for each in self.catalog.all_relations(self.database):
            if self.asked.of(**dict(zip(_NAME, _parts(each.name), strict=True))):
                yield each

    def columns(self, entry: RelationEntry) -> StructType:
        """Returns the columns of a relation; empty if it no longer exists or cannot be read."""
        if entry.kind is RelationKind.VIEW:
            view = self.view(entry)
            return StructType() if view is None else view.commented(self.view_columns(entry.name) or StructType())
        try:
            return self.catalog.table(entry.name).snapshot().schema
        except (RelationNotFoundError, NotATableError):
            return StructType()
        except (TableDamagedError, UnsupportedFeatureError, UnavailableError) as error:
            _logger.warning("information_schema has no columns of %s: %s", entry.name, error)
            return StructType()

    def view(self, entry: RelationEntry) -> View | None:
        """Returns a view, or None if it no longer exists, or its document cannot be read."""
        with contextlib.suppress(RelationNotFoundError, TableDamagedError, UnsupportedFeatureError, UnavailableError):
            return self.catalog.view(entry.name)
        return None

    def row_count(self, entry: RelationEntry) -> int | None:
        if entry.kind is not RelationKind.TABLE or not self.asked.row_count:
            return None
        with contextlib.suppress(RelationNotFoundError, TableDamagedError, UnsupportedFeatureError, UnavailableError):
            return row_count(self.catalog.table(entry.name).snapshot().files)
        return None


_Row = tuple[str | int | None, ...]


def _tables(source: _Source) -> Iterator[_Row]:
    kinds = {RelationKind.TABLE: "BASE TABLE", RelationKind.VIEW: "VIEW"}
    for each in source.relations():
        if source.asked.of(table_type=kinds[each.kind]):
            yield (*_parts(each.name), kinds[each.kind], source.row_count(each))


def _views(source: _Source) -> Iterator[_Row]:
    for each in source.relations():
        if each.kind is RelationKind.VIEW:
            view = source.view(each)
            yield (*_parts(each.name), None if view is None else view.text)


def _columns(source: _Source) -> Iterator[_Row]:
    for each in source.relations():
        for position, member in enumerate(source.columns(each), 1):
            yield (*_parts(each.name), member.name, position, *_facts(member))


def _schemata(source: _Source) -> Iterator[_Row]:
    for schema in source.catalog.schemas(source.database):
        yield source.database, schema


def _parts(name: RelationName) -> tuple[str, str, str]:
    return name.database, name.schema, name.identifier


def _facts(member: StructField) -> _Row:
    default = member.default if CURRENT_DEFAULT in member.metadata else None
    limit = length_limit(declared_type(member))
    number = member.type if isinstance(member.type, DecimalType) else None
    digits = (number.precision, number.scale) if number else _DIGITS.get(member.type.sql_name)
    return (
        default,
        "YES" if member.nullable else "NO",
        member.sql_type,
        member.sql_type,
        None if limit is None else limit[1],
        *(digits or (None, None)),
        "NEVER" if member.generation_expression is None else "ALWAYS",
        member.generation_expression,
        member.comment,
    )


_DIGITS: Mapping[str, tuple[int, int]] = {"tinyint": (3, 0), "smallint": (5, 0), "int": (10, 0), "bigint": (19, 0)}
"""Precision and scale of the exact types, in decimal digits."""

_NAME = ("table_catalog", "table_schema", "table_name")
_RELATIONS: Mapping[str, tuple[tuple[str, ...], Callable[[_Source], Iterator[_Row]]]] = {
    "tables": ((*_NAME, "table_type", "row_count"), _tables),
    "views": ((*_NAME, "view_definition"), _views),
    "columns": (
        (
            *_NAME,
            "column_name",
            "ordinal_position",
            "column_default",
            "is_nullable",
            "data_type",
            "full_data_type",
            "character_maximum_length",
            "numeric_precision",
            "numeric_scale",
            "is_generated",
            "generation_expression",
            "comment",
        ),
        _columns,
    ),
    "schemata": (("catalog_name", "schema_name"), _schemata),
}
_KINDS: Mapping[str, str] = {
    "row_count": "long",
    "ordinal_position": "integer",
    "character_maximum_length": "integer",
    "numeric_precision": "integer",
    "numeric_scale": "integer",
}
"""The types of the columns that are not strings."""

_ARROW: Mapping[str, pa.DataType] = {"string": pa.string(), "integer": pa.int32(), "long": pa.int64()}
