"""A branch of a database: a line of its tables and names that only programs which know the branch's id read and write.

    _branches/<id>/names.json                   the names that the branch has changed
    _branches/<id>/<table's folder>/base.json   the version of the table at which the branch begins
    _branches/<id>/<table's folder>/<n>.json    the commits of the branch, numbered as in the table's log

Data files of a branch are in the table's folder, so publishing the branch moves no file.
"""

from __future__ import annotations

import contextlib
import json
import logging
import threading
from collections.abc import Callable
from typing import Any, Final, TypeAlias, TypeVar

from dbt.adapters.silt.engine.catalog.names import RelationName
from dbt.adapters.silt.engine.kernel import foreign_json
from dbt.adapters.silt.engine.kernel.clock import Clock
from dbt.adapters.silt.engine.kernel.errors import CorruptLogError, SiltError, VersionNotFoundError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.publication.branch_changes import needed_files, new_files
from dbt.adapters.silt.engine.kernel.publication.documents import (
    Kind,
    Meaning,
    NameChange,
    began_ms,
    new_publication,
    parse_change,
    serialize_change,
)
from dbt.adapters.silt.engine.kernel.publication.publications import Publications
from dbt.adapters.silt.engine.kernel.publication.publish import Txn, publish
from dbt.adapters.silt.engine.kernel.storage.store import DOCUMENT_BYTES, ObjectMissing, Store
from dbt.adapters.silt.engine.kernel.transaction.branch_log import BASE, BranchLog
from dbt.adapters.silt.engine.kernel.transaction.changes import ReadSet

T = TypeVar("T")

_logger = logging.getLogger(__name__)

FOLDER: Final = "_branches"
_NAMES: Final = "names.json"
_Key: TypeAlias = tuple[str, str, bool]
"""The schema and the name of a relation or function, and whether it is a function."""
_AGE_MS: Final = 7 * 24 * 60 * 60 * 1000
"""The age at which the commits of a branch that nothing has published are deleted, in milliseconds."""


