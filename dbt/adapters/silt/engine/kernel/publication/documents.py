"""The documents of publications: what each will commit while it has begun, and its decision, which is public.

    _publications/<id>.begun.json   all that another process needs to complete the publication; deleted after it
    _publications/<id>.json         the decision: `published`, with the version of each table, or `aborted`

The decision is written if it does not exist, so that only one decision is ever made.
"""

from __future__ import annotations

import contextlib
import enum
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from dbt.adapters.silt.engine.kernel import foreign_json
from dbt.adapters.silt.engine.kernel.clock import Clock, back_off
from dbt.adapters.silt.engine.kernel.errors import CorruptLogError, NotWrittenError, StorageError
from dbt.adapters.silt.engine.kernel.storage.store import DOCUMENT_BYTES, ObjectMissing, PutResult, Store

FOLDER: Final = "_publications"

_TRIES: Final = 8
_FIRST_WAIT: Final = 0.05
_LONGEST_WAIT: Final = 2.0


class Status(enum.Enum):
    """The decision about a publication."""

    PUBLISHED = "published"
    ABORTED = "aborted"


@dataclass(frozen=True)
class Part:
    """A table of a publication.

    Attributes:
        table: the table's name.
        location: its folder, relative to the database's root.
        table_id: the id in its metadata.
        base: the version after which the commit is put, or, without a commit, that was read.
        commit: the text of the commit's file; None for a table that was only read.
        paths: files that were read.
        whole_table: whether all rows were read; also if the rows that were read match conditions.
        transactions: whether every transaction identifier was read.
    """

    table: str
    location: str
    table_id: str
    base: int
    commit: str | None
    paths: tuple[str, ...] = ()
    whole_table: bool = False
    transactions: bool = False


@dataclass(frozen=True)
class Begun:
    """A publication that has begun.

    Attributes:
        publication: its id.
        time_ms: when it began, in milliseconds since 1970-01-01 UTC.
        parts: its tables.
    """

    publication: int
    time_ms: int
    parts: tuple[Part, ...]

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
        base: the version after which the commit was put.
        version: the version of the commit; None if the publication was aborted.
    """

    table: str
    location: str
    table_id: str
    base: int
    version: int | None


@dataclass(frozen=True)
class Decision:
    """The decision about a publication."""

    publication: int
    status: Status
    tables: tuple[DecidedTable, ...]

    @property
    def versions(self) -> dict[str, int]:
        """The version of each changed table, by its name; empty if the publication was aborted."""
        return {each.table: each.version for each in self.tables if each.version is not None}


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
        body = {**asdict(begun), "publication": str(begun.publication)}
        if self.store.put_if_absent(_begun_path(begun.publication), _text(body)) is PutResult.EXISTS:
            raise StorageError(f"a publication with the id {begun.publication} exists", remedy="Run it again")

    def begun(self, publication: int) -> Begun | None:
        """Returns a publication that has begun, or None if its document is missing.

        Raises:
            CorruptLogError: if the document cannot be read.
            StorageError: if the storage failed.
        """
        body = self._read(_begun_path(publication))
        if body is None:
            return None
        with _named(_begun_path(publication)):
            return Begun(publication, int(body["time_ms"]), tuple(map(_part, body["parts"])))

    def decide(self, begun: Begun, status: Status, versions: Mapping[str, int]) -> Decision:
        """Writes the decision if it is missing, and returns it.

        Raises:
            StorageError: if it is not known whether a decision was written.
        """
        path = _path(begun.publication)
        body = {
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
        body = self._read(_path(publication))
        if body is None:
            return None
        with _named(_path(publication)):
            return Decision(publication, Status(body["status"]), tuple(map(_decided, body["tables"])))

    def forget_beginning(self, publication: int) -> None:
        """Deletes the document of the beginning, which the decision replaces."""
        self.store.delete(_begun_path(publication))

    def _read(self, path: str) -> dict[str, Any] | None:
        try:
            data = self.store.read(path, DOCUMENT_BYTES)
        except ObjectMissing:
            return None
        with _named(path):
            body: dict[str, Any] = foreign_json.loads(data)
            return body


def _part(body: Mapping[str, Any]) -> Part:
    return Part(**{**body, "location": _inside(body["location"]), "paths": tuple(body["paths"])})


def _inside(location: str) -> str:
    """Returns a folder; raises ValueError if it may be outside of the database: anyone who may write can write this."""
    if not all(name and name not in (".", "..") for name in location.split("/")) or "\\" in location:
        raise ValueError(f"the location {location!r} is not a folder of the database")
    return location


def _decided(body: Mapping[str, Any]) -> DecidedTable:
    version = body.get("version")
    return DecidedTable(
        body["table"],
        _inside(body["location"]),
        body["tableId"],
        int(body["base"]),
        None if version is None else int(version),
    )


@contextlib.contextmanager
def _named(path: str) -> Iterator[None]:
    """Raises CorruptLogError with the path of a document that cannot be read."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptLogError(f"{path} cannot be read ({error!r})") from error


def _path(publication: int) -> str:
    return f"{FOLDER}/{publication}.json"


def _begun_path(publication: int) -> str:
    return f"{FOLDER}/{publication}.begun.json"


def _text(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
