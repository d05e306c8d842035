"""Where a table's files are, as a value that other processes open."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from dbt.adapters.silt.engine.arrow.tables import DATABASE, TableSource
from dbt.adapters.silt.engine.catalog.locations import allowed_folders
from dbt.adapters.silt.engine.catalog.open_databases import open_location
from dbt.adapters.silt.engine.kernel.storage.settings import Storages, StorageSettings
from dbt.adapters.silt.engine.kernel.storage.store import Store


@dataclass(frozen=True)
class TablePlace:
    """The folder or URL of a table, and how it is reached.

    Attributes:
        allowed: the folders that its log may name files in, besides its own; None for any.
    """

    root: str
    storage: StorageSettings | None
    allowed: tuple[str, ...] | None

    @classmethod
    def of(cls, source: TableSource, store: Store) -> TablePlace:
        """The place of a table that this process has opened."""
        databases = {} if source.warehouse is None else {DATABASE: source.warehouse}
        return cls(store.root, source.storage, allowed_folders(databases, source.external_paths))

    def open(self) -> Store:
        """The table's folder; opened once in a process.

        Raises:
            InvalidSettingError: it cannot be reached so.
        """
        return _opened(self)


@functools.lru_cache(maxsize=64)
def _opened(place: TablePlace) -> Store:
    return open_location(place.root, Storages(place.storage or StorageSettings()), place.allowed)
