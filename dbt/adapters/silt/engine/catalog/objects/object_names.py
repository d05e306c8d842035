"""The names of a database in an object store, as its publications change them, and the objects of their definitions."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Final

from dbt.adapters.silt.engine.catalog.names import name_errors
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.catalog.objects.names_document import Names, check_change
from dbt.adapters.silt.engine.catalog.objects.names_register import NamesRegister
from dbt.adapters.silt.engine.catalog.objects.table_ends import TableEnds
from dbt.adapters.silt.engine.kernel.clock import Clock
from dbt.adapters.silt.engine.kernel.errors import CorruptLogError, StorageError
from dbt.adapters.silt.engine.kernel.publication.documents import Begun, Kind, Meaning, NameChange
from dbt.adapters.silt.engine.kernel.publication.prepared import Settle
from dbt.adapters.silt.engine.kernel.publication_marks import UndecidedPublication
from dbt.adapters.silt.engine.kernel.storage.store import DOCUMENT_BYTES, Store
from dbt.adapters.silt.engine.kernel.table.paths import commit_path

_FOLDER: Final = "_definitions"
_KEPT: Final = 1000


class Definitions:
    """Writes and reads definitions; since they never change, definitions that were read are cached.

    Args:
        store: the database's store.
        clock: gives ids.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._read: dict[str, bytes] = {}

    def add(self, data: bytes) -> str:
        """Writes a definition, and returns its path."""
        path = f"{_FOLDER}/{self._clock.new_id()}.json"
        self._store.put(path, data)
        return path

    def read(self, path: str) -> bytes:
        """Returns the definition at that path.

        Raises:
            ObjectMissing: if its view or function was replaced or dropped.
        """
        if path not in self._read:
            if len(self._read) >= _KEPT:
                self._read.clear()
            self._read[path] = self._store.read(path, DOCUMENT_BYTES)
        return self._read[path]

    def remove(self, path: str | None) -> None:
        """Deletes a definition that no document names; after a failure it remains, at the cost of a few bytes."""
        if path is not None:
            with contextlib.suppress(StorageError):
                self._store.delete(path)


class ObjectNames:
    """The names of a database in an object store. Thread-safe.

    Args:
        database: the name of the database.
        register: reads and changes the names.
        definitions: the objects with the definitions of views and functions.
        ends: deletes the folders of dropped tables.
    """

    def __init__(self, database: str, register: NamesRegister, definitions: Definitions, ends: TableEnds) -> None:
        self._database = database
        self._register = register
        self._definitions = definitions
        self._ends = ends

    def meaning(self, name: RelationName, is_function: bool) -> Meaning | None:
        """Returns the present meaning of a name; see `BranchNames`."""
        names = self._register.read()
        if not is_function and self._ends.settle_if_ended(name):
            names = self._register.last_seen
        return names.meaning(name.schema, name.identifier, is_function)

    def define(self, kind: Kind, document: bytes) -> Meaning:
        """Returns the meaning of a name with a document; see `BranchNames`."""
        return Meaning(kind, self._definitions.add(document))

    def document(self, meaning: Meaning) -> bytes:
        """Returns the document of a view or function; see `BranchNames`."""
        return self._definitions.read(meaning.text)

    def forget(self, meaning: Meaning) -> None:
        """Deletes the object with a definition; see `PublishedNames`."""
        if meaning.kind is not Kind.TABLE:
            self._definitions.remove(meaning.text)

    def drop_empty_schema(self, schema: str, cascade: bool) -> None:  # noqa: ARG002
        """Drops a schema without relations and functions; see `BranchNames`."""

        def dropped(names: Names) -> Names:
            found = names.schemas.get(schema)
            return names if found is None or not found.is_empty else names.with_schema(schema, None)

        found = self._register.read().schemas.get(schema)
        for each in () if found is None else found.relations:
            self._ends.settle_if_ended(RelationName(self._database, schema, each))
        self._register.change(dropped)

    def note(self, begun: Begun, settle: Settle, check: Callable[[], None]) -> None:
        _check(begun)

        def noted(names: Names) -> Names:
            check()
            if begun.publication in names.publications:
                return names
            for each in begun.names:
                self._check_unchanged(names, each)
            return names.with_publication(begun.publication, begun.names)

        self._register.change(noted, settle)

    def finish(self, begun: Begun, is_published: bool) -> None:
        _check(begun)
        if is_published:
            self._register.attempt_change(lambda names: names, writes_published=True)
        else:
            self._register.attempt_change(lambda names: names.with_publication(begun.publication, None))
        for each in begun.names:
            self._clean_up(each, is_published)

    def _check_unchanged(self, names: Names, change: NameChange) -> None:
        """Checks that a name has the meaning that it had before the publication, and no other publication changes it.

        Raises:
            ConcurrentModificationError: if the name has another meaning.
            UndecidedPublication: if another publication changes it.
        """
        key = (change.schema, change.name, change.is_function)
        other = names.publication_at(*key)
        if other is not None:
            raise UndecidedPublication(other)
        if change.schema not in names.schemas or names.meaning(*key) != change.before:
            raise name_errors.changed_meanwhile(RelationName(self._database, change.schema, change.name))

    def _clean_up(self, change: NameChange, is_published: bool) -> None:
        """Deletes objects that nothing needs after the decision about a publication. The publisher of an aborted
        publication may try again, so only the first version of a new table is deleted.
        """
        before, after = change.before, change.after
        if not is_published and after is not None and after.kind is Kind.TABLE and after != before:
            self._ends.store.delete(f"{after.text}/{commit_path(0)}")
        if not is_published or before is None:
            return
        if before.kind is not Kind.TABLE:
            self.forget(before)
        elif after is None:
            self._ends.delete(before.text)


def _check(begun: Begun) -> None:
    """Checks the names in the document of a publication, which another program may have written.

    Raises:
        CorruptLogError: if a name refers to a folder or an object that this package does not name.
    """
    try:
        for each in begun.names:
            check_change(each)
    except ValueError as error:
        raise CorruptLogError(f"the publication {begun.publication} cannot be completed ({error})") from error
