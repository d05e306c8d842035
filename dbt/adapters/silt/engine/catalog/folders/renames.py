"""Checks that a name of a database is free, and renames tables and views."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from dbt.adapters.silt.engine.catalog import name_errors
from dbt.adapters.silt.engine.catalog.documents import VIEW_SUFFIX, View, parse_view, serialize_view
from dbt.adapters.silt.engine.catalog.folders import layout
from dbt.adapters.silt.engine.catalog.folders.folder_documents import FolderDocuments
from dbt.adapters.silt.engine.catalog.folders.folder_tables import FolderTables
from dbt.adapters.silt.engine.catalog.names import RelationName
from dbt.adapters.silt.engine.kernel.errors import NotATableError, RelationExistsError, SiltError
from dbt.adapters.silt.engine.kernel.storage.store import ObjectExists, ObjectMissing, Store


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
        raise RelationExistsError(
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


_OF_A_WRITE: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""The folder of a write's data files, named by an id of the clock."""

_HIDDEN: Final = ("_", ".")
"""The prefixes of names that are not data to any reader: logs, change data, markers."""


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


def no_table(tables: FolderTables, documents: FolderDocuments, name: RelationName) -> SiltError:
    """Returns the error for a table that does not exist, with the reason if its folder shows it."""
    if documents.has(name, VIEW_SUFFIX):
        return name_errors.is_no_table(name)
    folder, store = layout.table_folder(name), documents.store
    try:
        if tables.log_of(store, name).exists():  # of a dropped table, whose folder still exists
            return name_errors.nothing(name, "table or view")
        is_left = _is_left_by_writes(store, folder)
    except ObjectMissing:
        return name_errors.nothing(name, "table or view")
    return name_errors.not_built(name) if is_left else _no_tables_folder(store, name)


def _is_left_by_writes(store: Store, folder: str) -> bool:
    """Returns whether the folder contains only leftovers of a creation that failed before its commit.

    Raises:
        ObjectMissing: if the folder does not exist.
    """
    files = [file.name for file in store.list_from(folder)] + store.list_links(folder)
    folders = [name for name in store.list_folders(folder) if not _OF_A_WRITE.fullmatch(name)]
    return all(name.startswith(_HIDDEN) for name in (*files, *folders))


def _no_tables_folder(store: Store, name: RelationName) -> NotATableError:
    return NotATableError(
        f"the folder {store.root}/{layout.table_folder(name)} has no table log",
        table=str(name),
        remedy="Create a table from its files with `convert to delta`, or remove the folder if it is not needed",
    )
