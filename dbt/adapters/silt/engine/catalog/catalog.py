"""The catalog: databases, schemas, tables, views and functions.

A database is a store: its names are folders if the store has folders, else entries of a document. Absence is always
definite: a listing that fails is an error, never an empty answer.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from functools import partial
from typing import cast

from dbt.adapters.silt.engine.catalog.branches import copies, named_documents
from dbt.adapters.silt.engine.catalog.branches.attempts import delete_old_branches, held_files, used_on
from dbt.adapters.silt.engine.catalog.branches.branch import Branch
from dbt.adapters.silt.engine.catalog.branches.branch_database import BranchDatabase
from dbt.adapters.silt.engine.catalog.branches.named_branches import NamedBranches
from dbt.adapters.silt.engine.catalog.branches.run_branches import RunBranches
from dbt.adapters.silt.engine.catalog.folders import layout
from dbt.adapters.silt.engine.catalog.folders.folder_database import FolderDatabase
from dbt.adapters.silt.engine.catalog.folders.folder_documents import FolderDocuments
from dbt.adapters.silt.engine.catalog.folders.folder_names import FolderNames
from dbt.adapters.silt.engine.catalog.folders.folder_tables import FolderTables
from dbt.adapters.silt.engine.catalog.names.database import Database
from dbt.adapters.silt.engine.catalog.names.documents import Function, View
from dbt.adapters.silt.engine.catalog.names.locations import table_location
from dbt.adapters.silt.engine.catalog.names.open_tables import OpenTables
from dbt.adapters.silt.engine.catalog.names.relation_names import (
    RelationEntry,
    RelationKind,
    RelationName,
    check_identifier,
    check_new_names,
)
from dbt.adapters.silt.engine.catalog.objects.object_database import ObjectDatabase
from dbt.adapters.silt.engine.kernel.clock import Clock, SystemClock
from dbt.adapters.silt.engine.kernel.errors import (
    NotATableError,
    ReadOnlyStorageError,
    RelationNotFoundError,
    SchemaNotFoundError,
    UnsupportedStatementError,
)
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.publication.publications import Publications
from dbt.adapters.silt.engine.kernel.storage.opening import open_store
from dbt.adapters.silt.engine.kernel.storage.store import PrefixStore, Store
from dbt.adapters.silt.engine.kernel.table.keys import children, enforced_references


class Catalog:
    """The names of a warehouse. Thread-safe, also across processes.

    Every method may raise StorageError, InvalidNameError for a part that cannot be a name, and SchemaNotFoundError for
    a database or schema that definitely does not exist.

    Args:
        databases: the store of each database, by its name.
        clock: gives the time and new ids.
        open_store: opens the store of a table that is named by its path.
    """

    def __init__(
        self,
        databases: Mapping[str, Store],
        clock: Clock | None = None,
        open_store: Callable[[str], Store] = open_store,
    ) -> None:
        self._open_store = open_store
        clock = clock or SystemClock()
        named = {check_identifier(name, "database"): store for name, store in databases.items()}
        self._registers = {name: Publications(store, clock) for name, store in named.items()}
        self._tables = OpenTables(clock, tuple(self._registers.values()))
        self._databases: dict[str, Database] = {
            name: _database(name, register, self._tables) for name, register in self._registers.items()
        }
        for name, database in self._databases.items():
            self._registers[name].names = database.published
            self._registers[name].cuts = partial(named_documents.live_cuts, self._registers[name].store, clock)

    def for_statement(self) -> Catalog:
        """Returns the same catalog for a statement: its first read requests the names in an object store, only once.

        Later reads return names that are at least as new.
        """
        same = copy(self)
        same._databases = {name: each.for_statement() for name, each in self._databases.items()}
        return same

    def new_branch(self, database: str) -> Branch:
        """Returns a new branch of a database, and deletes old branches.

        Raises:
            ReadOnlyStorageError: if the database is read-only.
        """
        store = self._database(database).store
        store.check_writable()
        register = self._registers[check_identifier(database, "database")]
        delete_old_branches(store, register.clock)
        return Branch(register)

    def branch(self, database: str, branch_id: str, only: RelationName | None = None) -> Branch:
        """Returns the branch of a database that another process has begun.

        Args:
            only: see `Branch.reopen`.
        """
        return copies.with_id(self._registers[check_identifier(database, "database")], branch_id).reopen(only=only)

    def run_branches(self, database: str) -> RunBranches:
        """Returns the branches of the runs of a database."""
        self.check_database(database)
        return RunBranches(self._registers[check_identifier(database, "database")])

    def named_branches(self, database: str) -> NamedBranches:
        """Returns the named branches of a database, with which also the branches of runs are found."""
        self.check_database(database)
        name = check_identifier(database, "database")
        return NamedBranches(self._registers[name], name, self.schemas)

    def held_files(self, log: DeltaLog) -> dict[str, set[str]]:
        """Returns the files of a table that branches of its database need, by the branch's id; see `held_files`."""
        register = self._tables.register_of(log.store)
        return {} if register is None else held_files(register, log)

    def branches_using(self, log: DeltaLog) -> list[str]:
        """Returns the ids of the branches that are not published and have used a table; see `held_files`."""
        register = self._tables.register_of(log.store)
        return [] if register is None else used_on(register, log)

    def on_branch(self, database: str, branch: Branch) -> Catalog:
        """Returns the same catalog with the tables and names of a database on a branch."""
        same, name = copy(self), check_identifier(database, "database")
        same._databases = {**self._databases, name: BranchDatabase(name, self._database(name), branch)}
        return same

    def databases(self) -> list[str]:
        """Returns the names of the databases, sorted."""
        return sorted(self._databases)

    def database_of(self, database: str | None, schema: str, default: str) -> str:
        """Returns the database that a name refers to: without a database in the name, the default database.

        A name may repeat its schema as its database, as sources for dbt-spark do, which has no databases: it means the
        default database, unless a database has that name.
        """
        if not database:
            return default
        repeats = database.lower() == schema.lower() and database.lower() not in self._databases
        return default if repeats else database

    def check_database(self, database: str) -> None:
        """Raises SchemaNotFoundError if the database does not exist."""
        self._database(database)

    def schemas(self, database: str) -> list[str]:
        """Returns the names of the database's schemas, sorted, or nothing if its root does not exist yet."""
        return self._database(database).schemas()

    def has_schema(self, database: str, schema: str) -> bool:
        """Returns whether the schema exists; False if the database does not exist."""
        found = self._databases.get(check_identifier(database, "database"))
        return found is not None and found.has_schema(check_identifier(schema, "schema"))

    def open_schema(self, database: str, schema: str) -> None:
        """Creates the schema if it is missing; a read-only warehouse is left unchanged.

        Raises:
            StorageError: if the warehouse is missing and cannot be created, or its storage failed.
        """
        if self.has_schema(database, schema):
            return
        try:
            self.create_schema(database, schema, if_not_exists=True)
        except ReadOnlyStorageError:
            if self._database(database).store.folder_modified_ms("") is None:
                raise

    def create_schema(self, database: str, schema: str, if_not_exists: bool = False) -> None:
        """Creates a schema, and the warehouse's root if it does not exist.

        Raises:
            RelationExistsError: if the schema exists and `if_not_exists` is False.
                ConditionsIgnoredError: if its storage does not support the conditional writes that commits need.
            StorageError: if the warehouse cannot be created or written.
        """
        name = check_identifier(schema, "schema")
        if not self.has_schema(database, name):
            check_new_names(name)
        self._database(database).create_schema(name, if_not_exists)

    def make_root(self, database: str, schema: str) -> None:
        """Creates the folder of a database for a schema, if it does not exist; an object store needs none.

        Raises:
            StorageError: if the folder cannot be created or written.
        """
        store = self._database(database).store
        if store.has_folders:
            layout.make_root(store, schema)
            store.check_writable()

    def check_writable(self, name: RelationName) -> None:
        """Checks, without a write, that a relation can be created or changed, as far as the storage reports it.

        Raises:
            ReadOnlyStorageError: if it cannot.
        """
        try:
            self._database(name.database).store.child(f"{name.schema}/{name.identifier}").check_writable()
        except ReadOnlyStorageError as error:
            raise ReadOnlyStorageError(error.problem, table=str(name)) from error

    def drop_schema(self, database: str, schema: str, cascade: bool = False, if_exists: bool = False) -> None:
        """Drops a schema; with `cascade`, its content too, and tables as `drop_table` does.

        An interrupted drop leaves the schema, with the tables that were not dropped yet.

        Raises:
            RelationExistsError: if the schema is not empty, and `cascade` is False.
        """
        name = check_identifier(schema, "schema")
        try:
            self._database(database).drop_schema(name, cascade)
        except SchemaNotFoundError:  # or another process drops it meanwhile
            if not if_exists:
                raise

    def relations(self, database: str, schema: str) -> list[RelationEntry]:
        """Returns the tables and views of a schema, sorted by name."""
        return self._database(database).relations(check_identifier(schema, "schema"))

    def all_relations(self, database: str) -> Iterator[RelationEntry]:
        """Yields the tables and views of a database, sorted by name; each schema is listed when its turn comes."""
        for schema in self.schemas(database):
            yield from self.relations(database, schema)

    def all_tables(self) -> Iterator[RelationName]:
        """Yields the names of every table of every database, sorted; each schema is listed when its turn comes."""
        for database in self.databases():
            yield from (entry.name for entry in self.all_relations(database) if entry.kind is RelationKind.TABLE)

    def find(self, name: RelationName) -> RelationEntry | None:
        """Returns the table or view, or None if it, its schema or its database definitely does not exist."""
        found = self._databases.get(name.database)
        return None if found is None else found.find(name)

    def rename(self, name: RelationName, new_name: RelationName) -> None:
        """Renames a table or view within its database.

        A table moves atomically. A view has both names for an instant; if the rename is interrupted then, repeating it
        completes it.

        Raises:
            RelationNotFoundError: if the table or view does not exist.
            RelationExistsError: if the new name is taken.
            UnsupportedStatementError: if the new name is in another database, or an enforced foreign key names the
                table.
        """
        if name.database != new_name.database:
            raise UnsupportedStatementError(
                f"it cannot be renamed to {new_name}, which is in another database",
                table=str(name),
                remedy="Create it there with a query, then drop it here",
            )
        check_new_names(new_name.identifier)
        self.check_movable(name)
        self._database(name.database).rename(name, new_name)

    def check_movable(self, name: RelationName) -> None:
        """Checks that no enforced foreign key names the folder of a table.

        Raises:
            UnsupportedStatementError: if one does.
        """
        try:
            configuration = self.table(name).snapshot().metadata.configuration
        except (RelationNotFoundError, NotATableError):
            return  # a view has no keys, and of a missing table the caller says more
        if enforced_references(configuration) or children(configuration):
            raise UnsupportedStatementError(
                "a table with an enforced foreign key, or that such a key references, cannot be renamed",
                table=str(name),
                remedy="Drop the foreign key, rename the table, then add the key again",
            )

    def table(self, name: RelationName) -> DeltaLog:
        """Returns the open handle of a table.

        Raises:
            RelationNotFoundError: if the table does not exist, or the name belongs to a view.
            NotATableError: if a folder of that name without a log exists.
        """
        return self._database(name.database).table(name)

    def table_of_file(self, path: str) -> RelationName | None:
        """Returns the name of the table whose folder contains a file, or None for a file outside of the warehouse.

        Args:
            path: plain and absolute; a local path may begin with `file:`.
        """
        plain = path.removeprefix("file:")
        found = (each.table_of_file(plain) for each in self._databases.values())
        return next((name for name in found if name is not None), None)

    def table_at(self, path: str) -> DeltaLog:
        """Returns the handle of the table in any folder: an absolute or relative path, a `file:` URI, or a URL.

        Whether the folder contains a table is not checked; the handle's `snapshot` raises NotATableError.

        Raises:
            InvalidNameError: if the path is empty, or belongs to an unsupported storage.
        """
        return self._tables.log(self.store_at(path), f"delta.`{path}`")

    def table_by_path(self, path: str) -> DeltaLog:
        """Returns the table in any folder as `table_at`; a table of the branch of this catalog as the branch shows it.

        Raises:
            As `table_at`.
        """
        log = self.table_at(path)
        name = self.branch_table_of(log.store.root)
        found = log if name is None else self.table(name)
        return found if found.store.root == log.store.root else log

    def branch_table_of(self, path: str) -> RelationName | None:
        """Returns the name of the table whose folder is or contains a path, if this catalog shows it on a branch."""
        plain = path.removeprefix("file://").removeprefix("file:").rstrip("/")
        for database in filter(None, map(self._branched, self._databases)):
            names = (database.table_of_file(f"{each}/") for each in (plain, os.path.realpath(plain)))
            name = next((each for each in names if each is not None), None)
            entry = None if name is None else database.find(name)
            if entry is not None and entry.kind is RelationKind.TABLE:
                return name
        return None

    def store(self, database: str) -> Store:
        """Returns the store of a database, whose root has its schemas.

        Raises:
            SchemaNotFoundError: if the database does not exist.
        """
        return self._database(database).store

    def store_at(self, path: str) -> Store:
        """Returns the store of any folder: an absolute or relative path, a `file:` URI, or a URL; sends no request yet.

        Raises:
            InvalidNameError: if the path is empty, or belongs to an unsupported storage.
        """
        return self._open_store(table_location(path))

    def new_table(self, name: RelationName, replace_view: bool = False) -> DeltaLog:
        """Returns the handle for the commit of version 0 of a new table; `publish_table` then gives it its name.

        Until then the table does not exist, or, if the storage has folders, until version 0. Two writers that create
        the same table may both get a handle; only the first gets version 0, or the name.

        Args:
            replace_view: whether the table may replace a view, which exists until that commit; the caller then deletes
                it by `publish_table`.

        Raises:
            RelationExistsError: if a table of that name exists, or a view does and `replace_view` is False.
        """
        check_new_names(name.identifier)
        return self._database(name.database).new_table(name, replace_view)

    def dropped_table(self, name: RelationName) -> DeltaLog | None:
        """Returns the table that the branch of this catalog has dropped, if any; see `BranchDatabase.dropped_table`."""
        branched = self._branched(name.database)
        return None if branched is None else branched.dropped_table(name)

    def note_lookup(self, name: RelationName, is_function: bool = False) -> None:
        """Notes on the branch of this catalog, if any, that a statement did nothing because the name exists."""
        branched = self._branched(name.database)
        if branched is not None:
            branched.note_lookup(name, is_function)

    def drop_table(self, name: RelationName, if_exists: bool = False, version: int | None = None) -> None:
        """Drops a table and its files.

        First the log ends with a version that every concurrent writer loses to, then the folder is moved out of sight,
        then it is deleted. A drop that is interrupted leaves the whole table or nothing. A table whose log is damaged
        is dropped as well.

        Args:
            version: drops the table only if this is its newest version; None drops any version.

        Raises:
            RelationNotFoundError: if the table does not exist and `if_exists` is False, or the name belongs to a view.
            NotATableError: if a folder of that name is not a table, and `if_exists` is False.
            ConcurrentModificationError: if another writer has committed after `version`; nothing was dropped.
        """
        if if_exists and not self._has(name.database):
            return
        self._database(name.database).drop_table(name, if_exists, version)

    def view(self, name: RelationName) -> View:
        """Returns the view of that name.

        Raises:
            RelationNotFoundError: if the view does not exist.
            TableDamagedError: if its document cannot be read.
        """
        return self._database(name.database).view(name)

    def put_view(self, view: View, replace: bool = False, replace_table: bool = False) -> None:
        """Creates a view; with `replace`, replaces the existing view.

        If it replaces a table, readers see the whole table or the view. The table's log ends as by a drop, so that
        every concurrent writer loses; its files are kept, for the statements that are reading them, until the view is
        replaced or dropped.

        Args:
            replace_table: whether `replace` also replaces a table.

        Raises:
            RelationExistsError: if a table of that name may not be replaced, or a view has it and `replace` is False.
        """
        check_new_names(view.name.identifier)
        self._database(view.name.database).put_view(view, replace, replace_table)

    def drop_view(self, name: RelationName, if_exists: bool = False) -> None:
        """Drops a view.

        Raises:
            RelationNotFoundError: if the view does not exist and `if_exists` is False, or the name belongs to a table.
        """
        if if_exists and not self._has(name.database):
            return
        self._database(name.database).drop_view(name, if_exists)

    def publish_table(self, name: RelationName, log: DeltaLog, replace_view: bool = False) -> None:
        """Gives a table whose version 0 is committed its name, and deletes the view that it replaces.

        If the storage has folders, the table has its name since version 0. Nothing happens if the log is already the
        table's log.

        Args:
            log: the handle from `new_table`, or the table's.
            replace_view: as for `new_table`.

        Raises:
            RelationExistsError: if another relation has got the name since `new_table`; the new table is deleted.
        """
        self._database(name.database).publish_table(name, log, replace_view)

    def functions(self, database: str, schema: str) -> list[RelationName]:
        """Returns the names of a schema's functions, sorted."""
        return self._database(database).functions(check_identifier(schema, "schema"))

    def has_function(self, name: RelationName) -> bool:
        """Returns whether the function exists; False if its schema or database does not exist."""
        found = self._databases.get(name.database)
        return found is not None and found.has_function(name)

    def function(self, name: RelationName) -> Function:
        """Returns the function of that name; raises as `view` does."""
        return self._database(name.database).function(name)

    def put_function(self, function: Function, replace: bool = False) -> None:
        """Creates a function; with `replace`, replaces the existing function.

        Raises:
            RelationExistsError: if the function exists and `replace` is False.
        """
        check_new_names(function.name.identifier)
        self._database(function.name.database).put_function(function, replace)

    def drop_function(self, name: RelationName, if_exists: bool = False) -> None:
        """Drops a function.

        Raises:
            RelationNotFoundError: if the function does not exist and `if_exists` is False.
        """
        if if_exists and not self._has(name.database):
            return
        self._database(name.database).drop_function(name, if_exists)

    def _has(self, database: str) -> bool:
        return check_identifier(database, "database") in self._databases

    def _branched(self, database: str) -> BranchDatabase | None:
        """Returns the database if this catalog shows it on a branch."""
        found = self._databases.get(database)
        return found if isinstance(found, BranchDatabase) else None

    def _database(self, database: str) -> Database:
        found = self._databases.get(check_identifier(database, "database"))
        if found is None:
            raise SchemaNotFoundError(
                "the database does not exist",
                table=database,
                remedy=f"Use one of {', '.join(self.databases())}, or attach it (`databases` in the profile)",
            )
        return found


def _database(name: str, register: Publications, handles: OpenTables) -> Database:
    store, clock = register.store, register.clock
    if not store.has_folders:
        return ObjectDatabase(name, cast(PrefixStore, store), clock, handles, register)
    documents = FolderDocuments(store, register)
    tables = FolderTables(handles, clock, documents)
    return FolderDatabase(name, store, clock, tables, FolderNames(name, documents, tables, clock))
