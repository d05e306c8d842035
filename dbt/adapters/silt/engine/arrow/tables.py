"""Opens a table by its name or its path, at a version or a time, and describes its location to other processes."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Final

from dbt.adapters.silt.engine.catalog.names.locations import allowed_folders, check_locations, table_location
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName, completed, name_parts
from dbt.adapters.silt.engine.catalog.open_databases import open_databases, open_location
from dbt.adapters.silt.engine.kernel.errors import InvalidArgumentError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.storage.settings import Storages, StorageSettings, storages
from dbt.adapters.silt.engine.kernel.storage.store import Store

DATABASE: Final = "silt"
SCHEMA: Final = "main"
_BY_PATH: Final = "delta.`"


@dataclass(frozen=True)
class TableSource:
    """The name or path of a table, and the access to its storage.

    Attributes:
        name: `table`, `schema.table` or `database.schema.table`; or the path of the table: a folder or a URL.
        warehouse: folder or URL of the warehouse; None for a table named by its path.
        storage: settings of its object store.
        external_paths: whether the log may name files that are neither in the table's folder nor in the warehouse.
        branch: the id of a run that is not published: the table is read as the run sees it.
    """

    name: str
    warehouse: str | None = None
    storage: StorageSettings | None = None
    external_paths: bool = False
    branch: str | None = None

    def log(self) -> DeltaLog:
        """Returns the table's log.

        Raises:
            InvalidArgumentError: if the table is given by name, without a warehouse.
            InvalidNameError, InvalidSettingError: if the name or a location cannot be used.
            RelationNotFoundError, SchemaNotFoundError: if the table does not exist.
            RunNotFoundError: if no run of that id is unpublished.
        """
        path = path_in(self.name)
        if path is not None and self.branch is not None:
            raise InvalidArgumentError(
                "a table named by its path has no branch", remedy="Name the table, and give its warehouse"
            )
        if path is not None:
            return self._at(path)
        if self.warehouse is None:
            raise InvalidArgumentError(
                f"`{self.name}` is a table's name, but no warehouse is given",
                remedy='Give its folder or URL, as in `warehouse="warehouse"`, or the path of the table',
            )
        return self._named(self.warehouse)

    def _at(self, path: str) -> DeltaLog:
        location = table_location(path)
        used = storages({} if self.warehouse is None else {DATABASE: self.warehouse}, self.storage)
        places = {} if self.warehouse is None else {DATABASE: self.warehouse}
        return DeltaLog(open_location(location, used, allowed_folders(places, self.external_paths)), path)

    def _named(self, warehouse: str) -> DeltaLog:
        name = self.relation
        locations = {name.database: warehouse}
        check_locations(locations)
        opened = open_databases(locations, storages(locations, self.storage), self.external_paths)
        catalog = opened.catalog
        if self.branch is not None:
            branch = catalog.named_branches(name.database).branch(self.branch, only=name)
            catalog = catalog.on_branch(name.database, branch)
        return catalog.table(name)

    @property
    def relation(self) -> RelationName:
        """The full name.

        Raises:
            InvalidNameError: if it is not a name.
            InvalidStatementError: if it has too many parts.
        """
        return completed(name_parts(self.name), DATABASE, SCHEMA)


def path_in(name: str) -> str | None:
    """Returns the given folder or URL, or None if the string is the name of a table."""
    if name.startswith(_BY_PATH) and name.endswith("`"):
        return name[len(_BY_PATH) : -1]
    return name if name in (".", "..") or ("/" in name and not name.startswith("`")) else None


def snapshot_of(log: DeltaLog, version: int | None, timestamp: str | datetime | None) -> Snapshot:
    """Returns the table at a version or a time, by default the newest version.

    Raises:
        InvalidArgumentError: if both are given, or the time is invalid.
        VersionNotFoundError: if the log does not have that version, or no longer has it.
        NotATableError, TableDamagedError, UnsupportedFeatureError: if the table cannot be read.
    """
    if version is not None and timestamp is not None:
        raise InvalidArgumentError("both a version and a timestamp are given", remedy="Give only one", table=log.name)
    if timestamp is not None:
        version = log.version_at(_milliseconds(timestamp, log.name))
    return log.snapshot() if version is None else log.snapshot_at(version)


def _milliseconds(timestamp: str | datetime, table: str) -> int:
    """Returns milliseconds since 1970-01-01 UTC; a time without a zone is in UTC."""
    try:
        moment = timestamp if isinstance(timestamp, datetime) else _parsed(timestamp)
    except (ValueError, AttributeError, TypeError) as error:
        raise InvalidArgumentError(
            f"`{timestamp}` is not a time", remedy="Write it `2026-01-31T12:00:00`", table=table
        ) from error
    aware = moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
    return int(aware.timestamp() * 1000)


def _parsed(text: str) -> datetime:
    plain = text.strip()
    return datetime.fromisoformat(f"{plain[:-1]}+00:00" if plain.endswith(("Z", "z")) else plain)


@dataclass(frozen=True)
class TableLocation:
    """The folder or URL of a table, and the settings of its storage.

    Attributes:
        allowed: other folders whose files its log may name; None for any folder.
    """

    root: str
    storage: StorageSettings | None
    allowed: tuple[str, ...] | None

    @classmethod
    def of(cls, source: TableSource, store: Store) -> TableLocation:
        """Returns the location of a table that this process has opened."""
        databases = {} if source.warehouse is None else {DATABASE: source.warehouse}
        return cls(store.root, source.storage, allowed_folders(databases, source.external_paths))

    def open(self) -> Store:
        """Opens the table's folder, once per process.

        Raises:
            InvalidSettingError: if the storage settings are invalid.
        """
        return _opened(self)


@functools.lru_cache(maxsize=64)
def _opened(location: TableLocation) -> Store:
    return open_location(location.root, Storages(location.storage or StorageSettings()), location.allowed)
