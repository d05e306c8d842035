"""Opens the databases of a warehouse: their stores, and the catalog over them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.locations import allowed_folders, is_local, local_path
from dbt.adapters.silt.engine.kernel.clock import Clock
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.kernel.storage.object_store import ObjectStore
from dbt.adapters.silt.engine.kernel.storage.opening import open_store
from dbt.adapters.silt.engine.kernel.storage.settings import Storages
from dbt.adapters.silt.engine.kernel.storage.store import Store


@dataclass(frozen=True)
class OpenDatabases:
    """The databases of a warehouse, opened once in a process, so that all users share their caches.

    Attributes:
        locations: the location of each database, by its name.
        storages: the settings of their storage services.
        stores: the store of each database, by its name.
        catalog: their names.
    """

    locations: Mapping[str, str]
    storages: Storages
    stores: Mapping[str, Store]
    catalog: Catalog


def open_databases(
    locations: Mapping[str, str], storages: Storages, external_paths: bool = False, clock: Clock | None = None
) -> OpenDatabases:
    """Opens databases, without reading or creating them yet.

    Args:
        external_paths: whether logs may name files outside of all of them.
        clock: the catalog's clock.

    Raises:
        InvalidSettingError: if a location's storage is not supported or cannot be reached with these settings.
    """
    allowed = allowed_folders(locations, external_paths)
    stores = {name: open_location(location, storages, allowed) for name, location in locations.items()}
    catalog = Catalog(stores, clock, lambda path: open_location(path, storages, allowed))
    return OpenDatabases(locations, storages, stores, catalog)


def open_location(
    location: str, storages: Storages, allowed: tuple[str, ...] | None = None
) -> LocalStore | ObjectStore:
    """Opens the store of a location; sends no request yet.

    Raises:
        InvalidSettingError: if its storage is not supported or cannot be reached with these settings.
    """
    is_folder = is_local(location)
    url = local_path(location) if is_folder else location
    store = open_store(url, None if is_folder else storages.of(location), allowed)
    store.elsewhere = lambda folder: open_location(folder, storages, allowed)
    return store
