"""The Hive metastore that Spark's settings name, by Spark's own client for it.

The session's catalog stays in memory: statements never look into the metastore. Spark's client brings the jars of Hive
along and speaks to each version of the metastore (`spark.sql.hive.metastore.version`).
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
"""The property by which a table's registration is known as this package's."""
_PROVIDER: Final = "delta"


@dataclass(frozen=True)
class RegisteredTable:
    """A table as the metastore has it.

    Attributes:
        location: the folder of the table, as Hadoop writes it: `file:/data/shop/main/orders`.
        warehouse: the place of the database that it was registered for; None where others have made the entry.
    """

    schema: str
    name: str
    location: str
    warehouse: str | None


class HiveMetastore:
    """A Hive metastore. Safe for threads, as Spark's client is.

    Args:
        session: of a driver in this process; its settings name the metastore, `spark.hadoop.hive.metastore.uris`.

    Raises:
        RegistrationError: of every method, where the metastore cannot be reached, or refuses.
    """

    def __init__(self, session: SparkSession) -> None:
        context: Any = session.sparkContext
        self._jvm = context._jvm
        conf, hadoop = context._jsc.sc().conf(), context._jsc.hadoopConfiguration()
        with _explained("opened"):
            self._client = self._jvm.org.apache.spark.sql.hive.HiveExternalCatalog(conf, hadoop)
            self._client.databaseExists("default")

    def find(self, schema: str, name: str) -> RegisteredTable | None:
        """The table of that name."""
        with _explained(f"asked for {schema}.{name}"):
            return self._registered(self._client.getTable(schema, name)) if self._has(schema, name) else None

    def tables(self, schema: str) -> Iterator[RegisteredTable]:
        """The tables of a schema, views excepted; none where there is no such schema."""
        with _explained(f"asked for the tables of {schema}"):
            if self._client.databaseExists(schema):
                named = self._client.getTablesByName(schema, self._client.listTables(schema))
                for table in self._jvm.scala.jdk.javaapi.CollectionConverters.asJava(named):
                    if table.storage().locationUri().isDefined():
                        yield self._registered(table)

    def add(self, table: RegisteredTable) -> None:
        """Adds a table, and its schema where there is none; no file is read or written for it."""
        with _explained(f"given {table.schema}.{table.name}"):
            self._add_schema(table.schema)
            self._client.createTable(self._catalog_table(table), False)

    def remove(self, schema: str, name: str) -> None:
        """Removes the entry of a table, and none of its files."""
        with _explained(f"asked to forget {schema}.{name}"):
            self._client.dropTable(schema, name, True, False)

    def location_of(self, root: str) -> str:
        """A table's folder as the metastore gives it back.

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
        """In the metastore's own folder, as `create database` has it: `drop database cascade` empties that folder."""
        if not self._client.databaseExists(schema):
            root = self._client.getDatabase("default").locationUri()
            folder = self._path(self._path(root), f"{schema}.db").toUri()
            description = "Tables that dbt-silt has registered"
            made = self._catalog_class("CatalogDatabase")(schema, description, folder, self._scala_map({}))
            self._client.createDatabase(made, True)

    def _catalog_table(self, table: RegisteredTable) -> Any:
        """Without columns: engines that read Delta tables take them from the log."""
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
        """A case class of Spark's from its first values; the others, which versions differ in, have their defaults."""
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
        """Of a URL the text is a plain name, whose signs are not quoted yet."""
        return self._path(root).toUri() if is_url(root) else self._jvm.java.net.URI(PurePath(root).as_uri())


_CATALOG: Final = "org.apache.spark.sql.catalyst.catalog"
_PROPERTIES_PLACE: Final = 12
"""Of `properties` among the values of a CatalogTable, counted from one; the same since Spark 2.2."""


@contextlib.contextmanager
def _explained(doing: str) -> Iterator[None]:
    """Raises the failures of Spark's client as RegistrationError."""
    try:
        yield
    except (PySparkException, Py4JError, TypeError) as error:  # a class that is not there is no callable to py4j
        found = causes(error)
        reason = found[-1].text if found else str(error)
        raise RegistrationError(f"the Hive metastore could not be {doing} ({reason})") from error
