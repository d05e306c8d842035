"""Checks whether a name is in use, and by what."""

from __future__ import annotations

from dbt.adapters.silt.engine.catalog import name_errors
from dbt.adapters.silt.engine.catalog.documents import VIEW_SUFFIX
from dbt.adapters.silt.engine.catalog.folders import layout
from dbt.adapters.silt.engine.catalog.folders.folder_tables import FolderTables
from dbt.adapters.silt.engine.catalog.names import RelationName
from dbt.adapters.silt.engine.kernel.errors import NotATableError, SiltError
from dbt.adapters.silt.engine.kernel.storage.store import ObjectMissing, Store


def has_view(store: Store, name: RelationName) -> bool:
    """Whether there is a view's document of that name; a table of the name hides it."""
    return store.status(layout.document_path(name, VIEW_SUFFIX)) is not None


def check_no_table(tables: FolderTables, store: Store, name: RelationName) -> None:
    """Passes where no table has the name.

    Raises:
        RelationExistsError: one has.
    """
    if tables.has(store, name):
        raise name_errors.table_exists(name)


def check_no_view(store: Store, name: RelationName) -> None:
    """Passes where no view has the name.

    Raises:
        RelationExistsError: one has.
    """
    if has_view(store, name):
        raise name_errors.view_in_the_way(name)


def no_table(store: Store, name: RelationName) -> SiltError:
    """Returns the error for a table that does not exist."""
    if has_view(store, name):
        return name_errors.is_no_table(name)
    folder = layout.table_folder(name)
    try:
        store.list_folders(folder)
    except ObjectMissing:
        return name_errors.nothing(name, "table")
    return NotATableError(
        f"the folder {store.root}/{folder} holds no log of a table",
        table=str(name),
        remedy="Create the table (a creation that was cut off leaves such a folder), or remove the folder "
        "if nothing of value is in it",
    )
