"""Finds or creates the target table of a write."""

from __future__ import annotations

from dataclasses import dataclass

from dbt.adapters.silt.engine.arrow.tables import TableSource, path_in
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.locations import allowed_folders, check_locations, table_location
from dbt.adapters.silt.engine.catalog.open_databases import open_databases, open_location
from dbt.adapters.silt.engine.catalog.relations import RelationKind
from dbt.adapters.silt.engine.kernel.errors import ConcurrentCreateError, RelationExistsError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.storage.settings import storages
from dbt.adapters.silt.engine.kernel.table.paths import LOG_FOLDER


@dataclass(frozen=True)
class TargetTable:
    """A table, which need not exist, by its name or its path."""

    source: TableSource

    def find(self) -> DeltaLog | None:
        """Returns the table, or None if it does not exist.

        Raises:
            RelationExistsError: if a view of that name exists.
            SchemaNotFoundError: if the schema does not exist.
        """
        if self._is_path:
            log = self._by_path()
            return log if log.exists() else None
        entry = self._catalog.find(self.source.relation)
        if entry is not None and entry.kind is not RelationKind.TABLE:
            raise RelationExistsError(
                "a view with that name exists", table=self.source.name, remedy="Drop the view first"
            )
        return None if entry is None else self.source.log()

    def new(self) -> DeltaLog:
        """Returns the handle of a new table with a writable folder."""
        return self._by_path() if self._is_path else self._catalog.new_table(self.source.relation)

    def handle(self, root: str) -> DeltaLog:
        """Returns the handle for the root of a handle that `new` returned in another process."""
        if self._is_path:
            log = self._by_path()
            log.store.make_folder(LOG_FOLDER)
            return log
        return DeltaLog(self._catalog.store_at(root), str(self.source.relation))

    def publish(self, log: DeltaLog) -> None:
        """Publishes the name of a table whose first version is committed.

        Raises:
            ConcurrentCreateError: if another writer has meanwhile created a table of that name; this table is deleted.
        """
        if self._is_path:
            return
        try:
            self._catalog.publish_table(self.source.relation, log)
        except RelationExistsError as error:
            raise ConcurrentCreateError("another writer has created the table meanwhile", table=log.name) from error

    @property
    def _is_path(self) -> bool:
        return path_in(self.source.name) is not None

    @property
    def _databases(self) -> dict[str, str]:
        source = self.source
        if source.warehouse is None:
            return {}
        return {"silt" if self._is_path else source.relation.database: source.warehouse}

    def _by_path(self) -> DeltaLog:
        path = path_in(self.source.name) or ""
        places = self._databases
        allowed = allowed_folders(places, self.source.external_paths)
        store = open_location(table_location(path), storages(places, self.source.storage), allowed)
        return DeltaLog(store, path)

    @property
    def _catalog(self) -> Catalog:
        if self.source.warehouse is None:
            self.source.log()  # raises the error that a warehouse is missing
        places = self._databases
        check_locations(places)
        return open_databases(places, storages(places, self.source.storage), self.source.external_paths).catalog
