"""Lists, renames and drops tables in folders, ends the logs of dropped tables, and checks that a name is free."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from itertools import filterfalse
from typing import Final

from dbt.adapters.silt.engine.catalog.folders import layout
from dbt.adapters.silt.engine.catalog.folders.folder_documents import FolderDocuments
from dbt.adapters.silt.engine.catalog.names import name_errors
from dbt.adapters.silt.engine.catalog.names.documents import VIEW_SUFFIX, View, parse_view, serialize_view
from dbt.adapters.silt.engine.catalog.names.log_end import End, end_log, has_log, is_dropped, is_table
from dbt.adapters.silt.engine.catalog.names.open_tables import OpenTables
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName, is_identifier
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.clock import Clock
from dbt.adapters.silt.engine.kernel.log.commit_file import read_info
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.printable import UUID
from dbt.adapters.silt.engine.kernel.publication_marks import UndecidedPublication, publication_of
from dbt.adapters.silt.engine.kernel.storage.store import ObjectExists, ObjectMissing, Store
from dbt.adapters.silt.engine.kernel.table.paths import LOG_FOLDER, commit_path

_OF_A_VECTOR: Final = re.compile(rf"deletion_vector_{UUID.pattern}\.bin")
"""A file of deletion vectors."""

_HIDDEN: Final = ("_", ".")
"""The prefixes of names that are not data to any reader: logs, change data, markers."""


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
        return is_table(log) and not self._documents.creates_unpublished(name) and has_log(log)

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
        return [name for name in found if layout.exists_or_is_unreadable(partial(self.has, store, name))]

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
        except ObjectMissing as error:  # moved or deleted meanwhile
            raise name_errors.nothing(name, "table or view") from error
        except errors.NoSpaceError:
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


def rename(tables: FolderTables, documents: FolderDocuments, name: RelationName, new_name: RelationName) -> None:
    """Renames the table or view of that name; the caller holds the locks of both schemas.

    Raises:
        RelationNotFoundError: if the table or view does not exist.
        RelationExistsError: if the new name is taken.
    """
    if tables.has(documents.store, name):
        _rename_table(tables, documents, name, new_name)
        return
    document = documents.read(name, VIEW_SUFFIX)
    if document is None:
        raise name_errors.nothing(name, "table or view")
    _rename_view(tables, documents, parse_view(document, name), new_name)


def _rename_table(tables: FolderTables, documents: FolderDocuments, name: RelationName, new_name: RelationName) -> None:
    """Moves the table's folder atomically."""
    store = documents.store
    check_no_table(tables, store, new_name)
    check_no_view(documents, new_name)
    tables.clear(store, new_name)
    store.delete(layout.document_path(name, VIEW_SUFFIX))  # the document of a view that the table hides
    try:
        store.rename_folder(layout.table_folder(name), layout.table_folder(new_name))
    except ObjectExists as error:
        raise errors.RelationExistsError(
            "the folder of the new name exists, and is not a table",
            table=str(new_name),
            remedy=f"Remove {store.root}/{layout.table_folder(new_name)} if it contains nothing of value",
        ) from error
    tables.forget(store, name)


def _rename_view(tables: FolderTables, documents: FolderDocuments, view: View, new_name: RelationName) -> None:
    """Writes the document under the new name, then deletes the old document; repeating an interrupted rename completes
    it.
    """
    renamed, store = replace(view, name=new_name), documents.store
    present = documents.read(new_name, VIEW_SUFFIX)
    if present is None or parse_view(present, new_name) != renamed:
        check_no_table(tables, store, new_name)
        check_no_view(documents, new_name)
        layout.put_document(store, new_name, VIEW_SUFFIX, serialize_view(renamed), replace=False)
    tables.clear(store, view.name)
    store.delete(layout.document_path(view.name, VIEW_SUFFIX))


def check_no_table(tables: FolderTables, store: Store, name: RelationName) -> None:
    """Checks that no table of that name exists.

    Raises:
        RelationExistsError: if a table of that name exists.
    """
    if tables.has(store, name):
        raise name_errors.table_exists(name)


def check_no_view(documents: FolderDocuments, name: RelationName) -> None:
    """Checks that no view of that name exists.

    Raises:
        RelationExistsError: if a view of that name exists.
    """
    if documents.has(name, VIEW_SUFFIX):
        raise name_errors.view_in_the_way(name)


def no_table(tables: FolderTables, documents: FolderDocuments, name: RelationName) -> errors.SiltError:
    """Returns the error for a table that does not exist, with the reason if its folder shows it."""
    if documents.has(name, VIEW_SUFFIX):
        return name_errors.not_a_table(name)
    folder, store = layout.table_folder(name), documents.store
    try:
        if tables.log_of(store, name).exists():  # of a dropped table, whose folder still exists
            return name_errors.nothing(name, "table or view")
        is_left = _is_left_by_writes(store, folder)
    except ObjectMissing:
        return name_errors.nothing(name, "table or view")
    return _not_built(name) if is_left else _no_tables_folder(store, name)


def _is_left_by_writes(store: Store, folder: str) -> bool:
    """Returns whether the folder contains only leftovers of a creation that failed before its commit.

    Raises:
        ObjectMissing: if the folder does not exist.
    """
    files = [file.name for file in store.list_from(folder)] + store.list_links(folder)
    # The folder of a write's data files is named by an id.
    folders = [name for name in store.list_folders(folder) if not UUID.fullmatch(name)]
    return all(name.startswith(_HIDDEN) for name in (*filterfalse(_OF_A_VECTOR.fullmatch, files), *folders))


def _no_tables_folder(store: Store, name: RelationName) -> errors.NotATableError:
    return errors.NotATableError(
        f"the folder {store.root}/{layout.table_folder(name)} has no table log",
        table=str(name),
        remedy="Create a table from its files with `convert to delta`, or remove the folder if it is not needed",
    )


def _not_built(name: RelationName) -> errors.RelationNotFoundError:
    """Returns the error for a table whose folder exists but whose first commit is missing."""
    return errors.RelationNotFoundError(
        "the table is not built yet: the statement that creates it has failed, was interrupted, or is still running",
        table=str(name),
        remedy="Build the model, or run the statement that creates it; leftover files in its folder do no harm",
    )
