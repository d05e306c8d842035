"""The documents of views and functions in folders, and their changes by publications.

<schema>/<name>.view.json         a view
<schema>/<name>.view.next.json    the change of a relation's name by a publication that has begun
<schema>/<name>.function.json, <schema>/<name>.function.next.json   the same for functions

If the publication is published, readers take the new meaning from the second document until the first is replaced.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from dbt.adapters.silt.engine.catalog.folders import layout
from dbt.adapters.silt.engine.catalog.names import name_errors
from dbt.adapters.silt.engine.catalog.names.documents import FUNCTION_SUFFIX, VIEW_SUFFIX
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName, is_identifier
from dbt.adapters.silt.engine.kernel.errors import CorruptLogError
from dbt.adapters.silt.engine.kernel.publication import documents
from dbt.adapters.silt.engine.kernel.publication_marks import PublicationRegister
from dbt.adapters.silt.engine.kernel.storage.store import DOCUMENT_BYTES, FileStatus, ObjectMissing, Store
from dbt.adapters.silt.engine.kernel.table.json_fields import FORMAT

_NEXT: Final = ".next.json"


@dataclass(frozen=True)
class NextMeaning:
    """The change of a name by a publication that has begun."""

    publication: int
    change: documents.NameChange

    @property
    def creates_table(self) -> bool:
        """Whether the publication creates a table."""
        return self.change.after is not None and self.change.after.kind is documents.Kind.TABLE

    @property
    def text(self) -> bytes | None:
        """The document that the name has after the publication, if any."""
        return document_of(self.change.after)


@dataclass(frozen=True)
class FolderDocuments:
    """Reads and writes the documents of a database.

    Attributes:
        store: the database's store.
        register: the database's publications.
    """

    store: Store
    register: PublicationRegister

    def read(self, name: RelationName, suffix: str) -> bytes | None:
        """Returns the document of a name, or None if it is missing; a table hides the document of a view.

        Raises:
            CorruptLogError: if the change of a publication cannot be read.
            StorageError: if the storage failed.
        """
        found = self.next(name, suffix)
        if found is not None and self.register.is_decided_published(found.publication):
            return found.text
        return self._read(layout.document_path(name, suffix))

    def has(self, name: RelationName, suffix: str) -> bool:
        """Returns whether the document of a name exists; raises as `read`."""
        found = self.next(name, suffix)
        if found is not None and self.register.is_decided_published(found.publication):
            return found.text is not None
        return self.store.status(layout.document_path(name, suffix)) is not None

    def names(self, database: str, schema: str, suffix: str) -> list[RelationName]:
        """Returns the names of a schema's documents of a kind; raises as `read`.

        Raises:
            SchemaNotFoundError: if the schema was dropped meanwhile.
        """
        try:
            files = self.store.list_from(schema)
        except ObjectMissing as error:
            raise name_errors.no_schema(f"{database}.{schema}") from error
        changing = set(_stems(files, _next_ending(suffix)))
        plain = [stem for stem in _stems(files, suffix) if stem not in changing]
        changed = [RelationName(database, schema, stem) for stem in changing]
        listed = [name for name in changed if layout.exists_or_is_unreadable(partial(self.has, name, suffix))]
        return [*(RelationName(database, schema, stem) for stem in plain), *listed]

    def next(self, name: RelationName, suffix: str) -> NextMeaning | None:
        """Returns the change of a name by a publication that has begun, if any.

        Raises:
            CorruptLogError: if it cannot be read.
        """
        path = _next_path(name, suffix)
        data = self._read(path)
        if data is None:
            return None
        try:
            return documents.parsed(path, data, partial(_next_meaning, name))
        except CorruptLogError as error:
            raise CorruptLogError(error.problem, remedy="Delete this file if no program is running") from error

    def creates_unpublished(self, name: RelationName) -> bool:
        """Returns whether a publication that is not published creates a table of that name; raises as `next`."""
        found = self.next(name, VIEW_SUFFIX)
        return found is not None and found.creates_table and not self.register.is_decided_published(found.publication)

    def put_next(self, name: RelationName, suffix: str, found: NextMeaning) -> None:
        """Notes the change of a name."""
        change = documents.serialize_change(found.change)
        body = {"format": FORMAT, **change, "publication": str(found.publication)}
        self.store.put(_next_path(name, suffix), json.dumps(body, ensure_ascii=False).encode())

    def delete_next(self, name: RelationName, suffix: str) -> None:
        """Removes the change of a name."""
        self.store.delete(_next_path(name, suffix))

    def changing(self, schema: str) -> set[str]:
        """Returns the names in a schema that publications change, of relations and functions."""
        files = self.store.list_from(schema)
        return {stem for suffix in (VIEW_SUFFIX, FUNCTION_SUFFIX) for stem in _stems(files, _next_ending(suffix))}

    def _read(self, path: str) -> bytes | None:
        try:
            return self.store.read(path, DOCUMENT_BYTES)
        except ObjectMissing:
            return None


def document_of(meaning: documents.Meaning | None) -> bytes | None:
    """Returns the document of a view or function, or None for a table or a name without meaning."""
    return None if meaning is None or meaning.kind is documents.Kind.TABLE else meaning.text.encode()


def suffix_of(change: documents.NameChange) -> str:
    """Returns the ending of the document of a changed name: a relation's name has the document of a view."""
    return FUNCTION_SUFFIX if change.is_function else VIEW_SUFFIX


def _stems(files: Iterable[FileStatus], ending: str) -> list[str]:
    """Returns the identifiers before an ending in the names of files."""
    stems = (file.name.removesuffix(ending) for file in files if file.name.endswith(ending))
    return [stem for stem in stems if is_identifier(stem)]


def _next_path(name: RelationName, suffix: str) -> str:
    return layout.document_path(name, _next_ending(suffix))


def _next_ending(suffix: str) -> str:
    return suffix.removesuffix(".json") + _NEXT


def _next_meaning(name: RelationName, body: Mapping[str, Any]) -> NextMeaning:
    found = NextMeaning(int(body["publication"]), documents.parse_change(body))
    if (found.change.schema, found.change.name) != (name.schema, name.identifier):
        raise ValueError("it is the change of another name")
    return found
