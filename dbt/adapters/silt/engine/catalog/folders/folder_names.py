"""FolderNames: the names of a database in folders, as its publications change them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Final, TypeVar

from dbt.adapters.silt.engine.catalog.folders import layout
from dbt.adapters.silt.engine.catalog.folders.folder_documents import (
    FolderDocuments,
    NextMeaning,
    document_of,
    suffix_of,
)
from dbt.adapters.silt.engine.catalog.folders.folder_tables import FolderTables
from dbt.adapters.silt.engine.catalog.folders.locks import exclusive
from dbt.adapters.silt.engine.catalog.names import name_errors
from dbt.adapters.silt.engine.catalog.names.documents import FUNCTION_SUFFIX, VIEW_SUFFIX
from dbt.adapters.silt.engine.catalog.names.log_end import announce_end
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName, is_identifier
from dbt.adapters.silt.engine.kernel.clock import Clock
from dbt.adapters.silt.engine.kernel.errors import CorruptLogError, SchemaNotFoundError
from dbt.adapters.silt.engine.kernel.publication.documents import Begun, Kind, Meaning, NameChange
from dbt.adapters.silt.engine.kernel.publication.prepared import Settle
from dbt.adapters.silt.engine.kernel.publication_marks import UndecidedPublication
from dbt.adapters.silt.engine.kernel.storage.store import ObjectMissing

T = TypeVar("T")

_SUFFIXES: Final = (VIEW_SUFFIX, FUNCTION_SUFFIX)


class FolderNames:
    """The names of a database in folders. Thread-safe.

    Args:
        database: the name of the database.
        documents: its documents.
        tables: its tables.
        clock: gives the time and new ids.
    """

    def __init__(self, database: str, documents: FolderDocuments, tables: FolderTables, clock: Clock) -> None:
        self.documents = documents
        self._database = database
        self._store = documents.store
        self._tables = tables
        self._clock = clock

    def meaning(self, name: RelationName, is_function: bool) -> Meaning | None:
        """Returns the present meaning of a name; see `BranchNames`."""
        if not is_function and self._tables.has(self._store, name):
            return Meaning(Kind.TABLE, layout.table_folder(name))
        found = self.documents.read(name, FUNCTION_SUFFIX if is_function else VIEW_SUFFIX)
        try:
            return None if found is None else self.define(Kind.FUNCTION if is_function else Kind.VIEW, found)
        except UnicodeDecodeError as error:
            raise CorruptLogError(f"its document cannot be read ({error.reason})", table=str(name)) from error

    def define(self, kind: Kind, document: bytes) -> Meaning:
        """Returns the meaning of a name with a document; see `BranchNames`."""
        return Meaning(kind, document.decode())

    def document(self, meaning: Meaning) -> bytes:
        """Returns the document of a view or function; see `BranchNames`."""
        return meaning.text.encode()

    def forget(self, meaning: Meaning) -> None:
        """Does nothing: the document is in the meaning."""

    def drop_empty_schema(self, schema: str, cascade: bool) -> None:
        """Drops a schema without relations and functions; see `BranchNames`."""
        try:
            self.settle_all(schema)
            self.exclusively(partial(self._drop_empty_schema, schema, cascade))
        except (SchemaNotFoundError, ObjectMissing):
            return
        layout.empty_trash(self._store, "")

    def _drop_empty_schema(self, schema: str, cascade: bool) -> None:
        with exclusive(self._store, "", self._clock), layout.locked_schema(self._store, schema, self._clock):
            used = bool(self._tables.names(self._store, self._database, schema))
            used = used or any(self.documents.names(self._database, schema, suffix) for suffix in _SUFFIXES)
            if not used and (cascade or not layout.has_files(self._store, schema)):
                layout.move_to_trash(self._store, schema, self._clock)

    def note(self, begun: Begun, settle: Settle, check: Callable[[], None]) -> None:
        for change in begun.names:
            name = self._name(change)
            while not self._is_noted(name, NextMeaning(begun.publication, change), check):
                other = self.documents.next(name, suffix_of(change))
                if other is not None and other.publication != begun.publication:
                    self._finish(name, other, settle(other.publication))

    def finish(self, begun: Begun, is_published: bool) -> None:
        for change in begun.names:
            self._finish(self._name(change), NextMeaning(begun.publication, change), is_published)

    def exclusively(self, work: Callable[[], T], *names: RelationName) -> T:
        """Changes names that no publication changes at the same time, with their schemas locked.

        Args:
            work: repeated if it meets an undecided publication, which is settled first.

        Raises:
            SchemaNotFoundError: if a schema does not exist.
        """
        while True:
            for name in names:
                self._settle(name)
            try:
                with ExitStack() as held:
                    for schema in sorted({name.schema for name in names}):
                        held.enter_context(layout.locked_schema(self._store, schema, self._clock))
                    if not any(self.documents.next(name, suffix) for name in names for suffix in _SUFFIXES):
                        return work()
            except UndecidedPublication as undecided:
                self.documents.register.settle(undecided.publication)

    def settle_all(self, schema: str) -> None:
        """Settles the publications that change names of a schema."""
        for identifier in self.documents.changing(schema):
            self._settle(RelationName(self._database, schema, identifier))

    def _settle(self, name: RelationName) -> None:
        for suffix in _SUFFIXES:
            found = self.documents.next(name, suffix)
            if found is not None:
                self._finish(name, found, self.documents.register.settle(found.publication))

    def _is_noted(self, name: RelationName, noted: NextMeaning, check: Callable[[], None]) -> bool:
        """Notes the change of a name; returns False if another publication changes it.

        Raises:
            ConcurrentModificationError: if the name has another meaning than before the publication.
        """
        suffix = suffix_of(noted.change)
        try:
            with layout.locked_schema(self._store, name.schema, self._clock):
                check()
                found = self.documents.next(name, suffix)
                if found is not None:
                    return found.publication == noted.publication
                if self.meaning(name, noted.change.is_function) != noted.change.before:
                    raise name_errors.changed_meanwhile(name)
                if _drops_table(noted.change):
                    announce_end(self._tables.log_of(self._store, name))
                self.documents.put_next(name, suffix, noted)
        except SchemaNotFoundError as error:
            raise name_errors.changed_meanwhile(name) from error
        return True

    def _finish(self, name: RelationName, noted: NextMeaning, is_published: bool) -> None:
        suffix = suffix_of(noted.change)
        try:
            with layout.locked_schema(self._store, name.schema, self._clock):
                found = self.documents.next(name, suffix)
                if found is None or found.publication != noted.publication:
                    return
                if is_published:
                    self._apply(name, suffix, noted.change)
                elif noted.creates_table:
                    self._tables.clear_unpublished(self._store, name, noted.publication)
                self.documents.delete_next(name, suffix)
        except SchemaNotFoundError:
            return  # dropped with all its names
        if is_published and _drops_table(noted.change):
            layout.empty_trash(self._store, name.schema)

    def _apply(self, name: RelationName, suffix: str, change: NameChange) -> None:
        """Makes the change of a published name in the documents and folders; the files of a table that a view replaces
        are kept until the view is replaced or dropped.
        """
        document = document_of(change.after)
        if document is not None:
            self._store.put(layout.document_path(name, suffix), document)
        else:
            self._store.delete(layout.document_path(name, suffix))
        if change.after is None and _drops_table(change):
            self._tables.clear(self._store, name)

    def _name(self, change: NameChange) -> RelationName:
        """Returns the name that a publication's document, which another program may have written, changes.

        Raises:
            CorruptLogError: if it is not a name.
        """
        if not (is_identifier(change.schema) and is_identifier(change.name)):
            raise CorruptLogError(f"`{change.schema}.{change.name}`, which a publication changes, is not a name")
        return RelationName(self._database, change.schema, change.name)


def _drops_table(change: NameChange) -> bool:
    return change.before is not None and change.before.kind is Kind.TABLE
