"""Lists and creates the schemas of a run, so that a failing schema fails only the nodes in it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dbt.adapters.base.meta import AdapterMeta, available
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName, normalize
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.identifiers import unquote

if TYPE_CHECKING:
    from dbt.adapters.base.relation import BaseRelation

    from dbt.adapters.silt.connections import SiltConnectionManager


class SchemaMethods(metaclass=AdapterMeta):
    """The part of the adapter that manages schemas.

    dbt creates the schemas of all nodes before the first node runs, and lists their relations. An error there would end
    the run without the name of a node.
    """

    connections: SiltConnectionManager

    @property
    @abstractmethod
    def _own_database(self) -> str:
        """The database of a relation without a database."""

    def list_schemas(self, database: str) -> list[str]:
        """Returns the names of a database's schemas; empty if the database does not exist."""
        with self.connections.exception_handler(f"list the schemas of {database}"):
            try:
                # dbt passes the name in its quotes.
                return self.connections.catalog.schemas(unquote(database or self._own_database))
            except (errors.SchemaNotFoundError, errors.InvalidNameError):
                return []

    def check_schema_exists(self, database: str, schema: str) -> bool:
        with self.connections.exception_handler(f"look for {database}.{schema}"):
            catalog = self.connections.catalog
            return catalog.has_schema(catalog.database_of(database, schema, self._own_database), schema)

    def create_schema(self, relation: BaseRelation) -> None:
        """Creates a schema. If that fails before a run, the error is kept, and raised for each node in the schema."""
        try:
            self._make_root(relation.database or self._own_database, str(relation.schema))
            super().create_schema(relation)  # type: ignore[misc]
            self.connections.log_new_folder(relation.database or self._own_database)
        except DbtRuntimeError as error:
            if not (
                self._prepares_run(relation)
                and isinstance(error.__cause__, errors.InvalidStatementError | errors.StorageError)
            ):
                raise
            self._failed_schemas[self._key(relation.database, relation.schema)] = error

    def _make_root(self, database: str, schema: str) -> None:
        """Creates the folder of a database, because the statement that creates the schema waits for Spark."""
        catalog = self.connections.sessions.environment.catalog
        if normalize(unquote(database)) in catalog.databases():
            with self.connections.exception_handler(f"create the schema {database}.{schema}"):
                catalog.make_root(unquote(database), schema)

    @available.parse_none
    def check_place(self, node: Mapping[str, Any]) -> None:
        """Checks, without Spark, that the node's table or view can be in its database and schema, and be written.

        Raises:
            DbtRuntimeError: if it cannot.
        """
        name = (node.get("database") or self._own_database, node["schema"], node.get("alias") or node["name"])
        with self.connections.exception_handler(f"look up the schema of {node['name']}"):
            self.connections.catalog.check_database(RelationName(*name).database)
            error = self._failed_schemas.get(self._key(*name[:2]))
            if error is not None:
                raise error
            self.connections.sessions.environment.catalog.check_writable(RelationName(*name))

    @property
    def _failed_schemas(self) -> dict[tuple[str, str], DbtRuntimeError]:
        """The schemas that could not be created for this run, by database and schema, with the error."""
        unmade: dict[tuple[str, str], DbtRuntimeError] = self.__dict__.setdefault("_unmade_schemas", {})
        return unmade

    def _key(self, database: str | None, schema: str | None) -> tuple[str, str]:
        return normalize(database or self._own_database), normalize(schema or "")

    def _prepares_run(self, relation: BaseRelation) -> bool:
        """Returns whether dbt itself creates the schemas of a run, by the connection name that it uses for that."""
        name = self.connections.get_thread_connection().name
        return bool(name == f"create_{relation.database or ''}_{relation.schema}")
