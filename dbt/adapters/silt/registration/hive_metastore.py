"""Reads and writes the Hive metastore that Spark's settings name, through Spark's own client.

The session's catalog remains in memory: statements never read the metastore. Spark's client includes the jars of Hive
and supports each version of the metastore (`spark.sql.hive.metastore.version`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.commands.spark.failures.causes import causes
from dbt.adapters.silt.engine.kernel.errors import RegistrationError
from dbt.adapters.silt.engine.kernel.storage.urls import is_url

_WAREHOUSE: Final = "dbt_silt.warehouse"
"""The property that marks a table's registration as made by this package."""
_PROVIDER: Final = "delta"


@dataclass(frozen=True)
class RegisteredTable:
    """A table in the metastore.

    Attributes:
        location: the folder of the table, as Hadoop writes it: `file:/data/shop/main/orders`.
        warehouse: the location of the database that registered the table; None if another program created the entry.
    """

    schema: str
    name: str
    location: str
    warehouse: str | None


class HiveMetastore:
    """A Hive metastore. Thread-safe, like Spark's client.

    Args:
        session: a session of a driver in this process; its setting `spark.hadoop.hive.metastore.uris` names the
            metastore.

    Raises:
        RegistrationError: by every method, if the metastore cannot be reached, or refuses.
    """

    def __init__(self, session: SparkSession) -> None:
        context: Any = session.sparkContext
        self._jvm = context._jvm
        conf, hadoop = context._jsc.sc().conf(), context._jsc.hadoopConfiguration()
        with _explained("be opened"):
            self._client = self._jvm.org.apache.spark.sql.hive.HiveExternalCatalog(conf, hadoop)
            self._client.databaseExists("default")

    def find(self, schema: str, name: str) -> RegisteredTable | None:
        """Returns the table of a name, or None if the entry is missing."""
        with _explained(f"look up {schema}.{name}"):
            return self._registered(self._client.getTable(schema, name)) if self._has(schema, name) else None

    def tables(self, schema: str) -> Iterator[RegisteredTable]:
        """Yields the tables of a schema, without its views; empty if the schema does not exist."""
        with _explained(f"list the tables of {schema}"):
            if self._client.databaseExists(schema):
                named = self._client.getTablesByName(schema, self._client.listTables(schema))
                for table in self._jvm.scala.jdk.javaapi.CollectionConverters.asJava(named):
                    if table.storage().locationUri().isDefined():
                        yield self._registered(table)

    def add(self, table: RegisteredTable) -> None:
        """Adds a table, and its schema if it is missing; reads and writes no file."""
        with _explained(f"register {table.schema}.{table.name}"):
            self._add_schema(table.schema)
            self._client.createTable(self._catalog_table(table), False)

    def remove(self, schema: str, name: str) -> None:
        """Removes the entry of a table, but no file of the table."""
        with _explained(f"drop the entry of {schema}.{name}"):
            self._client.dropTable(schema, name, True, False)

    def location_of(self, root: str) -> str:
        """Returns a table's folder as the metastore returns it.

        Args:
            root: an absolute local path or a URL.
        """
        return str(self._path(self._uri(root)).toString())

    def _has(self, schema: str, name: str) -> bool:
        return bool(self._client.databaseExists(schema) and self._client.tableExists(schema, name))

    def _registered(self, table: Any) -> RegisteredTable:
        location = table.storage().locationUri()
        warehouse = table.properties().get(_WAREHOUSE)
        return RegisteredTable(
            table.database(),
            table.identifier().table(),
            self._path(location.get()).toString() if location.isDefined() else "",
            warehouse.get() if warehouse.isDefined() else None,
        )

    def _add_schema(self, schema: str) -> None:
        """Adds a schema in the metastore's own folder: `drop database cascade` empties the folder of a schema."""
        if not self._client.databaseExists(schema):
            root = self._client.getDatabase("default").locationUri()
            folder = self._path(self._path(root), f"{schema}.db").toUri()
            description = "Tables that dbt-silt has registered"
            made = self._catalog_class("CatalogDatabase")(schema, description, folder, self._scala_map({}))
            self._client.createDatabase(made, True)

    def _catalog_table(self, table: RegisteredTable) -> Any:
        """Returns an entry without columns: engines that read Delta tables read the columns from the log."""
        some, none = self._jvm.scala.Some, self._jvm.scala.Option.empty()
        location = some(self._path(table.location).toUri())
        storage = self._made("CatalogStorageFormat", location, none, none, none, False, self._scala_map({}))
        return self._made(
            "CatalogTable",
            self._jvm.org.apache.spark.sql.catalyst.TableIdentifier(table.name, some(table.schema)),
            self._catalog_class("CatalogTableType").EXTERNAL(),
            storage,
            self._jvm.org.apache.spark.sql.types.StructType(),
            some(_PROVIDER),
            properties=self._scala_map({_WAREHOUSE: table.warehouse or ""}),
        )

    def _made(self, name: str, *first: Any, properties: Any = None) -> Any:
        """Creates a case class of Spark from its first values; later values, which vary by version, are defaults."""
        kind = self._catalog_class(name)
        (constructor, *_) = self._jvm.java.lang.Class.forName(f"{_CATALOG}.{name}").getConstructors()
        rest = range(len(first) + 1, constructor.getParameterCount() + 1)
        values = [getattr(kind, f"apply$default${place}")() for place in rest]
        if properties is not None:
            values[_PROPERTIES_PLACE - len(first) - 1] = properties
        return kind(*first, *values)

    def _catalog_class(self, name: str) -> Any:
        return getattr(self._jvm.org.apache.spark.sql.catalyst.catalog, name)

    def _scala_map(self, values: Mapping[str, str]) -> Any:
        java = self._jvm.java.util.HashMap()
        for name, value in values.items():
            java.put(name, value)
        return self._jvm.PythonUtils.toScalaMap(java)

    def _path(self, *parts: Any) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(*parts)

    def _uri(self, root: str) -> Any:
        """Returns the URI of a root. A root that is a URL is a plain name, whose characters are not quoted yet."""
        return self._path(root).toUri() if is_url(root) else self._jvm.java.net.URI(PurePath(root).as_uri())


_CATALOG: Final = "org.apache.spark.sql.catalyst.catalog"
_PROPERTIES_PLACE: Final = 12
"""The position of `properties` among the values of a CatalogTable, from 1; unchanged since Spark 2.2."""


@contextlib.contextmanager
def _explained(doing: str) -> Iterator[None]:
    """Raises the failures of Spark's client as RegistrationError."""
    try:
        yield
    except (PySparkException, Py4JError, TypeError) as error:  # py4j cannot call a missing class
        found = causes(error)
        reason = found[-1].text if found else str(error)
        raise RegistrationError(f"the Hive metastore could not {doing} ({reason})") from error
