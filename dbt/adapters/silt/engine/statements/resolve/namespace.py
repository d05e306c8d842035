"""Resolves a session's names to a temporary view, a relation of the warehouse or Spark's object, and their versions."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TypeAlias

from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.documents import Function, View
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationKind, RelationName
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.near_names import near_names
from dbt.adapters.silt.engine.sql.ast import Name, TimeTravel, is_path

_SPARK_CATALOGS = ("spark_catalog", "system")
"""The catalogs that every Spark has."""

_MOST_PARTS = 3


@dataclass(frozen=True)
class WarehouseTable:
    """A table of the warehouse; its `name` is missing if it was named by its path."""

    log: DeltaLog
    name: RelationName | None

    def qualifier(self, alias: str | None) -> str:
        """Returns the single identifier by which a command qualifies the table's columns."""
        if alias is not None:
            return alias
        return "__silt_target" if self.name is None else self.name.identifier

    def long_qualifiers(self, alias: str | None) -> dict[Name, str]:
        """Returns the longer names that may qualify the table's columns -> the identifier that the command uses."""
        if alias is not None or self.name is None:
            return {}
        return {(self.name.database, self.name.schema, self.name.identifier): self.name.identifier}


@dataclass(frozen=True)
class WarehouseView:
    """A view of the warehouse: its query, and the schema in which its unqualified names are looked up."""

    view: View


@dataclass(frozen=True)
class TemporaryView:
    """A temporary view over tables of the warehouse: kept as SQL, expanded at each use."""

    text: str
    columns: tuple[str, ...]
    query_columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class SparkRelation:
    """A relation outside the warehouse, which Spark resolves."""


Meaning: TypeAlias = WarehouseTable | WarehouseView | TemporaryView | SparkRelation