class Branch:
    """A branch of a database. Thread-safe.

    Args:
        register: the publications of the database.
        branch_id: the id of an existing branch; by default a new branch, which exists from its first use on.
    """

    def __init__(self, register: Publications, branch_id: str | None = None) -> None:
        self.id = branch_id or str(new_publication(register.clock))
        self._register = register
        self._logs: dict[str, BranchLog] = {}
        self._names: dict[_Key, NameChange] = {}
        self._lock = threading.RLock()
        if branch_id is not None:
            self._reopen()

    def log(self, main: DeltaLog) -> BranchLog:
        """Returns the log of a table on the branch."""
        location = self._register.location_of(main)
        with self._lock:
            if location not in self._logs:
                folder = self._register.store.child(f"{FOLDER}/{self.id}/{location}")
                self._logs[location] = BranchLog(main, folder)
            return self._logs[location]

    def new_log(self, main: DeltaLog) -> BranchLog:
        """Returns the log of a table that the branch creates.

        Args:
            main: the table, without a log.
        """
        log = self.log(main)
        log.create()
        return log

    def created(self, name: RelationName, meaning: Meaning) -> BranchLog:
        """Returns the log of a table that the branch has created."""
        with self._lock:
            known = self._logs.get(meaning.text)
        return known or self.log(self._register.log_at(meaning.text, str(name)))

    def location_of(self, log: BranchLog) -> str:
        """Returns the folder of a table, relative to the database's root."""
        return self._register.location_of(log.main)

    def remove(self, log: BranchLog) -> None:
        """Removes a table that the branch has created, and its data files.

        Raises:
            StorageError: if the storage failed.
        """
        location = self.location_of(log)
        log.store.delete_all(new_files(log))
        with self._lock:
            self._logs.pop(location, None)
            self._register.store.delete_folder(f"{FOLDER}/{self.id}/{location}")

    def change_of(self, name: RelationName, is_function: bool = False) -> NameChange | None:
        """Returns the change of a name on the branch, if the branch has changed it."""
        return self._names.get((name.schema, name.identifier, is_function))

    def changes_in(self, schema: str, is_function: bool = False) -> list[NameChange]:
        """Returns the changes of the names of a schema on the branch."""
        return [change for key, change in self._names.items() if (key[0], key[2]) == (schema, is_function)]

    def change(self, change: NameChange) -> None:
        """Changes a name on the branch. Its meaning before is the meaning outside of the branch.

        Raises:
            StorageError: if the storage failed; the name is not changed.
        """
        key = (change.schema, change.name, change.is_function)
        with self._lock:
            names = {each: self._names[each] for each in self._names if each != key}
            if change.before != change.after:
                names[key] = change
            folder = f"{FOLDER}/{self.id}"
            self._register.store.make_folder(folder)
            body = [serialize_change(each) for each in names.values()]
            self._register.store.put(f"{folder}/{_NAMES}", json.dumps(body, ensure_ascii=False).encode())
            self._names = names

    def publish(self, txn: Txn = None) -> dict[str, int]:
        """Publishes the changes of the branch, and deletes it; returns the new versions, by the tables' names.

        Raises:
            SiltError: see `publish`; the branch exists until `discard`.
        """
        versions = publish(self._register, self._used(), txn, tuple(self._names.values()))
        self._delete()
        return versions

    def discard(self) -> None:
        """Deletes the branch, its data files and definitions; a failure leaves data files for VACUUM."""
        for log in self._used():
            try:
                log.store.delete_all(new_files(log))
            except SiltError as error:
                _logger.warning("%s: data files that nothing uses are left: %s", log.name, error)
        for change in self._names.values():
            if change.after is not None and change.after.kind is not Kind.TABLE:
                self._register.names.forget(change.after)
        self._delete()

    def _reopen(self) -> None:
        """Opens the tables and names that other processes have used on the branch; all rows of the tables count as
        read.
        """
        folder = f"{FOLDER}/{self.id}"
        for path in (file.path for file in self._register.store.files_below(folder)):
            location = path.removeprefix(f"{folder}/").removesuffix(f"/{BASE}")
            if path == f"{folder}/{_NAMES}":
                changes = self._parsed(path, lambda body: [parse_change(each) for each in body])
                self._names = {(each.schema, each.name, each.is_function): each for each in changes}
            elif path.endswith(f"/{BASE}"):
                log = self.log(self._register.log_at(location, self._parsed(path, lambda body: str(body["table"]))))
                log.base()
                log.note(ReadSet(whole_table=True))

    def _parsed(self, path: str, parse: Callable[[Any], T]) -> T:
        """Returns the value in a document of the branch.

        Raises:
            CorruptLogError: if it cannot be read.
        """
        try:
            return parse(foreign_json.loads(self._register.store.read(path, DOCUMENT_BYTES)))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CorruptLogError(f"{path} cannot be read ({error!r})") from error

    def _used(self) -> list[BranchLog]:
        with self._lock:
            return [log for log in self._logs.values() if log.is_used]

    def _delete(self) -> None:
        with self._lock:
            self._logs.clear()
            self._names = {}
        try:
            self._register.store.delete_folder(f"{FOLDER}/{self.id}")
        except SiltError as error:
            _logger.warning("the commits of the branch %s are left: %s", self.id, error)


def held_files(register: Publications, log: DeltaLog) -> dict[str, set[str]]:
    """Returns the files of a table that branches need, by the branch's id; see `needed_files`.

    Args:
        register: the publications of the table's database.
        log: the table.

    Raises:
        TableDamagedError: if a branch cannot be read.
        StorageError: if the storage failed.
    """
    held, location = {}, register.location_of(log)
    for branch_id, is_old in _branches(register.store, register.clock):
        folder = f"{FOLDER}/{branch_id}/{location}"
        if is_old or register.store.status(f"{folder}/{BASE}") is None:
            continue
        with contextlib.suppress(VersionNotFoundError):  # its base was cleaned up, so it can no longer be published
            held[branch_id] = needed_files(BranchLog(log, register.store.child(folder)))
    return held


def delete_old_branches(store: Store, clock: Clock) -> None:
    """Deletes the commits of branches that programs left long ago; their data files are left for VACUUM.

    Raises:
        StorageError: if the storage failed.
    """
    for branch_id, is_old in _branches(store, clock):
        if is_old:
            store.delete_folder(f"{FOLDER}/{branch_id}")


def _branches(store: Store, clock: Clock) -> list[tuple[str, bool]]:
    """Returns the ids of the branches, and whether each is too old to be published."""
    try:
        names = store.list_folders(FOLDER)
    except ObjectMissing:
        return []
    oldest_ms = clock.now_ms() - _AGE_MS
    return [(name, began_ms(int(name)) < oldest_ms) for name in names if name.isascii() and name.isdigit()]
