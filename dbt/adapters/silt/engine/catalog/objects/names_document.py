"""The names of a database as a value: the content of the document `_catalog.json` in an object store.

A relation is a table, in a folder that is never reused, or a view, given by the object with its definition. Neither is
changed in place: each change of a name creates another value of all names.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

from dbt.adapters.silt.engine.catalog.names import name_errors
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName, is_identifier
from dbt.adapters.silt.engine.kernel import foreign_json
from dbt.adapters.silt.engine.kernel.errors import TableDamagedError, UnsupportedFeatureError
from dbt.adapters.silt.engine.kernel.publication import documents

K = TypeVar("K")

_FORMAT: Final = 1
_FORMAT_OF_PUBLICATIONS: Final = 2
"""The format while publications change names, which an earlier version of this package would overlook."""
_CHANGES_KEPT: Final = 100
_UNIQUE_FOLDER: Final = re.compile(r"[0-9a-f]{12,16}-[0-9a-f]{12}")
"""The end of a table's folder, as `table_folders.new_location` creates it."""
_DEFINITION_PATH: Final = re.compile(r"_definitions/[0-9a-f-]{36}\.json")
"""The objects that `Definitions.add` creates."""


@dataclass(frozen=True)
class Mark:
    """Marks a table whose log may have ended; the log itself shows whether it has.

    Attributes:
        id: the id of the writers that may end it.
        is_ending: False if the writers were stopped, so that the table can be renamed.
    """

    id: str
    is_ending: bool = True


@dataclass(frozen=True)
class TableEntry:
    """A table: its folder, relative to the root."""

    location: str
    mark: Mark | None = None


@dataclass(frozen=True)
class ViewEntry:
    """A view: the object with its definition, relative to the root."""

    definition: str


Entry = TableEntry | ViewEntry


@dataclass(frozen=True)
class SchemaNames:
    """A schema: its relations, and the objects with the definitions of its functions.

    Attributes:
        created_at: milliseconds since 1970-01-01 UTC.
    """

    created_at: int
    relations: Mapping[str, Entry] = field(default_factory=dict)
    functions: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        return not self.relations and not self.functions