@dataclass
class Namespace:
    """The current database and schema of a session, and its temporary views over tables of the warehouse.

    Args:
        spark: the session; asked for its own temporary views and schemas.
        catalog: relations of the warehouse. database, schema: the defaults for names without them; `use` changes them.
        made: the table that a statement writes: it has its name already, even if the statement creates it.
    """

    spark: SparkSession
    catalog: Catalog
    database: str
    schema: str
    temporary: dict[str, TemporaryView] = field(default_factory=dict)
    made: WarehouseTable | None = None

    def within(self, database: str | None, schema: str | None) -> Namespace:
        """Returns the namespace of another current schema; temporary views are hidden from persistent views."""
        return Namespace(self.spark, self.catalog, database or self.database, schema or self.schema, made=self.made)

    def name_in_warehouse(self, name: Name) -> RelationName | None:
        """Returns the full name, if its database or schema is the warehouse's, whether or not the relation exists.

        A single-part name is the warehouse's: it would be created in the current schema.

        Raises:
            InvalidNameError: if the name has more than three parts, or a part that cannot be a name.
        """
        if len(name) == 3:
            database = self.catalog.database_of(name[0], name[1], self.database)
            if database != name[0] and not self.is_schema(name[1]):
                return None
            return RelationName(database, *name[1:]) if self.is_database(database) else None
        if len(name) == 2:
            return RelationName(self.database, *name) if self.is_schema(name[0]) else None
        if len(name) == 1:
            return RelationName(self.database, self.schema, name[0])
        raise errors.InvalidNameError(
            f"`{'.'.join(name)}` has {len(name)} parts; a name has at most three: database, schema and table",
            table=".".join(name),
        )

    def meaning(self, name: Name) -> Meaning:
        """Returns the relation that a reader means by the name.

        Raises:
            RelationNotFoundError: if the name is in a database or schema of the warehouse, and does not exist.
            SchemaNotFoundError: if neither the warehouse nor Spark has its database.
            NotATableError: if the folder is not a table.
        """
        if is_path(name):
            return WarehouseTable(self.catalog.table_by_path(name[1]), None)
        if len(name) == 1:
            return self._short(name[0])
        full = self.name_in_warehouse(name)
        if full is None:
            self._check_spark_database(name)
            return SparkRelation()
        found = self._find(full)
        # If no relation was found, the catalog distinguishes a missing folder from a folder that is not a table.
        return WarehouseTable(self.catalog.table(full), full) if isinstance(found, SparkRelation) else found

    def function(self, name: Name) -> Function | None:
        """Returns the function that a call of that name runs, or None if it is Spark's.

        A single-part name is Spark's own or a temporary function, otherwise a function of the current schema.

        Raises:
            RelationNotFoundError: if the name is in a database or schema of the warehouse, and does not exist.
        """
        if len(name) == 1:
            return self._short_function(name[0])
        full = self.name_in_warehouse(name) if len(name) <= _MOST_PARTS else None
        if full is None:
            return None
        if not self.catalog.has_function(full):
            raise self._no_function(full)
        return self.catalog.function(full)

    def functions(self) -> list[str]:
        """Returns the single-part names that can be called: the current schema's functions and Spark's own."""
        own = [each.identifier for each in self.catalog.functions(self.database, self.schema)]
        return [*own, *(row[0] for row in self.spark.sql("show system functions").collect())]

    def writable(self, name: Name) -> RelationName | None:
        """Returns the full name of a relation to create or change, or None if it is Spark's.

        Raises:
            SchemaNotFoundError: if neither the warehouse nor Spark has its schema or its database.
        """
        full = self.name_in_warehouse(name)
        if full is None:
            self._check_spark_database(name)
        if len(name) == 2 and full is None and not self.is_spark_schema(name[0]):
            raise errors.SchemaNotFoundError(
                f"the schema `{name[0]}` does not exist in database `{self.database}`", table=".".join(name)
            )
        if full is not None and not self.catalog.has_schema(full.database, full.schema):
            raise errors.SchemaNotFoundError(
                f"the schema `{full.schema}` does not exist in database `{full.database}`", table=str(full)
            )
        return full

    def may_be_in_warehouse(self, name: Name) -> bool:
        """Returns whether a leading part of a dotted name names a relation, a database or a schema of the warehouse."""
        if not name:
            return False
        if len(name) > 3:
            return any(self.may_be_in_warehouse(name[:length]) for length in (2, 3))
        if len(name) == 1:
            return self._is_known(name[0])
        return name[0].lower() == "delta" or self.name_in_warehouse(name) is not None

    def is_temporary(self, name: Name) -> bool:
        """Returns whether a single-part name is a temporary view, of this engine or of Spark."""
        return len(name) == 1 and (name[0].lower() in self.temporary or self._is_spark_temporary(name[0]))

    def is_database(self, text: str) -> bool:
        """Returns whether it names a database of the warehouse."""
        return text.lower() in self.catalog.databases()

    def is_schema(self, text: str) -> bool:
        """Returns whether it names a schema of the warehouse in the current database."""
        try:
            return self.catalog.has_schema(self.database, text)
        except errors.InvalidNameError:
            return False

    def is_spark_schema(self, text: str) -> bool:
        """Returns whether Spark itself has a schema of that name."""
        return self.spark.catalog.databaseExists(quote(text))

    def check_database(self, text: str) -> None:
        """Raises SchemaNotFoundError if no database of the warehouse, and no catalog of Spark, has that name."""
        if text.lower() in _SPARK_CATALOGS or self.spark.conf.get(f"spark.sql.catalog.{text}", None) is not None:
            return
        self.catalog.check_database(text)

    def _check_spark_database(self, name: Name) -> None:
        """Checks the database of a name of Spark, as `check_database` does."""
        if len(name) == 3:
            self.check_database(name[0])

    def _short(self, identifier: str) -> Meaning:
        kept = self.temporary.get(identifier.lower())
        if kept is not None:
            return kept
        if self._is_spark_temporary(identifier):
            return SparkRelation()
        full = RelationName(self.database, self.schema, identifier)
        found = self._find(full)
        if isinstance(found, SparkRelation) and not self.spark.catalog.tableExists(quote(identifier)):
            return WarehouseTable(self.catalog.table(full), full)  # raises: the catalog knows the reason
        return found

    def _short_function(self, identifier: str) -> Function | None:
        try:
            full = RelationName(self.database, self.schema, identifier)
        except errors.InvalidNameError:
            return None
        if not self.catalog.has_function(full) or self.spark.catalog.functionExists(quote(identifier)):
            return None
        return self.catalog.function(full)

    def _no_function(self, full: RelationName) -> errors.FunctionNotFoundError:
        names = {each.identifier: str(each) for each in self.catalog.functions(full.database, full.schema)}
        near = near_names(full.identifier, names)
        remedy = f"Create it first, or call {' or '.join(names[each] for each in near)}" if near else "Create it first"
        return errors.FunctionNotFoundError("the function does not exist", table=str(full), remedy=remedy)

    def _is_known(self, identifier: str) -> bool:
        """Returns whether a single-part name, which may be invalid, is a relation of the warehouse."""
        try:
            full = RelationName(self.database, self.schema, identifier)
        except errors.InvalidNameError:
            return False
        return identifier.lower() in self.temporary or self.catalog.find(full) is not None

    def _find(self, full: RelationName) -> WarehouseTable | WarehouseView | SparkRelation:
        if self.made is not None and self.made.name == full:
            return self.made
        while (entry := self.catalog.find(full)) is not None:
            # Between the two lookups a table may have replaced a view, or a view a table.
            with contextlib.suppress(errors.RelationNotFoundError):
                if entry.kind is RelationKind.VIEW:
                    return WarehouseView(self.catalog.view(full))
                return WarehouseTable(self.catalog.table(full), full)
        return SparkRelation()

    def _is_spark_temporary(self, identifier: str) -> bool:
        name = quote(identifier)
        return self.spark.catalog.tableExists(name) and self.spark.catalog.getTable(name).isTemporary


def version_of(namespace: Namespace, log: DeltaLog, travel: TimeTravel) -> int:
    """Returns the version that `version as of` or `timestamp as of` means; a version number is not checked to exist.

    Raises:
        InvalidStatementError: if the expression is not a number, or not a time.
        VersionNotFoundError: if no version existed at that time, or the time is after the newest version.
    """
    if travel.version is not None:
        return _whole_number(constant(namespace, travel.version, "bigint"), travel.version)
    return log.version_at(moment(namespace, str(travel.timestamp)))


def moment(namespace: Namespace, expression: str) -> int:
    """Returns the value of a constant expression as a time, in milliseconds since 1970-01-01 UTC.

    Raises:
        InvalidStatementError: if it is not a time.
    """
    value = constant(namespace, f"unix_millis(cast({expression} as timestamp))", "bigint")
    return _whole_number(value, expression)


def constant(namespace: Namespace, expression: str, type_name: str) -> object:
    """Returns the value of a constant expression, cast to a type."""
    return namespace.spark.sql(f"select cast({expression} as {type_name})").collect()[0][0]


def _whole_number(value: object, text: str) -> int:
    if not isinstance(value, int):
        raise errors.InvalidStatementError(
            f"`{text}` is not a version or a time of a table", remedy="Give a version number or a timestamp"
        )
    return value
