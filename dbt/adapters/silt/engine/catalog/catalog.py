"""The catalog: databases, schemas, tables, views and functions.

A database is a store, laid out as `layout` shows. Folders whose names cannot be names of relations (hidden ones, upper
case) are skipped. Absence is always definite: a listing that fails is an error, never an empty answer.

Where a table and a view's document have the same name, the name is the table's. So each replaces the other in one step:
a table by its first commit, after which the document is deleted; a view by the end of the table's log, before which its
document is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack

from dbt.adapters.silt.engine.catalog import layout, renames
from dbt.adapters.silt.engine.catalog.documents import (
    FUNCTION_SUFFIX,
    VIEW_SUFFIX,
    Function,
    View,
    parse_function,
    parse_view,
    serialize_function,
    serialize_view,
)
from dbt.adapters.silt.engine.catalog.locations import table_location
from dbt.adapters.silt.engine.catalog.locks import exclusive
from dbt.adapters.silt.engine.catalog.name_conflicts import check_no_table, check_no_view, has_view, no_table
from dbt.adapters.silt.engine.catalog.names import RelationName, check_identifier, is_identifier
from dbt.adapters.silt.engine.catalog.relations import RelationEntry, RelationKind
from dbt.adapters.silt.engine.catalog.tables import Tables
from dbt.adapters.silt.engine.kernel.clock import Clock, SystemClock
from dbt.adapters.silt.engine.kernel.errors import (
    ReadOnlyStorageError,
    RelationExistsError,
    RelationNotFoundError,
    SchemaNotFoundError,
    UnsupportedStatementError,
)
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.storage.conditions import require_conditions
from dbt.adapters.silt.engine.kernel.storage.opening import open_store
from dbt.adapters.silt.engine.kernel.storage.store import ObjectExists, ObjectMissing, PutResult, Store
from dbt.adapters.silt.engine.kernel.table.paths import LOG_FOLDER


class Catalog:
    """The names of a warehouse. All methods may be called from several threads and processes.

    Every method may raise StorageError, InvalidNameError for a part that cannot be a name, and SchemaNotFoundError for
    a database or schema that definitely is not there.

    Args:
        databases: the store of each database, by its name.
        clock: gives the time and new ids.
        open_store: the store of a table that is named by its path.
    """

    def __init__(
        self,
        databases: Mapping[str, Store],
        clock: Clock | None = None,
        open_store: Callable[[str], Store] = open_store,
    ) -> None:
        self._databases = {check_identifier(name, "database"): store for name, store in databases.items()}
        self._clock = clock or SystemClock()
        self._open_store = open_store
        self._tables = Tables(self._clock)

    def databases(self) -> list[str]:
        """The names of the databases, sorted."""
        return sorted(self._databases)

    def check_database(self, database: str) -> None:
        """Raise SchemaNotFoundError if there is no such database."""
        self._store(database)

    def schemas(self, database: str) -> list[str]:
        """The names of the database's schemas, sorted; none where its root does not exist yet."""
        store = self._store(database)
        try:
            folders = store.list_folders("")
        except ObjectMissing:
            return []
        return [folder for folder in folders if is_identifier(folder) and layout.is_schema(store, folder)]

    def has_schema(self, database: str, schema: str) -> bool:
        """Whether there is such a schema; False, too, where there is no such database."""
        store = self._databases.get(check_identifier(database, "database"))
        return store is not None and layout.is_schema(store, check_identifier(schema, "schema"))

    def open_schema(self, database: str, schema: str) -> None:
        """Makes the schema where it is not there; a warehouse that can only be read stays as it is.

        Raises:
            StorageError: the warehouse is not there and cannot be made, or its storage failed.
        """
        if self.has_schema(database, schema):
            return
        try:
            self.create_schema(database, schema, if_not_exists=True)
        except ReadOnlyStorageError:
            if self._store(database).folder_modified_ms("") is None:
                raise

    def create_schema(self, database: str, schema: str, if_not_exists: bool = False) -> None:
        """Makes a schema, and the warehouse's root where it does not exist.

        Raises:
            RelationExistsError: there is such a schema, and `if_not_exists` is False.
            ConditionsIgnoredError: its storage does not keep what commits rest on.
            StorageError: the warehouse cannot be made or written.
        """
        store, folder = self._store(database), check_identifier(schema, "schema")
        require_conditions(store, self._clock.now_ms())
        if layout.make_schema(store, folder, self._clock) is PutResult.EXISTS and not if_not_exists:
            raise RelationExistsError(
                "there is such a schema already", table=f"{database}.{folder}", remedy="Use `if not exists`"
            )

    def drop_schema(self, database: str, schema: str, cascade: bool = False, if_exists: bool = False) -> None:
        """Drops a schema; with `cascade`, all that is in it, its tables as `drop_table` does.

        A drop that is cut off leaves the schema, with the tables that were not dropped yet.

        Raises:
            RelationExistsError: the schema is not empty, and `cascade` is False.
        """
        if if_exists and not self.has_schema(database, schema):
            return
        store, folder = self._schema(database, schema)
        with exclusive(store, "", self._clock), layout.locked_schema(store, folder, self._clock):
            if not cascade and layout.is_occupied(store, folder):
                raise RelationExistsError(
                    "the schema is not empty", table=f"{database}.{folder}", remedy="Drop it with `cascade`"
                )
            for name in self._tables.names(store, database, folder):
                self._tables.drop(store, name)
            layout.move_to_trash(store, folder, self._clock)
        layout.empty_trash(store, "")

    def relations(self, database: str, schema: str) -> list[RelationEntry]:
        """The tables and views of a schema, sorted by name."""
        store, folder = self._schema(database, schema)
        # Before and after the tables: a relation that changes its kind meanwhile is in one of the three listings.
        views = set(layout.document_names(database, store, folder, VIEW_SUFFIX))
        tables = self._tables.names(store, database, folder)
        views.update(layout.document_names(database, store, folder, VIEW_SUFFIX))
        entries = [RelationEntry(name, RelationKind.TABLE) for name in tables]
        entries += [RelationEntry(name, RelationKind.VIEW) for name in views.difference(tables)]
        return sorted(entries, key=lambda entry: entry.name)

    def all_relations(self, database: str) -> Iterator[RelationEntry]:
        """The tables and views of a database, sorted by name; each schema is listed when its turn comes."""
        for schema in self.schemas(database):
            yield from self.relations(database, schema)

    def all_tables(self) -> Iterator[RelationName]:
        """The names of every table of every database, sorted; each schema is listed when its turn comes."""
        for database in self.databases():
            yield from (entry.name for entry in self.all_relations(database) if entry.kind is RelationKind.TABLE)

    def find(self, name: RelationName) -> RelationEntry | None:
        """The table or view of that name, or None where there definitely is none, nor such a schema or database."""
        if not self.has_schema(name.database, name.schema):
            return None
        store = self._store(name.database)
        if self._tables.has(store, name):
            return RelationEntry(name, RelationKind.TABLE)
        if has_view(store, name):
            return RelationEntry(name, RelationKind.VIEW)
        # A table may have replaced the view between the two looks.
        return RelationEntry(name, RelationKind.TABLE) if self._tables.has(store, name) else None

    def rename(self, name: RelationName, new_name: RelationName) -> None:
        """Renames a table or view within its database.

        A table moves in one step. A view has both names for an instant; where the rename is cut off then, repeating it
        finishes it.

        Raises:
            RelationNotFoundError: there is no such table or view.
            RelationExistsError: the new name is taken.
            UnsupportedStatementError: the new name is in another database.
        """
        if name.database != new_name.database:
            raise UnsupportedStatementError(
                f"it cannot be renamed to {new_name}, which is in another database",
                table=str(name),
                remedy="Create it there with a query, then drop it here",
            )
        store, _ = self._schema(name.database, name.schema)
        with ExitStack() as held:
            for schema in sorted({name.schema, new_name.schema}):
                held.enter_context(layout.locked_schema(store, schema, self._clock))
            renames.rename(self._tables, store, name, new_name)

    def table(self, name: RelationName) -> DeltaLog:
        """Returns the open handle of a table.

        Raises:
            RelationNotFoundError: there is no such table, or a view has the name.
            NotATableError: there is a folder of that name without a log.
        """
        store, _ = self._schema(name.database, name.schema)
        if self._tables.has(store, name):
            return self._tables.log_of(store, name)
        raise no_table(store, name)

    def table_of_file(self, path: str) -> RelationName | None:
        """The name of the table whose folder a file is in; None where that is no folder of the warehouse.

        Args:
            path: plain and absolute; a local one may begin with `file:`.
        """
        for database, store in self._databases.items():
            root = f"{store.root.rstrip('/')}/"
            parts = path.removeprefix("file:").partition(root)
            steps = parts[2].split("/")
            if parts[1] and not parts[0].strip("/") and len(steps) > 2 and all(map(is_identifier, steps[:2])):
                return RelationName(database, steps[0], steps[1])
        return None

    def table_at(self, path: str) -> DeltaLog:
        """Returns the handle of the table in any folder: an absolute or relative path, a `file:` URI, or a URL.

        Whether the folder holds a table is not checked; the handle's `snapshot` raises NotATableError.

        Raises:
            InvalidNameError: the path is empty, or of a storage that is not supported.
        """
        return self._tables.log(self._open_store(table_location(path)), f"delta.`{path}`")

    def new_table(self, name: RelationName, replace_view: bool = False) -> DeltaLog:
        """Makes the folders of a new table, and returns the handle to commit its version 0 with.

        Until that commit there is no table. Two writers that create the same table may both get here; one gets
        version 0.

        Args:
            replace_view: whether the table may replace a view, which exists until that commit; the caller then deletes
                its document by `drop_hidden_view`.

        Raises:
            RelationExistsError: a table has the name; or a view, and `replace_view` is False.
        """
        store, schema = self._schema(name.database, name.schema)
        with layout.locked_schema(store, schema, self._clock):
            check_no_table(self._tables, store, name)
            if not replace_view:
                check_no_view(store, name)
            self._tables.clear(store, name)
            try:
                store.make_folder(f"{layout.table_folder(name)}/{LOG_FOLDER}")
            except ObjectExists as error:
                raise RelationExistsError("a file is where its folder would be", table=str(name)) from error
        return self._tables.log_of(store, name)

    def drop_table(self, name: RelationName, if_exists: bool = False, version: int | None = None) -> None:
        """Drops a table and its files.

        First the log ends with a version that every concurrent writer loses to, then the folder is moved out of sight,
        then it is deleted. A drop that is cut off anywhere leaves the whole table or none. A table whose log is damaged
        is dropped as well.

        Args:
            version: drops the table only if this is its newest version; None drops any version.

        Raises:
            RelationNotFoundError: there is no such table, and `if_exists` is False, or a view has the name.
            NotATableError: a folder has the name that is no table, and `if_exists` is False.
            ConcurrentModificationError: another writer has committed after `version`; nothing was dropped.
        """
        if if_exists and not self.has_schema(name.database, name.schema):
            return
        store, schema = self._schema(name.database, name.schema)
        with layout.locked_schema(store, schema, self._clock):
            was_table = self._tables.has(store, name)
            if was_table:
                self._tables.drop(store, name, version)
            self._tables.clear(store, name)
            if not was_table and (not if_exists or has_view(store, name)):
                raise no_table(store, name)
        layout.empty_trash(store, schema)

    def view(self, name: RelationName) -> View:
        """Returns the view of that name.

        Raises:
            RelationNotFoundError: there is none.
            TableDamagedError: its document cannot be read.
        """
        return parse_view(self._document(name, VIEW_SUFFIX, "view"), name)

    def put_view(self, view: View, replace: bool = False, replace_table: bool = False) -> None:
        """Makes a view; with `replace`, replaces the existing one.

        Where it replaces a table, readers see the whole table or the view. The table's log ends as a drop ends it, so
        that every concurrent writer loses; its files stay, for the statements that are reading them, until the view is
        replaced or dropped.

        Args:
            replace_table: whether `replace` also replaces a table.

        Raises:
            RelationExistsError: a table has the name and may not be replaced, or a view has it, and `replace` is False.
        """
        name = view.name
        store, schema = self._schema(name.database, name.schema)
        with layout.locked_schema(store, schema, self._clock):
            is_table = self._tables.has(store, name)
            if is_table and not (replace and replace_table):
                raise RelationExistsError("a table has that name", table=str(name), remedy="Drop the table first")
            cleared = not is_table and self._tables.clear(store, name)
            layout.put_document(store, name, VIEW_SUFFIX, serialize_view(view), replace)
            if is_table:
                self._tables.end(store, name)
        if cleared:
            layout.empty_trash(store, schema)

    def drop_view(self, name: RelationName, if_exists: bool = False) -> None:
        """Drops a view.

        Raises:
            RelationNotFoundError: there is no such view, and `if_exists` is False, or a table has the name.
        """
        entry = self.find(name)
        if entry is None and if_exists:
            return
        if entry is None:
            raise RelationNotFoundError("there is no such view", table=str(name))
        store, schema = self._schema(name.database, name.schema)
        with layout.locked_schema(store, schema, self._clock):
            if self._tables.has(store, name):
                raise RelationNotFoundError("it is a table, not a view", table=str(name), remedy="Use `drop table`")
            store.delete(layout.document_path(name, VIEW_SUFFIX))
            cleared = self._tables.clear(store, name)
        if cleared:
            layout.empty_trash(store, schema)

    def drop_hidden_view(self, name: RelationName) -> None:
        """Deletes the document of a view that a table has replaced, if there is one."""
        store, schema = self._schema(name.database, name.schema)
        if not has_view(store, name):
            return
        with layout.locked_schema(store, schema, self._clock):
            if self._tables.has(store, name):
                store.delete(layout.document_path(name, VIEW_SUFFIX))

    def functions(self, database: str, schema: str) -> list[RelationName]:
        """The names of a schema's functions, sorted."""
        store, folder = self._schema(database, schema)
        return sorted(layout.document_names(database, store, folder, FUNCTION_SUFFIX))

    def has_function(self, name: RelationName) -> bool:
        """Whether there is such a function; False, too, where there is no such schema or database."""
        if not self.has_schema(name.database, name.schema):
            return False
        return self._store(name.database).status(layout.document_path(name, FUNCTION_SUFFIX)) is not None

    def function(self, name: RelationName) -> Function:
        """Returns the function of that name; raises as `view` does."""
        return parse_function(self._document(name, FUNCTION_SUFFIX, "function"), name)

    def put_function(self, function: Function, replace: bool = False) -> None:
        """Makes a function; with `replace`, replaces the existing one.

        Raises:
            RelationExistsError: there is such a function, and `replace` is False.
        """
        name = function.name
        store, schema = self._schema(name.database, name.schema)
        with layout.locked_schema(store, schema, self._clock):
            layout.put_document(store, name, FUNCTION_SUFFIX, serialize_function(function), replace)

    def drop_function(self, name: RelationName, if_exists: bool = False) -> None:
        """Drops a function.

        Raises:
            RelationNotFoundError: there is no such function, and `if_exists` is False.
        """
        if if_exists and not self.has_schema(name.database, name.schema):
            return
        store, _ = self._schema(name.database, name.schema)
        if not self.has_function(name) and not if_exists:
            raise RelationNotFoundError("there is no such function", table=str(name))
        store.delete(layout.document_path(name, FUNCTION_SUFFIX))

    def _store(self, database: str) -> Store:
        store = self._databases.get(check_identifier(database, "database"))
        if store is None:
            raise SchemaNotFoundError(
                "there is no such database",
                table=database,
                remedy=f"Use one of {', '.join(self.databases())}, or attach it (`databases` in the profile)",
            )
        return store

    def _schema(self, database: str, schema: str) -> tuple[Store, str]:
        """Returns the database's store and the schema's folder, which exists."""
        store, folder = self._store(database), check_identifier(schema, "schema")
        if not layout.is_schema(store, folder):
            raise layout.no_schema(f"{database}.{folder}")
        return store, folder

    def _document(self, name: RelationName, suffix: str, kind: str) -> bytes:
        store, _ = self._schema(name.database, name.schema)
        try:
            return store.read(layout.document_path(name, suffix))
        except ObjectMissing as error:
            raise RelationNotFoundError(f"there is no such {kind}", table=str(name)) from error
