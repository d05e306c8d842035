"""ObjectDatabase: the names of a database in an object store, whose folders are only prefixes.

    _catalog.json                    all names (`names_document`), replaced only if unchanged
    _definitions/<id>.json           the definition of a view or function, never changed
    <schema>/<table>/<id>/           a table, the id never used again; kept when it is renamed

A name changes when the document is replaced. So a table is created in an unpublished folder, and then gets its name; a
crash before that leaves a folder that is deleted at a certain age.

A table ends with the last version of its log, which every writer of any engine loses to. Before that, a mark in the
document shows that the log decides whether the table still exists; afterwards, the next writer updates the document. As
a rename is not a commit, it first stops the writers of a mark that it meets.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import replace
from typing import Final

from dbt.adapters.silt.engine.catalog.names import name_errors
from dbt.adapters.silt.engine.catalog.names.documents import (
    Function,
    View,
    parse_function,
    parse_view,
    serialize_function,
    serialize_view,
)
from dbt.adapters.silt.engine.catalog.names.log_end import End
from dbt.adapters.silt.engine.catalog.names.open_tables import OpenTables
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationEntry, RelationKind, RelationName
from dbt.adapters.silt.engine.catalog.objects.names_document import Entry, Names, SchemaNames, TableEntry, ViewEntry
from dbt.adapters.silt.engine.catalog.objects.names_register import NamesRegister, SeenOnce
from dbt.adapters.silt.engine.catalog.objects.object_names import Definitions, ObjectNames
from dbt.adapters.silt.engine.catalog.objects.table_ends import TableEnds, TableFolders, new_location
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.clock import Clock
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.publication_marks import PublicationRegister
from dbt.adapters.silt.engine.kernel.storage.conditions import require_conditions
from dbt.adapters.silt.engine.kernel.storage.store import ObjectMissing, PrefixStore, Store

_REQUESTS_AT_ONCE: Final = 16


class ObjectDatabase:
    """A database whose root is a prefix of an object store.

    Args:
        name: the name of the database.
        store: the store, whose folders are only prefixes.
        clock: gives the time and new ids.
        handles: the open tables.
        publications: the database's publications.
    """

    def __init__(
        self, name: str, store: PrefixStore, clock: Clock, handles: OpenTables, publications: PublicationRegister
    ) -> None:
        self._name = name
        self._store = store
        self._clock = clock
        self._register = NamesRegister(store, clock, publications)
        self._names: NamesRegister | SeenOnce = self._register
        self._definitions = Definitions(store, clock)
        self._ends = TableEnds(store, self._register, handles, clock)
        self._folders = TableFolders(store, self._register, self._ends, clock)
        self.published = ObjectNames(name, self._register, self._definitions, self._ends)

    @property
    def store(self) -> Store:
        return self._store

    def for_statement(self) -> ObjectDatabase:
        """Returns the same database for a statement, which requests its names only once."""
        same = copy(self)
        same._names = SeenOnce(self._register)
        return same

    def schemas(self) -> list[str]:
        return sorted(self._names.read().schemas)

    def has_schema(self, schema: str) -> bool:
        return schema in self._names.read().schemas

    def create_schema(self, schema: str, if_not_exists: bool) -> None:
        """Checks first, once in a process, whether the storage supports conditional writes."""
        now = self._clock.now_ms()
        require_conditions(self._store, now)

        def create(names: Names) -> Names:
            if schema not in names.schemas:
                return names.with_schema(schema, SchemaNames(now))
            if if_not_exists:
                return names
            raise name_errors.schema_exists(f"{self._name}.{schema}")

        self._register.change(create)

    def drop_schema(self, schema: str, cascade: bool) -> None:
        """An interrupted drop leaves the schema, with the tables that were not dropped yet."""
        while not self._drop_if_empty(schema):
            if not cascade:
                raise name_errors.schema_not_empty(f"{self._name}.{schema}")
            self._empty(schema)

    def relations(self, schema: str) -> list[RelationEntry]:
        found = self._schema(self._names.read(), schema).relations
        names = [RelationName(self._name, schema, each) for each in found]
        with ThreadPoolExecutor(_REQUESTS_AT_ONCE) as pool:
            shown = list(pool.map(self._shown, names, found.values()))
        return sorted((each for each in shown if each is not None), key=lambda each: each.name)

    def find(self, name: RelationName) -> RelationEntry | None:
        return self._shown(name, self._names.read().find(name))

    def rename(self, name: RelationName, new_name: RelationName) -> None:
        """A table keeps its folder."""
        while not self._renamed(name, new_name):
            self._ends.settle_if_ended(name)
            self._ends.settle_if_ended(new_name)

    def table(self, name: RelationName) -> DeltaLog:
        names = self._names.read()
        self._schema(names, name.schema)
        entry = self._ends.current(name, names.find(name))
        if isinstance(entry, TableEntry):
            return self._ends.log(name, entry)
        raise name_errors.nothing(name, "table or view") if entry is None else name_errors.not_a_table(name)

    def listed(self, name: RelationName) -> DeltaLog:
        entry = self._register.last_seen.find(name)
        return self._ends.log(name, entry) if isinstance(entry, TableEntry) else self.table(name)

    def table_of_file(self, path: str) -> RelationName | None:
        root = f"{self._store.root.rstrip('/')}/"
        for schema, names in self._register.last_seen.schemas.items():
            for identifier, entry in names.relations.items():
                if isinstance(entry, TableEntry) and path.startswith(f"{root}{entry.location}/"):
                    return RelationName(self._name, schema, identifier)
        return None

    def new_table(self, name: RelationName, replace_view: bool) -> DeltaLog:
        """Creates the table in a folder of its own, which has no name before `publish_table`."""
        names = self._names.read()
        if self._ends.settle_if_ended(name):
            names = self._register.last_seen
        self._check_free(names, name, replace_view)
        self._folders.creations(name)
        return self._ends.log(name, TableEntry(new_location(name, self._clock)))

    def publish_table(self, name: RelationName, log: DeltaLog, replace_view: bool) -> None:
        """Enters the name of the table in the document; if that is refused, its folder is deleted."""
        entry = TableEntry(log.store.root.removeprefix(f"{self._store.root.rstrip('/')}/"))
        known = self._register.last_seen.find(name)
        if isinstance(known, TableEntry) and known.location == entry.location:
            return
        replaced: list[Entry | None] = []

        def publish(names: Names) -> Names:
            if names.find(name) == entry:
                return names
            self._check_free(names, name, replace_view)
            replaced[:] = [names.find(name)]
            return names.with_relation(name, entry)

        try:
            self._change(name, publish)
        except (errors.RelationExistsError, errors.SchemaNotFoundError):
            self._ends.delete(entry.location)
            raise
        self._remove_definitions(replaced)

    def drop_table(self, name: RelationName, if_exists: bool, version: int | None) -> None:
        """First the log ends, then the name is removed, then the files are deleted."""
        while True:
            entry = self._marked_table(name, if_exists)
            if entry is None and if_exists:
                return
            if entry is not None and self._ends.end(name, entry, End(version)):
                self._ends.settle(name, entry, None)
                self._ends.delete(entry.location)
                return
            self._ends.settle_if_ended(name)

    def view(self, name: RelationName) -> View:
        def definition(names: Names) -> str | None:
            entry = self._ends.current(name, self._schema(names, name.schema).relations.get(name.identifier))
            return entry.definition if isinstance(entry, ViewEntry) else None

        return parse_view(self._definition(name, "view", definition), name)

    def put_view(self, view: View, replace: bool, replace_table: bool) -> None:
        """The files of a table that it replaces are kept for a day, for the statements that are reading them."""
        name, definition = view.name, self._definitions.add(serialize_view(view))
        try:
            while (entry := self._put_or_marked(name, definition, replace, replace and replace_table)) is not None:
                if self._ends.end(name, entry, End(replaced_by=definition)):
                    self._ends.settle(name, entry, ViewEntry(definition))
                    return
                self._ends.settle_if_ended(name)
        except (errors.RelationExistsError, errors.SchemaNotFoundError):
            self._definitions.remove(definition)
            raise
        self._folders.leftovers()

    def drop_view(self, name: RelationName, if_exists: bool) -> None:
        dropped: list[Entry | None] = []

        def drop(names: Names) -> Names:
            entry = names.find(name)
            if isinstance(entry, TableEntry):
                raise name_errors.not_a_view(name)
            if entry is None and not if_exists:
                raise name_errors.nothing(name, "view")
            dropped[:] = [entry]
            return names if entry is None else names.with_relation(name, None)

        self._change(name, drop)
        self._remove_definitions(dropped)
        self._folders.leftovers()

    def functions(self, schema: str) -> list[RelationName]:
        found = self._schema(self._names.read(), schema).functions
        return sorted(RelationName(self._name, schema, each) for each in found)

    def has_function(self, name: RelationName) -> bool:
        schema = self._names.read().schemas.get(name.schema)
        return schema is not None and name.identifier in schema.functions

    def function(self, name: RelationName) -> Function:
        def definition(names: Names) -> str | None:
            return self._schema(names, name.schema).functions.get(name.identifier)

        return parse_function(self._definition(name, "function", definition), name)

    def put_function(self, function: Function, replace: bool) -> None:
        name, definition = function.name, self._definitions.add(serialize_function(function))
        replaced: list[str | None] = []

        def put(names: Names) -> Names:
            before = self._schema(names, name.schema).functions.get(name.identifier)
            if before not in (None, definition) and not replace:
                raise name_errors.exists(name)
            replaced[:] = [None if before == definition else before]
            return names.with_function(name, definition)

        try:
            self._register.change(put)
        except (errors.RelationExistsError, errors.SchemaNotFoundError):
            self._definitions.remove(definition)
            raise
        self._definitions.remove(next(iter(replaced), None))

    def drop_function(self, name: RelationName, if_exists: bool) -> None:
        dropped: list[str | None] = []

        def drop(names: Names) -> Names:
            schema = names.schemas.get(name.schema)
            if schema is None and if_exists:
                return names
            before = self._schema(names, name.schema).functions.get(name.identifier)
            if before is None and not if_exists:
                raise name_errors.nothing(name, "function")
            dropped[:] = [before]
            return names.with_function(name, None)

        self._register.change(drop)
        self._definitions.remove(next(iter(dropped), None))

    def _schema(self, names: Names, schema: str) -> SchemaNames:
        if schema not in names.schemas:
            raise name_errors.no_schema(f"{self._name}.{schema}")
        return names.schemas[schema]

    def _shown(self, name: RelationName, entry: Entry | None) -> RelationEntry | None:
        current = self._ends.current(name, entry)
        if current is None:
            return None
        return RelationEntry(name, RelationKind.TABLE if isinstance(current, TableEntry) else RelationKind.VIEW)

    def _change(self, name: RelationName, edit: Callable[[Names], Names]) -> Names:
        """Changes the entry of a name; if a table that has ended prevents that, updates its name and tries again."""
        while True:
            try:
                return self._register.change(edit)
            except (errors.RelationExistsError, errors.RelationNotFoundError):
                if not self._ends.settle_if_ended(name):
                    raise

    def _check_free(self, names: Names, name: RelationName, replace_view: bool) -> None:
        entry = self._schema(names, name.schema).relations.get(name.identifier)
        if isinstance(entry, TableEntry):
            raise name_errors.table_exists(name)
        if entry is not None and not replace_view:
            raise name_errors.view_in_the_way(name)

    def _marked_table(self, name: RelationName, if_exists: bool) -> TableEntry | None:
        """Returns the entry of a table marked to end, or None if the table is missing and `if_exists` is set."""

        def mark(names: Names) -> Names:
            if if_exists and name.schema not in names.schemas:
                return names
            entry = self._schema(names, name.schema).relations.get(name.identifier)
            if isinstance(entry, TableEntry):
                return self._ends.marked(names, name, entry)
            if entry is not None:
                raise name_errors.not_a_table(name)
            if not if_exists:
                raise name_errors.nothing(name, "table or view")
            return names

        entry = self._register.change(mark).find(name)
        return entry if isinstance(entry, TableEntry) else None

    def _put_or_marked(self, name: RelationName, definition: str, replace: bool, and_table: bool) -> TableEntry | None:
        """Gives a view its name; if a table is to be replaced, marks it instead and returns its entry."""
        replaced: list[Entry | None] = []

        def put(names: Names) -> Names:
            entry = self._schema(names, name.schema).relations.get(name.identifier)
            replaced[:] = []
            if isinstance(entry, TableEntry):
                if not and_table:
                    raise name_errors.table_in_the_way(name)
                return self._ends.marked(names, name, entry)
            if entry is not None and entry.definition != definition and not replace:
                raise name_errors.exists(name)
            replaced[:] = [None if entry == ViewEntry(definition) else entry]
            return names.with_relation(name, ViewEntry(definition))

        found = self._change(name, put).find(name)
        if replaced:
            self._remove_definitions(replaced)
            return None
        return found if isinstance(found, TableEntry) else self._put_or_marked(name, definition, replace, and_table)

    def _renamed(self, name: RelationName, new_name: RelationName) -> bool:
        """Returns whether the relation has its new name; False if either name has changed meanwhile."""
        names = self._register.read()
        entry: Entry | None = self._schema(names, name.schema).relations.get(name.identifier)
        taken = self._ends.current(new_name, self._schema(names, new_name.schema).relations.get(new_name.identifier))
        if self._ends.current(name, entry) is None:
            raise name_errors.nothing(name, "table or view")
        if taken is not None:
            is_table = isinstance(taken, TableEntry)
            raise name_errors.table_exists(new_name) if is_table else name_errors.view_in_the_way(new_name)
        if isinstance(entry, TableEntry) and entry.mark is not None:
            entry = self._ends.stop(name, entry)
        return entry is not None and self._moved(name, new_name, entry)

    def _moved(self, name: RelationName, new_name: RelationName, entry: Entry) -> bool:
        moved: Entry = replace(entry, mark=None) if isinstance(entry, TableEntry) else entry
        done: list[bool] = []

        def move(names: Names) -> Names:
            done[:] = [names.find(name) == entry and names.find(new_name) is None and new_name.schema in names.schemas]
            return names.with_relation(name, None).with_relation(new_name, moved) if done[0] else names

        self._register.change(move)
        return done[0]

    def _drop_if_empty(self, schema: str) -> bool:
        """Drops the schema if it is empty; returns whether it did."""
        done: list[bool] = []

        def drop(names: Names) -> Names:
            done[:] = [self._schema(names, schema).is_empty]
            return names.with_schema(schema, None) if done[0] else names

        for each in self._schema(self._register.read(), schema).relations:
            self._ends.settle_if_ended(RelationName(self._name, schema, each))
        self._register.change(drop)
        return done[0]

    def _empty(self, schema: str) -> None:
        """Drops the current content of a schema."""
        found = self._schema(self._register.read(), schema)
        names = {RelationName(self._name, schema, each): entry for each, entry in found.relations.items()}
        with ThreadPoolExecutor(_REQUESTS_AT_ONCE) as pool:
            list(pool.map(self._drop_any, names, names.values()))
        for each in found.functions:
            self.drop_function(RelationName(self._name, schema, each), if_exists=True)

    def _drop_any(self, name: RelationName, entry: Entry) -> None:
        """Drops a relation, unless its kind has changed."""
        try:
            if isinstance(entry, TableEntry):
                self.drop_table(name, True, None)
            else:
                self.drop_view(name, True)
        except errors.RelationNotFoundError:
            return

    def _definition(self, name: RelationName, kind: str, find: Callable[[Names], str | None]) -> bytes:
        """Returns the definition of a view or function; searches again if it is replaced meanwhile."""
        path = find(self._names.read())
        while path is not None:
            try:
                return self._definitions.read(path)
            except ObjectMissing as error:
                lost, path = path, find(self._register.read())
                if path == lost:
                    raise _definition_lost(name, kind, path) from error
        raise name_errors.nothing(name, kind)

    def _remove_definitions(self, entries: list[Entry | None]) -> None:
        for entry in entries:
            if isinstance(entry, ViewEntry):
                self._definitions.remove(entry.definition)


def _definition_lost(name: RelationName, kind: str, path: str) -> errors.TableDamagedError:
    return errors.TableDamagedError(
        f"the definition {path} of this {kind} is missing",
        table=str(name),
        remedy=f"Create the {kind} again with `create or replace {kind}`",
    )
