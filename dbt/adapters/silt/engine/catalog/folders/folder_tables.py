"""Lists the tables in folders, ends the logs of dropped tables, and moves their folders away."""

from __future__ import annotations

from dbt.adapters.silt.engine.catalog import name_errors
from dbt.adapters.silt.engine.catalog.documents import VIEW_SUFFIX
from dbt.adapters.silt.engine.catalog.folders import layout
from dbt.adapters.silt.engine.catalog.folders.folder_documents import FolderDocuments
from dbt.adapters.silt.engine.catalog.log_end import End, end_log, is_dropped, is_table
from dbt.adapters.silt.engine.catalog.names import RelationName, is_identifier
from dbt.adapters.silt.engine.catalog.open_tables import OpenTables
from dbt.adapters.silt.engine.kernel.clock import Clock
from dbt.adapters.silt.engine.kernel.errors import NoSpaceError, StorageError
from dbt.adapters.silt.engine.kernel.log.commit_file import read_info
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.publication_marks import UndecidedPublication, publication_of
from dbt.adapters.silt.engine.kernel.storage.store import ObjectMissing, Store
from dbt.adapters.silt.engine.kernel.table.paths import LOG_FOLDER, commit_path


def _leave_undecided(log: DeltaLog) -> None:
    publication = log.newest_publication()
    if publication is not None:
        raise UndecidedPublication(publication)


class FolderTables:
    """The tables of databases in folders. Thread-safe.

    Args:
        handles: the open handles.
        clock: gives the time and new ids.
        documents: the documents of the database, which note the tables that publications create.
    """

    def __init__(self, handles: OpenTables, clock: Clock, documents: FolderDocuments) -> None:
        self._handles = handles
        self._clock = clock
        self._documents = documents

    def log_of(self, store: Store, name: RelationName) -> DeltaLog:
        """Returns the handle of a table of the store's database, without a check whether it exists."""
        return self._handles.log(store.child(layout.table_folder(name)), str(name))

    def forget(self, store: Store, name: RelationName) -> None:
        """Drops the handle of a table whose folder was moved or deleted."""
        self._handles.forget(store.child(layout.table_folder(name)))

    def has(self, store: Store, name: RelationName) -> bool:
        """Returns whether a table of that name exists.

        The end of an aborted publication deletes the log before the note, so the log is looked up again after it.
        """
        log = self.log_of(store, name)
        return is_table(log) and not self._documents.creates_unpublished(name) and is_table(log)

    def names(self, store: Store, database: str, schema: str) -> list[RelationName]:
        """Returns the names of a schema's tables.

        Raises:
            SchemaNotFoundError: if the schema was dropped meanwhile.
        """
        try:
            folders = store.list_folders(schema)
        except ObjectMissing as error:
            raise name_errors.no_schema(f"{database}.{schema}") from error
        found = (RelationName(database, schema, folder) for folder in folders if is_identifier(folder))
        return [name for name in found if self._is_listed(store, name)]

    def _is_listed(self, store: Store, name: RelationName) -> bool:
        """Returns whether the table exists, or the storage failed: then a read of the table raises the reason."""
        try:
            return self.has(store, name)
        except StorageError:
            return True

    def end(self, store: Store, name: RelationName) -> None:
        """Ends a table; see `end_log`.

        Raises:
            UndecidedPublication: if the log has an undecided commit.
        """
        end_log(self.log_of(store, name), self._clock, End(settle=_leave_undecided))

    def drop(self, store: Store, name: RelationName, version: int | None = None) -> None:
        """Ends a table, after deleting the view that it hides, which must not reappear. `version` as in `end_log`.

        If the disk has no space for its end, its folder is moved away at once: a writer that comes then finds another
        folder than its pinned folder, and loses as well.

        Raises:
            ConcurrentModificationError: as for `end_log`.
            NoSpaceError: if the disk is full, and `version` is given, which needs a commit.
            UndecidedPublication: as for `end`.
        """
        store.delete(layout.document_path(name, VIEW_SUFFIX))
        try:
            end_log(self.log_of(store, name), self._clock, End(version, settle=_leave_undecided))
        except NoSpaceError:
            if version is not None:
                raise
            self.discard(store, name)

    def discard(self, store: Store, name: RelationName) -> None:
        """Moves the folder of a table, or the link in its place, out of sight; its log is not ended."""
        layout.move_to_trash(store, layout.table_folder(name), self._clock)
        self.forget(store, name)

    def clear_unpublished(self, store: Store, name: RelationName, publication: int) -> None:
        """Moves away the log of a table that an aborted publication has created, or was about to create.

        Its data files are left to the publisher, which may try again. A process that is still about to write the
        log's first version writes it into the folder that was moved away.
        """
        log = self.log_of(store, name)
        folder = f"{layout.table_folder(name)}/{LOG_FOLDER}"
        first = log.store.status(commit_path(0))
        if first is not None and publication_of(read_info(log.store, 0, first, log.name)) != publication:
            return
        if store.folder_modified_ms(folder) is not None:
            layout.move_to_trash(store, folder, self._clock)
            store.make_folder(folder)
            layout.empty_trash(store, layout.table_folder(name))
        self._handles.forget(log.store)

    def clear(self, store: Store, name: RelationName) -> bool:
        """Moves away the folder of a table whose log has ended; returns whether the folder existed."""
        log = self.log_of(store, name)
        ended = log.exists() and is_dropped(log)
        if ended:
            layout.move_to_trash(store, layout.table_folder(name), self._clock)
        self._handles.forget(log.store)
        return ended
