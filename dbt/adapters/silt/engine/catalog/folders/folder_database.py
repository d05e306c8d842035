"""FolderDatabase: the names of a database in folders, which are renamed atomically, as `layout` shows.

Folders whose names cannot be names of relations (hidden or in upper case) are skipped.

If a table and a view's document have the same name, the name is the table's. So each replaces the other atomically: a
table by its first commit, after which the document is deleted; a view by the end of the table's log, before which its
document is written.
"""

from __future__ import annotations

from functools import partial

from dbt.adapters.silt.engine.catalog.folders import folder_tables, layout
from dbt.adapters.silt.engine.catalog.folders.folder_names import FolderNames
from dbt.adapters.silt.engine.catalog.folders.folder_tables import FolderTables, check_no_table, check_no_view, no_table
from dbt.adapters.silt.engine.catalog.folders.locks import exclusive
from dbt.adapters.silt.engine.catalog.names import name_errors
from dbt.adapters.silt.engine.catalog.names.documents import (
    FUNCTION_SUFFIX,
    VIEW_SUFFIX,
    Function,
    View,
    parse_function,
    parse_view,
    serialize_function,
    serialize_view,
)
from dbt.adapters.silt.engine.catalog.names.relation_names import (
    RelationEntry,
    RelationKind,
    RelationName,
    is_identifier,
)
from dbt.adapters.silt.engine.kernel.clock import Clock
from dbt.adapters.silt.engine.kernel.errors import RelationExistsError, SymbolicLinkError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.storage.store import ObjectExists, ObjectMissing, PutResult, Store
from dbt.adapters.silt.engine.kernel.table.paths import LOG_FOLDER


