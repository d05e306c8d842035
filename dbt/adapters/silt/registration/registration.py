"""Keeps a metastore's entries equal to the tables of the warehouse.

An entry is a name and a location. It is updated after a commit; an entry never decides the effect of a statement.
"""

from __future__ import annotations

import enum
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names import RelationKind, RelationName
from dbt.adapters.silt.registration.hive_metastore import HiveMetastore, RegisteredTable


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


def _is_table(kind: RelationKind) -> bool:
    return kind is RelationKind.TABLE
