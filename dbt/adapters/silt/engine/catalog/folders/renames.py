"""Renames a table or a view within its database."""

from __future__ import annotations

from dataclasses import replace

from dbt.adapters.silt.engine.catalog import name_errors
from dbt.adapters.silt.engine.catalog.documents import VIEW_SUFFIX, View, parse_view, serialize_view
from dbt.adapters.silt.engine.catalog.folders import layout
from dbt.adapters.silt.engine.catalog.folders.folder_documents import FolderDocuments
from dbt.adapters.silt.engine.catalog.folders.folder_tables import FolderTables
from dbt.adapters.silt.engine.catalog.folders.name_conflicts import check_no_table, check_no_view
from dbt.adapters.silt.engine.catalog.names import RelationName
from dbt.adapters.silt.engine.kernel.errors import RelationExistsError
from dbt.adapters.silt.engine.kernel.storage.store import ObjectExists


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
