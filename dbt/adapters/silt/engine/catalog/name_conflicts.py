"""Whether a name is taken, and by what; and how what has it gets another."""

from __future__ import annotations

from dataclasses import replace

from dbt.adapters.silt.engine.catalog import layout
from dbt.adapters.silt.engine.catalog.documents import VIEW_SUFFIX, View, parse_view, serialize_view
from dbt.adapters.silt.engine.catalog.names import RelationName
from dbt.adapters.silt.engine.catalog.tables import Tables
from dbt.adapters.silt.engine.kernel.errors import (
    NotATableError,
    RelationExistsError,
    RelationNotFoundError,
    SiltError,
)
from dbt.adapters.silt.engine.kernel.storage.store import ObjectExists, ObjectMissing, Store


def has_view(store: Store, name: RelationName) -> bool:
    """Whether there is a view's document of that name, which a table of the name hides."""
    return store.status(layout.document_path(name, VIEW_SUFFIX)) is not None


def check_no_table(tables: Tables, store: Store, name: RelationName) -> None:
    """Passes where no table has the name.

    Raises:
        RelationExistsError: one has.
    """
    if tables.has(store, name):
        raise RelationExistsError("there is such a table already", table=str(name))


def check_no_view(store: Store, name: RelationName) -> None:
    """Passes where no view has the name.

    Raises:
        RelationExistsError: one has.
    """
    if has_view(store, name):
        raise RelationExistsError("a view has that name", table=str(name), remedy="Drop the view first")


def no_table(store: Store, name: RelationName) -> SiltError:
    """What to say where a table is expected and none is there."""
    if has_view(store, name):
        return RelationNotFoundError("it is a view, not a table", table=str(name), remedy="Name a table")
    folder = layout.table_folder(name)
    try:
        store.list_folders(folder)
    except ObjectMissing:
        return RelationNotFoundError("there is no such table", table=str(name))
    return NotATableError(
        f"the folder {store.root}/{folder} holds no log of a table",
        table=str(name),
        remedy="Create the table (a creation that was cut off leaves such a folder), or remove the folder "
        "if nothing of value is in it",
    )


def rename_table(tables: Tables, store: Store, name: RelationName, new_name: RelationName) -> None:
    """Moves a table, in one step.

    Raises:
        RelationExistsError: the new name is taken.
    """
    check_no_table(tables, store, new_name)
    check_no_view(store, new_name)
    tables.clear(store, new_name)
    store.delete(layout.document_path(name, VIEW_SUFFIX))  # of a view that the table hides
    try:
        store.rename_folder(layout.table_folder(name), layout.table_folder(new_name))
    except ObjectExists as error:
        raise RelationExistsError(
            "a folder that is no table is in the way",
            table=str(new_name),
            remedy=f"Remove {store.root}/{layout.table_folder(new_name)} if nothing of value is in it",
        ) from error
    tables.forget(store.child(layout.table_folder(name)))


def rename_view(tables: Tables, store: Store, view: View, new_name: RelationName) -> None:
    """Puts a view under another name, then takes it away from its own; repeating a move that was cut off finishes it.

    Raises:
        RelationExistsError: the new name is taken.
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