@dataclass(frozen=True)
class Names:
    """All names of a database.

    Attributes:
        leftovers: folders of ended tables that are still to be deleted, and the time of their end in milliseconds since
            1970-01-01 UTC.
        publications: the names that each publication changes if it is published, by the publication's id.
        changes: the ids of the last changes, by which a writer without an answer learns whether its change took place.
    """

    schemas: Mapping[str, SchemaNames] = field(default_factory=dict)
    leftovers: Mapping[str, int] = field(default_factory=dict)
    publications: Mapping[int, tuple[documents.NameChange, ...]] = field(default_factory=dict)
    changes: tuple[str, ...] = field(default=(), compare=False)

    def schema(self, name: str) -> SchemaNames:
        """Returns the names of a schema.

        Raises:
            SchemaNotFoundError: if the schema does not exist.
        """
        found = self.schemas.get(name)
        if found is None:
            raise name_errors.no_schema(name)
        return found

    def relation(self, name: RelationName) -> Entry | None:
        """Returns the relation of that name, if any; raises as `schema`."""
        return self.schema(name.schema).relations.get(name.identifier)

    def find(self, name: RelationName) -> Entry | None:
        """Returns the relation of that name, or None if it or its schema does not exist."""
        found = self.schemas.get(name.schema)
        return None if found is None else found.relations.get(name.identifier)

    def with_schema(self, name: str, names: SchemaNames | None) -> Names:
        """Returns the names with that schema, or without it."""
        return replace(self, schemas=_with_value(self.schemas, name, names))

    def with_relation(self, name: RelationName, entry: Entry | None) -> Names:
        """Returns the names with that relation, or without it; raises as `schema`."""
        schema = self.schema(name.schema)
        relations = _with_value(schema.relations, name.identifier, entry)
        return self.with_schema(name.schema, replace(schema, relations=relations))

    def with_function(self, name: RelationName, definition: str | None) -> Names:
        """Returns the names with that function, or without it; raises as `schema`."""
        schema = self.schema(name.schema)
        functions = _with_value(schema.functions, name.identifier, definition)
        return self.with_schema(name.schema, replace(schema, functions=functions))

    def with_leftover(self, location: str, since_ms: int | None) -> Names:
        """Returns the names with a folder to be deleted, or without it."""
        return replace(self, leftovers=_with_value(self.leftovers, location, since_ms))

    def meaning(self, schema: str, name: str, is_function: bool) -> documents.Meaning | None:
        """Returns the meaning of a name, or None if it or its schema does not exist."""
        names = self.schemas.get(schema, SchemaNames(0))
        if is_function:
            found = names.functions.get(name)
            return None if found is None else documents.Meaning(documents.Kind.FUNCTION, found)
        entry = names.relations.get(name)
        if entry is None:
            return None
        if isinstance(entry, ViewEntry):
            return documents.Meaning(documents.Kind.VIEW, entry.definition)
        return documents.Meaning(documents.Kind.TABLE, entry.location)

    def with_publication(self, publication: int, changes: tuple[documents.NameChange, ...] | None) -> Names:
        """Returns the names with the changes of a publication, or without them."""
        return replace(self, publications=_with_value(self.publications, publication, changes))

    def published(self, publication: int) -> Names:
        """Returns the names after a publication."""
        names = self.with_publication(publication, None)
        for change in self.publications[publication]:
            if change.schema in names.schemas:
                names = names._with_meaning(change, documents.began_ms(publication))
        return names

    def _with_meaning(self, change: documents.NameChange, since_ms: int) -> Names:
        schema, before, after = self.schemas[change.schema], change.before, change.after
        if change.is_function:
            text = None if after is None else after.text
            schema = replace(schema, functions=_with_value(schema.functions, change.name, text))
        else:
            entry = None if after is None else entry_of(after)
            schema = replace(schema, relations=_with_value(schema.relations, change.name, entry))
        names = self.with_schema(change.schema, schema)
        if before is None or before.kind is not documents.Kind.TABLE or before == after:
            return names
        return names.with_leftover(before.text, since_ms)

    def publication_at(self, schema: str, name: str, is_function: bool) -> int | None:
        """Returns a publication that changes the name, if any."""
        return next(
            (
                publication
                for publication, changes in self.publications.items()
                for each in changes
                if (each.schema, each.name, each.is_function) == (schema, name, is_function)
            ),
            None,
        )

    def publication_before(self, edited: Names) -> int | None:
        """Returns a publication that must be settled before the names are replaced by `edited`: it changes a name with
        another meaning in `edited`, or in a schema that `edited` lacks.
        """
        for publication, changes in edited.publications.items():
            for each in changes:
                key = (each.schema, each.name, each.is_function)
                if each.schema not in edited.schemas or self.meaning(*key) != edited.meaning(*key):
                    return publication
        return None

    def with_change(self, id_: str) -> Names:
        """Returns the names with that id as their last change."""
        return replace(self, changes=(*self.changes, id_)[-_CHANGES_KEPT:])

    def refers_to(self, location: str) -> bool:
        """Returns whether a table has that folder, or will have it, or the folder is still to be deleted."""
        changes = (each for changes in self.publications.values() for each in changes)
        is_next = any(each.after == documents.Meaning(documents.Kind.TABLE, location) for each in changes)
        return is_next or self.has_table_at(location) or location in self.leftovers

    def has_table_at(self, location: str) -> bool:
        """Returns whether a table has that folder."""
        entries = (entry for schema in self.schemas.values() for entry in schema.relations.values())
        return any(isinstance(entry, TableEntry) and entry.location == location for entry in entries)


def entry_of(meaning: documents.Meaning) -> Entry:
    """Returns the entry of a table or view."""
    return ViewEntry(meaning.text) if meaning.kind is documents.Kind.VIEW else TableEntry(meaning.text)


def serialize_names(names: Names) -> bytes:
    """Returns the document of the names."""
    publications = {
        str(publication): [documents.serialize_change(each) for each in changes]
        for publication, changes in names.publications.items()
    }
    body = {
        "format": _FORMAT_OF_PUBLICATIONS if publications else _FORMAT,
        "kind": "names",
        "schemas": {name: _schema_body(schema) for name, schema in names.schemas.items()},
        "leftovers": dict(names.leftovers),
        **({"publications": publications} if publications else {}),
        "changes": list(names.changes),
    }
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def check_change(change: documents.NameChange) -> None:
    """Checks that the change of a name refers only to folders and objects that this package names.

    Raises:
        ValueError: if it refers to another folder or object: anyone who may write in the database can write documents.
    """
    _identifier(change.schema)
    _identifier(change.name)
    for meaning in (change.before, change.after):
        if meaning is not None:
            _location(meaning.text) if meaning.kind is documents.Kind.TABLE else _definition(meaning.text)


