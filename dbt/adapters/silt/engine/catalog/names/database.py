"""Protocols of the names of a database, in folders or in an object store."""

from __future__ import annotations

from typing import Protocol

from dbt.adapters.silt.engine.catalog.names.documents import Function, View
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationEntry, RelationName
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.publication.documents import Kind, Meaning
from dbt.adapters.silt.engine.kernel.publication.publications import PublishedNames
from dbt.adapters.silt.engine.kernel.storage.store import Store


class BranchNames(PublishedNames, Protocol):
    """The names of a database, as its branches and publications change them."""

    def meaning(self, name: RelationName, is_function: bool) -> Meaning | None:
        """Returns the present meaning of a name, if any."""
        ...

    def define(self, kind: Kind, document: bytes) -> Meaning:
        """Stores the document of a view or function that no name has yet; returns its meaning."""
        ...

    def document(self, meaning: Meaning) -> bytes:
        """Returns the document of a view or function."""
        ...

    def drop_empty_schema(self, schema: str, cascade: bool) -> None:
        """Drops a schema without relations and functions; another schema, or a schema that is missing, is left.

        Args:
            cascade: whether files that belong to no relation are deleted too.
        """
        ...


class Database(Protocol):
    """The schemas, tables, views and functions of a database; its methods are described in `Catalog`.

    Names are of this database. Every method may raise StorageError, and SchemaNotFoundError for a schema that
    definitely does not exist.
    """

    @property
    def store(self) -> Store: ...

    @property
    def published(self) -> BranchNames: ...

    def for_statement(self) -> Database: ...

    def schemas(self) -> list[str]: ...

    def has_schema(self, schema: str) -> bool: ...

    def create_schema(self, schema: str, if_not_exists: bool) -> None: ...

    def drop_schema(self, schema: str, cascade: bool) -> None: ...

    def relations(self, schema: str) -> list[RelationEntry]: ...

    def find(self, name: RelationName) -> RelationEntry | None: ...

    def rename(self, name: RelationName, new_name: RelationName) -> None: ...

    def table(self, name: RelationName) -> DeltaLog: ...

    def listed(self, name: RelationName) -> DeltaLog:
        """Returns the handle of a table that `relations` or `find` has just returned, without looking it up again."""
        ...

    def table_of_file(self, path: str) -> RelationName | None: ...

    def new_table(self, name: RelationName, replace_view: bool) -> DeltaLog: ...

    def publish_table(self, name: RelationName, log: DeltaLog, replace_view: bool) -> None: ...

    def drop_table(self, name: RelationName, if_exists: bool, version: int | None) -> None: ...

    def view(self, name: RelationName) -> View: ...

    def put_view(self, view: View, replace: bool, replace_table: bool) -> None: ...

    def drop_view(self, name: RelationName, if_exists: bool) -> None: ...

    def functions(self, schema: str) -> list[RelationName]: ...

    def has_function(self, name: RelationName) -> bool: ...

    def function(self, name: RelationName) -> Function: ...

    def put_function(self, function: Function, replace: bool) -> None: ...

    def drop_function(self, name: RelationName, if_exists: bool) -> None: ...
