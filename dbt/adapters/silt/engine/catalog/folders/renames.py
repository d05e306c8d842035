"""Renames a table or a view within its database."""

from __future__ import annotations

from dataclasses import replace

from dbt.adapters.silt.engine.catalog import name_errors
from dbt.adapters.silt.engine.catalog.documents import VIEW_SUFFIX, View, parse_view, serialize_view
from dbt.adapters.silt.engine.catalog.folders import layout
from dbt.adapters.silt.engine.catalog.folders.folder_tables import FolderTables
from dbt.adapters.silt.engine.catalog.folders.name_conflicts import check_no_table, check_no_view, has_view
from dbt.adapters.silt.engine.catalog.names import RelationName
from dbt.adapters.silt.engine.kernel.errors import RelationExistsError
from dbt.adapters.silt.engine.kernel.storage.store import ObjectExists, ObjectMissing, Store


def rename(tables: FolderTables, store: Store, name: RelationName, new_name: RelationName) -> None:
    """Renames the table or view of that name; the caller holds the locks of both schemas.

    Raises:
        RelationNotFoundError: if the table or view does not exist.
        RelationExistsError: if the new name is taken.
    """
    if tables.has(store, name):
        _rename_table(tables, store, name, new_name)
        return
    try:
        document = store.read(layout.document_path(name, VIEW_SUFFIX))
    except ObjectMissing as error:
        raise name_errors.nothing(name, "table or view") from error
    _rename_view(tables, store, parse_view(document, name), new_name)


def _rename_table(tables: FolderTables, store: Store, name: RelationName, new_name: RelationName) -> None:
    """Moves the table's folder atomically."""
    check_no_table(tables, store, new_name)
    check_no_view(store, new_name)
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


def _rename_view(tables: FolderTables, store: Store, view: View, new_name: RelationName) -> None:
    """Writes the document under the new name, then deletes the old document; repeating an interrupted rename completes
    it.
    """
    renamed = replace(view, name=new_name)
    path = layout.document_path(new_name, VIEW_SUFFIX)
    begun = has_view(store, new_name) and parse_view(store.read(path), new_name) == renamed
    if not begun:
        check_no_table(tables, store, new_name)
        check_no_view(store, new_name)
        layout.put_document(store, new_name, VIEW_SUFFIX, serialize_view(renamed), replace=False)
    tables.clear(store, view.name)
    store.delete(layout.document_path(view.name, VIEW_SUFFIX))