def parse_names(data: bytes, where: str) -> Names:
    """Returns the names in a document.

    Args:
        where: the document, for messages.

    Raises:
        TableDamagedError: if it cannot be read.
        UnsupportedFeatureError: if a later version of this package wrote it.
    """
    try:
        body = foreign_json.loads(data)
        found = (body["format"], body["kind"])
        if found in ((_FORMAT, "names"), (_FORMAT_OF_PUBLICATIONS, "names")):
            return _checked(_names(body))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise TableDamagedError(
            f"the names of the database cannot be read ({error})",
            table=where,
            remedy="Restore an earlier version of this object, if the bucket keeps versions",
        ) from error
    raise UnsupportedFeatureError(
        f"the names of the database are in format {found[0]!r}, and this version reads formats {_FORMAT} and "
        f"{_FORMAT_OF_PUBLICATIONS}",
        table=where,
        remedy="Use a later version of dbt-silt",
    )


def _names(body: Mapping[str, Any]) -> Names:
    schemas = {_identifier(name): _schema(schema) for name, schema in body["schemas"].items()}
    leftovers = {_location(location): _whole(since_ms) for location, since_ms in body["leftovers"].items()}
    publications = {int(id_): tuple(map(_change, found)) for id_, found in body.get("publications", {}).items()}
    return Names(schemas, leftovers, publications, tuple(map(_text, body["changes"])))


def _change(body: Mapping[str, Any]) -> documents.NameChange:
    change = documents.parse_change(body)
    check_change(change)
    return change


def _checked(names: Names) -> Names:
    """Returns the names; raises ValueError if two tables share a folder."""
    folders = Counter(
        entry.location
        for schema in names.schemas.values()
        for entry in schema.relations.values()
        if isinstance(entry, TableEntry)
    )
    shared = next((location for location, times in folders.items() if times > 1), None)
    if shared is not None:
        raise ValueError(f"the folder {shared} has more than one name")
    return names


def _with_value(values: Mapping[K, Any], key: K, value: Any) -> Mapping[K, Any]:
    rest = {each: values[each] for each in values if each != key}
    return rest if value is None else {**rest, key: value}


def _schema_body(schema: SchemaNames) -> dict[str, Any]:
    relations = {name: _entry_body(entry) for name, entry in schema.relations.items()}
    return {"createdAt": schema.created_at, "relations": relations, "functions": dict(schema.functions)}


def _entry_body(entry: Entry) -> dict[str, Any]:
    if isinstance(entry, ViewEntry):
        return {"view": entry.definition}
    if entry.mark is None:
        return {"table": entry.location}
    return {"table": entry.location, "mark": entry.mark.id, "isEnding": entry.mark.is_ending}


def _schema(body: Mapping[str, Any]) -> SchemaNames:
    relations = {_identifier(name): _entry(entry) for name, entry in body["relations"].items()}
    functions = {_identifier(name): _definition(path) for name, path in body["functions"].items()}
    return SchemaNames(_whole(body["createdAt"]), relations, functions)


def _entry(body: Mapping[str, Any]) -> Entry:
    if "view" in body:
        return ViewEntry(_definition(body["view"]))
    mark = Mark(_text(body["mark"]), bool(body["isEnding"])) if "mark" in body else None
    return TableEntry(_location(body["table"]), mark)


def _identifier(name: str) -> str:
    if not is_identifier(name):
        raise ValueError(f"{name!r:.100} is not the name of a relation or a schema")
    return name


def _location(path: Any) -> str:
    """Returns the folder of a table. Only a folder that `new_location` names is read, written or deleted as a table.

    Raises:
        ValueError: if `new_location` cannot have named the folder.
    """
    schema, _, rest = _text(path).partition("/")
    name, _, unique = rest.partition("/")
    if not (is_identifier(schema) and is_identifier(name) and _UNIQUE_FOLDER.fullmatch(unique)):
        raise ValueError(f"{path!r:.200} is not the folder of a table")
    return str(path)


def _definition(path: Any) -> str:
    if not _DEFINITION_PATH.fullmatch(_text(path)):
        raise ValueError(f"{path!r:.200} is not an object with a definition")
    return str(path)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.100} is not a string")
    return value


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{value!r:.100} is not a whole number")
    return value
