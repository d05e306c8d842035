"""The location of a table's files, as a value that other processes can open."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from dbt.adapters.silt.engine.arrow.tables import DATABASE, TableSource
from dbt.adapters.silt.engine.catalog.locations import allowed_folders
from dbt.adapters.silt.engine.catalog.open_databases import open_location
from dbt.adapters.silt.engine.kernel.storage.settings import Storages, StorageSettings
from dbt.adapters.silt.engine.kernel.storage.store import Store


@dataclass(frozen=True)
class TableLocation:
    """The folder or URL of a table, and the settings of its storage.

    Attributes:
        allowed: other folders in which its log may name files; None for any folder.
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
