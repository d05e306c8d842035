"""The statements of a run that are to run after its publication; they are kept with the run's branch until they have.

    _branches/<id>/<digest of the owner>.later.json   the statements of a node or hook that have not run yet

A process that is killed between a statement and the record that it has run leaves the statement to the next process.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dbt.adapters.silt.engine.catalog.branches.attempts import FOLDER, documents, parsed
from dbt.adapters.silt.engine.catalog.names.documents import file_name
from dbt.adapters.silt.engine.kernel.storage.store import ObjectMissing, Store
from dbt.adapters.silt.engine.kernel.table.json_fields import FORMAT

SUFFIX: Final = ".later.json"


@dataclass(frozen=True)
class LaterStatement:
    """A statement that runs after the publication.

    Attributes:
        text: one statement of SQL.
        app_id: the application id under which a table that it changes records it.
        is_stored: whether it was read from the warehouse, where another user may have written it.
    """

    text: str
    app_id: str
    is_stored: bool = field(default=False, compare=False)


def statement_of_run(run_id: str) -> str:
    """Returns the words of messages for a statement that a run has left."""
    return f"a statement of the run {run_id}"


def advice_on_rest(run_id: str) -> str:
    """Returns what to do with the statements of a published run after one of them has failed."""
    return f"run the rest: silt publish {run_id}, or drop the rest: silt drop-run {run_id}"


@dataclass(frozen=True)
class _Document:
    """The statements of a node or hook; `number` orders the documents of a branch."""

    owner: str
    number: int
    statements: tuple[LaterStatement, ...]


class LaterStatements:
    """The statements that are to run after the publication of a branch. Thread-safe.

    Args:
        store: the store of the database.
        branch_id: the id of the branch.
    """

    def __init__(self, store: Store, branch_id: str) -> None:
        self._store = store
        self._folder = f"{FOLDER}/{branch_id}"
        self._lock = threading.Lock()
        self._known: dict[str, _Document] | None = None
        self._begun: set[str] = set()

    def __len__(self) -> int:
        """The number of statements that have not run yet. Raises as `begin`."""
        with self._lock:
            return sum(len(each.statements) for each in self._documents().values())

    def begin(self, owner: str) -> None:
        """Drops the statements that an earlier process has added for a node or hook, at the first call for it.

        Raises:
            CorruptLogError: if the documents cannot be read.
            StorageError: if the storage failed.
        """
        with self._lock:
            if owner not in self._begun:
                self._begun.add(owner)
                known = self._documents().get(owner)
                if known is not None:
                    self._put(_Document(owner, known.number, ()))

    def add(self, owner: str, statements: Sequence[LaterStatement]) -> None:
        """Adds statements of a node or hook; a statement that it has added before is added once. Raises as `begin`."""
        self.begin(owner)
        with self._lock:
            known = self._documents()
            last = max((each.number for each in known.values()), default=0)
            own = known.get(owner, _Document(owner, last + 1, ()))
            both = tuple(dict.fromkeys((*own.statements, *statements)))
            self._put(_Document(owner, own.number, both))

    def read_others(self) -> None:
        """Reads the statements that other processes have added since this process has read them. Raises as `begin`."""
        with self._lock:
            own, self._known = self._documents(), None
            known = self._documents()
            known.update((owner, each) for owner, each in own.items() if owner in self._begun)

    def forget_others(self, owners: Container[str]) -> None:
        """Drops the statements of nodes and hooks that are not among `owners`. Raises as `begin`."""
        with self._lock:
            for each in self._in_order():
                if each.owner not in owners:
                    self._put(_Document(each.owner, each.number, ()))

    def run(self, carry_out: Callable[[LaterStatement], None]) -> int:
        """Runs the statements in the order of their addition, deletes each once it has run, and returns how many ran.

        Raises:
            CorruptLogError, StorageError: as `begin`.
            Exception: of `carry_out`; the statement and the rest are kept.
        """
        done = 0
        with self._lock:
            for document in self._in_order():
                left = document.statements
                while left:
                    carry_out(left[0])
                    left = left[1:]
                    self._put(_Document(document.owner, document.number, left))
                    done += 1
        return done

    def copy(self, other: LaterStatements) -> None:
        """Adds the statements to another branch. Raises as `begin`."""
        with self._lock:
            for each in self._in_order():
                other._put(each)

    def forget(self) -> int:
        """Forgets all statements without running them; returns their number. Raises as `begin`."""
        return self.run(lambda _: None)

    def _put(self, document: _Document) -> None:
        known = self._documents()
        path = self._path(document.owner)
        if not document.statements:
            self._store.delete(path)
            known.pop(document.owner, None)
            return
        statements = [[each.text, each.app_id] for each in document.statements]
        body = {"format": FORMAT, "owner": document.owner, "number": document.number, "statements": statements}
        self._store.make_folder(self._folder)
        self._store.put(path, json.dumps(body, ensure_ascii=False).encode())
        known[document.owner] = document

    def _path(self, owner: str) -> str:
        return f"{self._folder}/{file_name(owner)}{SUFFIX}"

    def _in_order(self) -> list[_Document]:
        return sorted(self._documents().values(), key=lambda each: (each.number, each.owner))

    def _documents(self) -> dict[str, _Document]:
        """Returns the documents by their owners; read once."""
        if self._known is None:
            found = [self._read(path) for path in documents(self._store, self._folder) if path.endswith(SUFFIX)]
            self._known = {each.owner: each for each in found if each is not None}
        return self._known

    def _read(self, path: str) -> _Document | None:
        """Returns the document; None if another process has deleted it."""
        try:
            return parsed(self._store, path, _document)
        except ObjectMissing:
            return None


def _document(body: Any) -> _Document:
    statements = tuple(LaterStatement(str(text), str(app_id), is_stored=True) for text, app_id in body["statements"])
    return _Document(str(body["owner"]), int(body["number"]), statements)