class FolderDatabase:
    """A database whose root is a folder.

    Args:
        name: the name of the database.
        store: a store that has folders.
        clock: gives the time and new ids.
        tables: keeps the open handles.
        published: the names as publications change them.
    """

    def __init__(self, name: str, store: Store, clock: Clock, tables: FolderTables, published: FolderNames) -> None:
        self._name = name
        self._store = store
        self._clock = clock
        self._tables = tables
        self._documents = published.documents
        self.published = published

    @property
    def store(self) -> Store:
        return self._store

    def for_statement(self) -> FolderDatabase:
        """Returns the same database: reading a folder costs almost nothing."""
        return self

    def schemas(self) -> list[str]:
        try:
            folders = self._store.list_folders("")
        except ObjectMissing:
            return []
        return [folder for folder in folders if is_identifier(folder) and layout.is_listed(self._store, folder)]

    def has_schema(self, schema: str) -> bool:
        return layout.is_schema(self._store, schema)

    def create_schema(self, schema: str, if_not_exists: bool) -> None:
        """Creates a schema, and the warehouse's root if it does not exist."""
        if layout.make_schema(self._store, schema, self._clock) is PutResult.EXISTS and not if_not_exists:
            raise name_errors.schema_exists(f"{self._name}.{schema}")

    def drop_schema(self, schema: str, cascade: bool) -> None:
        """An interrupted drop leaves the schema, with the tables that were not dropped yet."""
        self._require(schema)
        self.published.settle_all(schema)
        try:
            self.published.exclusively(partial(self._drop_schema, schema, cascade))
        except ObjectMissing as error:  # moved or deleted meanwhile
            raise name_errors.no_schema(f"{self._name}.{schema}") from error
        layout.empty_trash(self._store, "")

    def _drop_schema(self, schema: str, cascade: bool) -> None:
        with exclusive(self._store, "", self._clock), layout.locked_schema(self._store, schema, self._clock):
            if not cascade and layout.is_occupied(self._store, schema):
                raise name_errors.schema_not_empty(f"{self._name}.{schema}")
            for name in self._tables.names(self._store, self._name, schema):
                self._tables.drop(self._store, name)
            layout.move_to_trash(self._store, schema, self._clock)

    def relations(self, schema: str) -> list[RelationEntry]:
        self._require(schema)
        # Before and after the tables: a relation that changes its kind meanwhile is in at least one listing.
        views = set(self._documents.names(self._name, schema, VIEW_SUFFIX))
        tables = self._tables.names(self._store, self._name, schema)
        views.update(self._documents.names(self._name, schema, VIEW_SUFFIX))
        entries = [RelationEntry(name, RelationKind.TABLE) for name in tables]
        entries += [RelationEntry(name, RelationKind.VIEW) for name in views.difference(tables)]
        return sorted(entries, key=lambda entry: entry.name)

    def find(self, name: RelationName) -> RelationEntry | None:
        if not self.has_schema(name.schema):
            return None
        if self._tables.has(self._store, name):
            return RelationEntry(name, RelationKind.TABLE)
        if self._documents.has(name, VIEW_SUFFIX):
            return RelationEntry(name, RelationKind.VIEW)
        # A table may have replaced the view between the two checks.
        return RelationEntry(name, RelationKind.TABLE) if self._tables.has(self._store, name) else None

    def rename(self, name: RelationName, new_name: RelationName) -> None:
        """A table moves atomically. A view has both names for an instant; if the rename is interrupted then,
        repeating it completes it.
        """
        self._require(name.schema)
        rename = partial(folder_tables.rename, self._tables, self._documents, name, new_name)
        self.published.exclusively(rename, name, new_name)

    def table(self, name: RelationName) -> DeltaLog:
        """Also raises NotATableError if the folder of that name contains something other than a table."""
        self._require(name.schema)
        if self._tables.has(self._store, name):
            return self._tables.log_of(self._store, name)
        raise no_table(self._tables, self._documents, name)

    def listed(self, name: RelationName) -> DeltaLog:
        return self._tables.log_of(self._store, name)

    def table_of_file(self, path: str) -> RelationName | None:
        before, root, below = path.partition(f"{self._store.root.rstrip('/')}/")
        steps = below.split("/")
        if root and not before.strip("/") and len(steps) > 2 and all(map(is_identifier, steps[:2])):
            return RelationName(self._name, steps[0], steps[1])
        return None

    def new_table(self, name: RelationName, replace_view: bool) -> DeltaLog:
        """Creates the folders of a table. Several writers may create the same table here; one commits version 0."""
        self._require(name.schema)
        self.published.exclusively(partial(self._make_folders, name, replace_view), name)
        return self._tables.log_of(self._store, name)

    def _make_folders(self, name: RelationName, replace_view: bool) -> None:
        check_no_table(self._tables, self._store, name)
        if not replace_view:
            check_no_view(self._documents, name)
        self._tables.clear(self._store, name)
        try:
            self._store.make_folder(f"{layout.table_folder(name)}/{LOG_FOLDER}")
        except ObjectExists as error:
            raise RelationExistsError("a file has the path of its folder", table=str(name)) from error

    def publish_table(self, name: RelationName, log: DeltaLog, replace_view: bool) -> None:  # noqa: ARG002
        """Deletes the document of a view that the table has replaced: the table exists since its version 0."""
        self._require(name.schema)
        if not self._documents.has(name, VIEW_SUFFIX):
            return

        def delete() -> None:
            if self._tables.has(self._store, name):
                self._store.delete(layout.document_path(name, VIEW_SUFFIX))

        self.published.exclusively(delete, name)

    def drop_table(self, name: RelationName, if_exists: bool, version: int | None) -> None:
        """First the log ends, then the folder is moved out of sight, then it is deleted."""
        if if_exists and not self.has_schema(name.schema):
            return
        self._require(name.schema)

        def drop() -> None:
            was_table = self._drop_table(name, version)
            if not was_table and (not if_exists or self._documents.has(name, VIEW_SUFFIX)):
                raise no_table(self._tables, self._documents, name)

        self.published.exclusively(drop, name)
        layout.empty_trash(self._store, name.schema)

    def _drop_table(self, name: RelationName, version: int | None) -> bool:
        """Ends a table and moves its folder out of sight; returns whether the table existed.

        If the table is behind a symbolic link that is not followed, only the link in the warehouse is moved.
        """
        try:
            was_table = self._tables.has(self._store, name)
        except SymbolicLinkError:
            self._tables.discard(self._store, name)
            return True
        if was_table:
            self._tables.drop(self._store, name, version)
        self._tables.clear(self._store, name)
        return was_table

    def view(self, name: RelationName) -> View:
        return parse_view(self._document(name, VIEW_SUFFIX, "view"), name)

    def put_view(self, view: View, replace: bool, replace_table: bool) -> None:
        """The files of a table that it replaces are kept until the view is replaced or dropped."""
        name = view.name
        self._require(name.schema)

        def put() -> bool:
            is_table = self._tables.has(self._store, name)
            if is_table and not (replace and replace_table):
                raise name_errors.table_in_the_way(name)
            cleared = not is_table and self._tables.clear(self._store, name)
            layout.put_document(self._store, name, VIEW_SUFFIX, serialize_view(view), replace)
            if is_table:
                self._tables.end(self._store, name)
            return cleared

        if self.published.exclusively(put, name):
            layout.empty_trash(self._store, name.schema)

    def drop_view(self, name: RelationName, if_exists: bool) -> None:
        entry = self.find(name)
        if entry is None and if_exists:
            return
        if entry is None:
            raise name_errors.nothing(name, "view")
        self._require(name.schema)

        def drop() -> bool:
            if self._tables.has(self._store, name):
                raise name_errors.not_a_view(name)
            self._store.delete(layout.document_path(name, VIEW_SUFFIX))
            return self._tables.clear(self._store, name)

        if self.published.exclusively(drop, name):
            layout.empty_trash(self._store, name.schema)

    def functions(self, schema: str) -> list[RelationName]:
        self._require(schema)
        return sorted(self._documents.names(self._name, schema, FUNCTION_SUFFIX))

    def has_function(self, name: RelationName) -> bool:
        if not self.has_schema(name.schema):
            return False
        return self._documents.has(name, FUNCTION_SUFFIX)

    def function(self, name: RelationName) -> Function:
        return parse_function(self._document(name, FUNCTION_SUFFIX, "function"), name)

    def put_function(self, function: Function, replace: bool) -> None:
        name = function.name
        self._require(name.schema)
        put = partial(layout.put_document, self._store, name, FUNCTION_SUFFIX, serialize_function(function), replace)
        self.published.exclusively(put, name)

    def drop_function(self, name: RelationName, if_exists: bool) -> None:
        if if_exists and not self.has_schema(name.schema):
            return
        self._require(name.schema)

        def drop() -> None:
            if not self.has_function(name) and not if_exists:
                raise name_errors.nothing(name, "function")
            self._store.delete(layout.document_path(name, FUNCTION_SUFFIX))

        self.published.exclusively(drop, name)

    def _require(self, schema: str) -> None:
        """Raises SchemaNotFoundError if the schema does not exist."""
        if not layout.is_schema(self._store, schema):
            raise name_errors.no_schema(f"{self._name}.{schema}")

    def _document(self, name: RelationName, suffix: str, kind: str) -> bytes:
        self._require(name.schema)
        found = self._documents.read(name, suffix)
        if found is None:
            raise name_errors.nothing(name, kind)
        return found
