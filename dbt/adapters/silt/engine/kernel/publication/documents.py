"""The documents of publications: what each will commit while it has begun, and its decision, which is public.

    _publications/<id>.begun.json   all that another process needs to complete the publication; deleted after it
    _publications/<id>.json         the decision: `published`, with the version of each table, or `aborted`

The decision is written if it does not exist, so that only one decision is ever made.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Final, TypeVar

from dbt.adapters.silt.engine.kernel import foreign_json
from dbt.adapters.silt.engine.kernel.clock import Clock, back_off
from dbt.adapters.silt.engine.kernel.errors import (
    CorruptLogError,
    NotWrittenError,
    StorageError,
)
from dbt.adapters.silt.engine.kernel.storage.store import DOCUMENT_BYTES, ObjectMissing, PutResult, Store
from dbt.adapters.silt.engine.kernel.table import json_fields
from dbt.adapters.silt.engine.kernel.table.paths import inside

T = TypeVar("T")

FOLDER: Final = "_publications"
NEW: Final = -1
"""The base of a table that a publication creates."""

_TRIES: Final = 8
_FIRST_WAIT: Final = 0.05
_LONGEST_WAIT: Final = 2.0


class Status(enum.Enum):
    """The decision about a publication."""

    PUBLISHED = "published"
    ABORTED = "aborted"


class Kind(enum.Enum):
    """The kinds of what a name can mean."""

    TABLE = "table"
    VIEW = "view"
    FUNCTION = "function"


@dataclass(frozen=True)
class Meaning:
    """The meaning of a name.

    Attributes:
        kind: a table, a view or a function.
        text: the folder of a table, relative to the database's root; of a view or function, the definition in the form
            in which the catalog stores it.
    """

    kind: Kind
    text: str


@dataclass(frozen=True)
class NameChange:
    """A name whose meaning a publication changes.

    Attributes:
        schema: its schema.
        name: the name of a relation or a function.
        before: its meaning before the publication; None if it had no meaning.
        after: its meaning after the publication; None if the publication drops it.
        is_function: whether it is the name of a function, which a relation can have too.
    """

    schema: str
    name: str
    before: Meaning | None
    after: Meaning | None
    is_function: bool = False


@dataclass(frozen=True)
class Part:
    """A table of a publication.

    Attributes:
        table: the table's name.
        location: its folder, relative to the database's root.
        table_id: the id in its metadata.
        base: the version after which the commit is put, or, without a commit, that was read; `NEW` for a new table.
        commit: the text of the commit's file; None for a table that was only read.
        paths: files that were read.
        whole_table: whether all rows were read, even if the rows that were read match conditions.
        transactions: whether every transaction identifier was read.
        drops: whether the commit drops the table.
        pinned: whether the commit is put right after the base or not at all: another commit names its version.
    """

    table: str
    location: str
    table_id: str
    base: int
    commit: str | None
    paths: tuple[str, ...] = ()
    whole_table: bool = False
    transactions: bool = False
    drops: bool = False
    pinned: bool = False


@dataclass(frozen=True)
class Begun:
    """A publication that has begun.

    Attributes:
        publication: its id.
        time_ms: when it began, in milliseconds since 1970-01-01 UTC.
        parts: its tables.
        names: the names that it changes.
    """

    publication: int
    time_ms: int
    parts: tuple[Part, ...]
    names: tuple[NameChange, ...] = ()

    @property
    def written(self) -> tuple[Part, ...]:
        """The tables that it changes."""
        return tuple(part for part in self.parts if part.commit is not None)


@dataclass(frozen=True)
class DecidedTable:
    """A table that a decided publication changes.

    Attributes:
        table: its name.
        location: its folder, relative to the database's root.
        table_id: the id in its metadata.
        base: the version after which the commit was put; `NEW` for a new table.
        version: the version of the commit; None if the publication was aborted.
        dropped: whether the commit drops the table.
    """

    table: str
    location: str
    table_id: str
    base: int
    version: int | None
    dropped: bool = False


@dataclass(frozen=True)
class Decision:
    """The decision about a publication."""

    publication: int
    status: Status
    tables: tuple[DecidedTable, ...]

    @property
    def versions(self) -> dict[str, int]:
        """The version of each changed table that exists, by its name; empty if the publication was aborted."""
        return {each.table: each.version for each in self.tables if each.version is not None and not each.dropped}


def new_publication(clock: Clock) -> int:
    """Returns an id for a publication: its time, and random digits; it fits into 63 bits."""
    return clock.now_ms() << 20 | int(clock.new_id().replace("-", "")[:5], 16)


def began_ms(publication: int) -> int:
    """Returns the time in the id of a publication, in milliseconds since 1970-01-01 UTC."""
    return publication >> 20


@dataclass(frozen=True)
class Documents:
    """Reads and writes the documents of a database.

    Attributes:
        store: the database's store.
        clock: waits between tries.
    """

    store: Store
    clock: Clock

    def begin(self, begun: Begun) -> None:
        """Writes the document of a publication that begins.

        Raises:
            StorageError: if it may not have been written; nothing else was.
        """
        self.store.make_folder(FOLDER)
        names = [serialize_change(each) for each in begun.names]
        body = {"format": json_fields.FORMAT, **asdict(begun), "publication": str(begun.publication), "names": names}
        if self.store.put_if_absent(_begun_path(begun.publication), _text(body)) is PutResult.EXISTS:
            raise StorageError(f"a publication with the id {begun.publication} exists", remedy="Run it again")

    def begun(self, publication: int) -> Begun | None:
        """Returns a publication that has begun, or None if its document is missing.

        Raises:
            CorruptLogError: if the document cannot be read.
            StorageError: if the storage failed.
        """
        return self._read(_begun_path(publication), partial(_begun, publication))

    def decide(self, begun: Begun, status: Status, versions: Mapping[str, int]) -> Decision:
        """Writes the decision if it is missing, and returns it.

        Raises:
            StorageError: if it is not known whether a decision was written.
        """
        path = _path(begun.publication)
        body = {
            "format": json_fields.FORMAT,
            "id": str(begun.publication),
            "status": status.value,
            "time": self.clock.now_ms(),
            "tables": [
                {
                    "table": part.table,
                    "location": part.location,
                    "tableId": part.table_id,
                    "base": part.base,
                    **({"version": versions[part.table]} if status is Status.PUBLISHED else {}),
                    **({"dropped": True} if part.drops else {}),
                }
                for part in begun.written
            ],
        }
        for tries in range(_TRIES):
            try:
                self.store.put_if_absent(path, _text(body))
                decision = self.decision(begun.publication)
                if decision is not None:
                    return decision
            except NotWrittenError:
                raise
            except StorageError:
                if tries == _TRIES - 1:
                    raise
            back_off(self.clock, tries, _FIRST_WAIT, _LONGEST_WAIT)
        raise StorageError(f"{path} was written, and cannot be found")

    def decision(self, publication: int) -> Decision | None:
        """Returns the decision about a publication, if it was made.

        Raises:
            CorruptLogError: if the document cannot be read.
            StorageError: if the storage failed.
        """
        return self._read(_path(publication), partial(_decision, publication))

    def forget_beginning(self, publication: int) -> None:
        """Deletes the document of the beginning, which the decision replaces."""
        self.store.delete(_begun_path(publication))

    def _read(self, path: str, parse: Callable[[Any], T]) -> T | None:
        try:
            return parsed(path, self.store.read(path, DOCUMENT_BYTES), parse)
        except ObjectMissing:
            return None


def serialize_change(change: NameChange) -> dict[str, Any]:
    """Returns the change of a name for a document."""

    def meaning(each: Meaning | None) -> dict[str, str] | None:
        return None if each is None else {"kind": each.kind.value, "text": each.text}

    names = {"schema": change.schema, "name": change.name, "function": change.is_function}
    return {**names, "before": meaning(change.before), "after": meaning(change.after)}


def parse_change(body: Mapping[str, Any]) -> NameChange:
    """Returns the change of a name in a document.

    Raises:
        ValueError, KeyError, TypeError, AttributeError: if it is not the change of a name.
    """

    def meaning(each: Mapping[str, Any] | None) -> Meaning | None:
        if each is None:
            return None
        kind, text = Kind(each["kind"]), _string(each["text"])
        return Meaning(kind, inside(text) if kind is Kind.TABLE else text)

    found = NameChange(
        _string(body["schema"]),
        _string(body["name"]),
        meaning(body["before"]),
        meaning(body["after"]),
        bool(body["function"]),
    )
    if any(each and (each.kind is Kind.FUNCTION) is not found.is_function for each in (found.before, found.after)):
        raise ValueError(f"the name {found.name!r:.100} is of a function and of a relation")
    return found


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.100} is not a string")
    return value


def _begun(publication: int, body: Mapping[str, Any]) -> Begun:
    names = tuple(map(parse_change, body.get("names", ())))
    return Begun(publication, int(body["time_ms"]), tuple(map(_part, body["parts"])), names)


def _decision(publication: int, body: Mapping[str, Any]) -> Decision:
    return Decision(publication, Status(body["status"]), tuple(map(_decided, body["tables"])))


def _part(body: Mapping[str, Any]) -> Part:
    for name, kind in (("base", json_fields.long), ("table", json_fields.text), ("table_id", json_fields.text)):
        json_fields.required(kind(body, name), name)
    json_fields.text(body, "commit")
    paths = json_fields.strings(body, "paths") or ()
    return Part(**{**body, "location": inside(_string(body["location"])), "paths": paths})


def _decided(body: Mapping[str, Any]) -> DecidedTable:
    version = body.get("version")
    return DecidedTable(
        body["table"],
        inside(body["location"]),
        body["tableId"],
        int(body["base"]),
        None if version is None else int(version),
        bool(body.get("dropped")),
    )


def parsed(path: str, data: bytes, parse: Callable[[Any], T]) -> T:
    """Returns the value in a document of a publication or a branch.

    Args:
        path: the path of the document, for messages.
        parse: converts its JSON; may raise ValueError, KeyError, TypeError or AttributeError.

    Raises:
        CorruptLogError: if it cannot be read.
        UnsupportedFeatureError: if a later version of this package has written it.
    """
    try:
        body = foreign_json.loads(data)
        json_fields.check_format(body, path)
        return parse(body)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptLogError(f"{path} cannot be read ({error!r})") from error


def _path(publication: int) -> str:
    return f"{FOLDER}/{publication}.json"


def _begun_path(publication: int) -> str:
    return f"{FOLDER}/{publication}.begun.json"


def _text(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
