"""TargetTable: the table of a write, by its name or its path, in a warehouse or on the branch of a run."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from dbt.adapters.silt.engine.arrow.tables import TableSource, path_in
from dbt.adapters.silt.engine.catalog.branches.branch import Branch
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.locations import allowed_folders, check_locations, table_location
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationKind
from dbt.adapters.silt.engine.catalog.open_databases import open_databases, open_location
from dbt.adapters.silt.engine.kernel.errors import ConcurrentCreateError, InvalidArgumentError, RelationExistsError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.publication.documents import Kind, Meaning
from dbt.adapters.silt.engine.kernel.storage.settings import storages
from dbt.adapters.silt.engine.kernel.table.paths import LOG_FOLDER


@dataclass(frozen=True)
class TargetTable:
    """A table, which need not exist, by its name or its path.

    A process that plans or commits a write on the branch of a run joins the branch as a session does.
    """

    source: TableSource

    def find(self) -> DeltaLog | None:
        """Returns the table, or None if it does not exist.

        Raises:
            InvalidArgumentError: if a table named by its path is to be written on a branch.
            RelationExistsError: if a view of that name exists.
            SchemaNotFoundError: if the schema does not exist.
            RunNotFoundError, ConcurrentModificationError: if the run of the branch has ended, or cannot be found.
        """
        if self._is_path:
            log = self._by_path()
            return log if log.exists() else None
        entry = self._catalog.find(self.source.relation)
        if entry is not None and entry.kind is not RelationKind.TABLE:
            raise RelationExistsError(
                "a view with that name exists", table=self.source.name, remedy="Drop the view first"
            )
        return None if entry is None else self._catalog.table(self.source.relation)

    def table(self) -> DeltaLog:
        """Returns the table, which exists. Raises as `TableSource.log`, and ConcurrentModificationError as `find`."""
        return self.source.log() if self._branch is None else self._catalog.table(self.source.relation)

    def new(self) -> DeltaLog:
        """Returns the handle of a new table with a writable folder."""
        return self._by_path() if self._is_path else self._catalog.new_table(self.source.relation)

    def handle(self, root: str) -> DeltaLog:
        """Returns the handle for the root of a handle that `new` returned in another process."""
        if self._is_path:
            log = self._by_path()
            log.store.make_folder(LOG_FOLDER)
            return log
        name, catalog = self.source.relation, self._catalog
        if self._branch is None:
            return DeltaLog(catalog.store_at(root), str(name))
        database = catalog.store(name.database).root.rstrip("/")
        return self._branch.created(name, Meaning(Kind.TABLE, root.removeprefix(f"{database}/")))

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

    def check_open(self) -> None:
        """Checks, after a write on the branch of a run, that the run has not ended meanwhile.

        Raises:
            CommitStateUnknownError: if it has ended: the change may or may not be part of it.
        """
        if self._branch is not None:
            self._branch.attempts.check_done()

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
        if self.source.branch is not None:
            raise InvalidArgumentError(
                "a table named by its path has no branch", remedy="Name the table, and give its warehouse"
            )
        path = path_in(self.source.name) or ""
        places = self._databases
        allowed = allowed_folders(places, self.source.external_paths)
        store = open_location(table_location(path), storages(places, self.source.storage), allowed)
        return DeltaLog(store, path)

    @cached_property
    def _branch(self) -> Branch | None:
        """The branch of the run, joined by this process."""
        if self.source.branch is None or self._is_path:
            return None
        return self._published.named_branches(self.source.relation.database).join(self.source.branch)

    @cached_property
    def _catalog(self) -> Catalog:
        branch = self._branch
        return self._published if branch is None else self._published.on_branch(self.source.relation.database, branch)

    @cached_property
    def _published(self) -> Catalog:
        if self.source.warehouse is None:
            self.source.log()  # raises the error that a warehouse is missing
        places = self._databases
        check_locations(places)
        return open_databases(places, storages(places, self.source.storage), self.source.external_paths).catalog
