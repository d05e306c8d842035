"""Keeps the entries of the Hive metastore that Spark's settings name equal to the tables of the warehouse.

An entry is a name and a location. It is updated after a commit; an entry never decides the effect of a statement.

The metastore is read and written through Spark's own client, which includes the jars of Hive and supports each version
of the metastore (`spark.sql.hive.metastore.version`). The session's catalog remains in memory: statements never read
the metastore.
"""

from __future__ import annotations

import contextlib
import enum
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine import spark_seams
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationKind, RelationName
from dbt.adapters.silt.engine.commands.spark.failures.causes import causes
from dbt.adapters.silt.engine.kernel.errors import RegistrationError, SiltError
from dbt.adapters.silt.engine.kernel.storage.urls import is_url

_WAREHOUSE: Final = "dbt_silt.warehouse"
"""The property that marks a table's registration as made by this package."""
_PROVIDER: Final = "delta"
_CATALOG: Final = "org.apache.spark.sql.catalyst.catalog"
_PROPERTIES_PLACE: Final = 12
"""The position of `properties` among the values of a CatalogTable, from 1; unchanged since Spark 2.2."""


class Settled(enum.Enum):
    """The outcome for a name in the metastore."""

    REGISTERED = "registered"
    MOVED = "registered at its new location"
    UNCHANGED = "registered already"
    REMOVED = "no longer registered"
    TAKEN = "not registered: another table has the name"
    ABSENT = "neither in the warehouse nor in the metastore"
    NOT_TRIED = "not registered: the metastore could not be opened earlier"


@dataclass(frozen=True)
class SettledName:
    """A name, and its outcome.

    Attributes:
        taken_by: the location of another table that has the name, or None.
    """

    name: RelationName
    settled: Settled
    taken_by: str = ""

    def __str__(self) -> str:
        return f"{self.name}: {self.settled.value}{f' ({self.taken_by})' if self.taken_by else ''}"


class Registration:
    """The entries of a warehouse's tables in a metastore; may be used by several threads.

    The first use opens the metastore. A failure to open the metastore is reported once as an error, and opening is not
    tried again.

    Args:
        open_metastore: opens the metastore.
        catalog: the catalog of the warehouse.
        locations: the location of each database, by name.
    """

    def __init__(
        self, open_metastore: Callable[[], HiveMetastore], catalog: Catalog, locations: Mapping[str, str]
    ) -> None:
        self._open = open_metastore
        self._catalog = catalog
        self._locations = locations
        self._lock = threading.Lock()
        self._metastore: HiveMetastore | None = None
        self._was_tried = False

    @property
    def is_open(self) -> bool:
        """Whether the metastore has been reached."""
        return self._metastore is not None

    def settle(self, name: RelationName) -> SettledName:
        """Registers the table of a name, or removes its entry if the table no longer exists.

        Raises:
            RegistrationError: if the metastore cannot be reached, or refuses.
        """
        metastore = self._opened()
        if metastore is None:
            return SettledName(name, Settled.NOT_TRIED)
        found = metastore.find(name.schema, name.identifier)
        entry = self._entry_of(metastore, name)
        if found is not None and found.warehouse != self._locations[name.database]:
            return SettledName(name, Settled.TAKEN if entry else Settled.ABSENT, found.location if entry else "")
        if entry == found:
            return SettledName(name, Settled.UNCHANGED if entry else Settled.ABSENT)
        if found is not None:
            metastore.remove(found.schema, found.name)
        if entry is None:
            return SettledName(name, Settled.REMOVED)
        metastore.add(entry)
        return SettledName(name, Settled.MOVED if found else Settled.REGISTERED)

    def settle_committed(self, names: Iterable[RelationName]) -> Iterator[str]:
        """Settles names that commits have changed; yields a warning for each table that is not registered."""
        for name in names:
            try:
                done = self.settle(name)
            except SiltError as error:
                others = "" if self.is_open else "; the same is true of the other tables"
                yield f"{name} is committed, but its entry in the metastore is not updated{others}: {error}"
                continue
            if done.settled is Settled.TAKEN:
                yield (
                    f"{done}. Drop that entry in the metastore, or give the table another name, "
                    "then run `dbt run-operation silt_register`"
                )

    def settle_all(self, database: str) -> Iterator[SettledName]:
        """Settles every table of a database, and every entry that was created for the database.

        Raises:
            RegistrationError: if the metastore cannot be reached, or refuses.
        """
        for schema in self._catalog.schemas(database):
            tables = {each.name for each in self._catalog.relations(database, schema) if _is_table(each.kind)}
            entries = {RelationName(database, schema, each.name) for each in self._own_entries(database, schema)}
            for name in sorted(tables | entries):
                yield self.settle(name)

    def _own_entries(self, database: str, schema: str) -> list[RegisteredTable]:
        metastore, location = self._opened(), self._locations[database]
        return [each for each in metastore.tables(schema) if each.warehouse == location] if metastore else []

    def _entry_of(self, metastore: HiveMetastore, name: RelationName) -> RegisteredTable | None:
        entry = self._catalog.find(name)
        if entry is None or not _is_table(entry.kind):
            return None
        location = metastore.location_of(self._catalog.table(entry.name).store.root)
        return RegisteredTable(name.schema, name.identifier, location, self._locations[name.database])

    def _opened(self) -> HiveMetastore | None:
        """Returns the open metastore, or None if an earlier use could not open it."""
        with self._lock:
            if not self._was_tried:
                self._was_tried = True
                self._metastore = self._open()
            return self._metastore


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
        context = session.sparkContext
        self._jvm = spark_seams.java(context)
        conf, hadoop = spark_seams.scala_context(context).conf(), spark_seams.hadoop_configuration(context)
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
        """Returns the URI of a root. The characters of a root that is a URL are not quoted yet."""
        return self._path(root).toUri() if is_url(root) else self._jvm.java.net.URI(PurePath(root).as_uri())


def _is_table(kind: RelationKind) -> bool:
    return kind is RelationKind.TABLE


@contextlib.contextmanager
def _explained(doing: str) -> Iterator[None]:
    """Raises the failures of Spark's client as RegistrationError."""
    try:
        yield
    except (PySparkException, Py4JError, TypeError) as error:  # py4j cannot call a missing class
        found = causes(error)
        reason = found[-1].text if found else str(error)
        raise RegistrationError(f"the Hive metastore could not {doing} ({reason})") from error
