"""A branch of a database: a line of its tables and names that only programs which know the branch's id read and write.

    _branches/<id>/<digest>.name.json           a name that the branch has changed
    _branches/<id>/<n>.attempt.json             the n-th attempt to publish the branch, or its end
    _branches/<id>/<id of a session>.joined     a session that works on the branch next to the process of its run
    _branches/<id>/<table's folder>/base.json   the version of the table at which the branch begins
    _branches/<id>/<table's folder>/<n>.json    the commits of the branch, numbered as in the table's log

Data files of a branch are in the table's folder, so publishing the branch moves no file.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import threading
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias, TypeVar, cast

from dbt.adapters.silt.engine.catalog.database import BranchNames
from dbt.adapters.silt.engine.catalog.names import RelationName, name_parts
from dbt.adapters.silt.engine.kernel import foreign_json
from dbt.adapters.silt.engine.kernel.clock import Clock
from dbt.adapters.silt.engine.kernel.errors import (
    ConcurrentDropError,
    ConcurrentModificationError,
    CorruptLogError,
    NotATableError,
    SiltError,
    VersionNotFoundError,
)
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.publication.branch_changes import commits_on, needed_files, new_files
from dbt.adapters.silt.engine.kernel.publication.documents import (
    Kind,
    Meaning,
    NameChange,
    Status,
    began_ms,
    new_publication,
    parse_change,
    serialize_change,
)
from dbt.adapters.silt.engine.kernel.publication.publications import Publications
from dbt.adapters.silt.engine.kernel.publication.publish import OF_STATEMENTS, PublishSettings, Txn, publish
from dbt.adapters.silt.engine.kernel.storage.store import DOCUMENT_BYTES, ObjectMissing, PutResult, Store
from dbt.adapters.silt.engine.kernel.transaction.branch_log import BASE, BranchLog
from dbt.adapters.silt.engine.kernel.transaction.changes import DROPPED_PROPERTY, ReadSet

T = TypeVar("T")

_logger = logging.getLogger(__name__)

FOLDER: Final = "_branches"
_NAME: Final = ".name.json"
_ATTEMPT: Final = ".attempt.json"
_JOINED: Final = ".joined"
_Key: TypeAlias = tuple[str, str, bool]
"""The schema and the name of a relation or function, and whether it is a function."""
_LONGEST_ID: Final = 19
_AGE_MS: Final = 7 * 24 * 60 * 60 * 1000
"""The age at which the commits of a branch that nothing has published are deleted, in milliseconds."""


class _Joined(Exception):
    """Another session works on the branch, so its documents must be read again: no session begins a change any more."""


class Branch:
    """A branch of a database. Thread-safe.

    Args:
        register: the publications of the database.
        branch_id: the id of an existing branch, to be opened by `reopen`; by default a new branch, which exists from
            its first use on.
    """

    def __init__(self, register: Publications, branch_id: str | None = None) -> None:
        self.id = branch_id or str(new_publication(register.clock))
        self._register = register
        self._logs: dict[str, BranchLog] = {}
        self._names: dict[_Key, NameChange] = {}
        self._superseded: list[Meaning] = []
        self._attempts = 0
        self._is_read_again = False
        self._lock = threading.RLock()

    def log(self, main: DeltaLog) -> BranchLog:
        """Returns the log of a table on the branch."""
        location = self._register.location_of(main)
        with self._lock:
            if location not in self._logs:
                folder = self._register.store.child(f"{self._folder}/{location}")
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
            self._register.store.delete_folder(f"{self._folder}/{location}")

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
        key = _key(change)
        path = f"{self._folder}/{hashlib.sha256(repr(key).encode()).hexdigest()[:32]}{_NAME}"
        body = json.dumps(serialize_change(change), ensure_ascii=False).encode()
        with self._lock:
            self._register.store.make_folder(self._folder)
            self._register.store.put(path, body)
            known = self._names.get(key)
            if known is not None and known.after is not None and known.after not in (change.before, change.after):
                self._superseded.append(known.after)
            self._note(change)

    def publish(self, txn: Txn = None) -> dict[str, int]:
        """Publishes the changes of the branch, and deletes it; returns the new versions, by the tables' names.

        Raises:
            SiltError: see `publish`; the branch exists until `discard`.
        """
        versions = self._published(PublishSettings(txn))
        self._delete()
        return versions

    def publish_once(self) -> dict[str, int]:
        """Publishes the changes of a branch that other processes may continue or publish too, and closes it; returns
        the new versions, by the tables' names.

        Tables that the branch has only read are not checked, and each changed table has its own isolation level.

        Raises:
            ConcurrentModificationError: if another process has published or closed the branch, or also as for
                `publish`; nothing was applied.
            SiltError: see `publish`; the branch exists until `close`.
        """
        settings = PublishSettings(None, OF_STATEMENTS, self._announce)
        try:
            before, versions = self._attempts, self._published(settings)
            if self._attempts == before:  # this process has changed nothing
                self._announce(new_publication(self._register.clock))
        except _Joined:
            versions = self.reopen()._published(settings)
        self._delete(but_attempts=True)
        return versions

    def join(self) -> Branch:
        """Opens the branch for a session that works on it next to the process of its run.

        Raises:
            ConcurrentModificationError: if the branch is being published, or was published or closed.
            CorruptLogError, StorageError: as `reopen`.
        """
        # The publisher records its attempt and then looks for sessions; a session does so in the other order.
        self._register.store.make_folder(self._folder)
        self._register.store.put(f"{self._folder}/{self._register.clock.new_id()}{_JOINED}", b"{}")
        self.check_open()
        return self.reopen()

    def check_open(self) -> None:
        """Checks that no attempt to publish or close the branch is recorded, except attempts that were aborted.

        Raises:
            ConcurrentModificationError: if the branch is being published, or was published or closed.
            CorruptLogError, StorageError: if its documents cannot be read.
        """
        found = [self._parsed(path, _publication) for path in self._documents() if path.endswith(_ATTEMPT)]
        decisions = [self._register.documents.decision(each) for each in found if each is not None]
        if None in found:
            end = "was published or dropped"
        elif any(each is not None and each.status is Status.PUBLISHED for each in decisions):
            end = "was published"
        elif None in decisions:
            end = "is being published, or its process has ended while it published"
        elif is_too_old(self.id, self._register.clock):
            end = "is too old to be published"
        else:
            return
        raise ConcurrentModificationError(
            f"the run on whose branch this session works {end}", remedy="Run `reset silt.branch` to leave the run"
        )

    def was_published(self) -> bool:
        """Ends all attempts to publish the branch; returns whether an attempt was published, or the branch is closed.

        Raises:
            CorruptLogError: if its documents cannot be read.
            StorageError: if the storage failed.
        """
        attempts = [path for path in self._documents() if path.endswith(_ATTEMPT)]
        self._attempts = len(attempts)
        found = [self._parsed(path, _publication) for path in attempts]
        return any(each is None or self._register.close(each) for each in found)

    def is_visible(self) -> bool:
        """Returns whether an attempt to publish the branch was published; ends all attempts. Raises as
        `was_published`.
        """
        paths = [path for path in self._documents() if path.endswith(_ATTEMPT)]
        found = [self._parsed(path, _publication) for path in paths]
        return any(each is not None and self._register.close(each) for each in found)

    def close(self) -> None:
        """Ends a branch that other processes may be continuing, and deletes its data files and definitions; it can
        never be published.

        Raises:
            ConcurrentModificationError: if another process is publishing it.
            CorruptLogError: if its documents cannot be read.
            StorageError: if the storage failed.
        """
        self._announce(None)
        self._delete_files()
        self._delete(but_attempts=True)

    def discard(self) -> None:
        """Deletes the branch, its data files and definitions; a failure leaves data files for VACUUM."""
        self._delete_files()
        self._delete()

    @property
    def _folder(self) -> str:
        return f"{FOLDER}/{self.id}"

    def _published(self, settings: PublishSettings) -> dict[str, int]:
        versions = publish(self._register, self._used(), tuple(self._names.values()), settings)
        self._forget(self._superseded)
        return versions

    def _forget(self, meanings: Iterable[Meaning]) -> None:
        """Deletes definitions to which no name refers. Not earlier: another process may publish the same branch."""
        try:
            for each in meanings:
                if each.kind is not Kind.TABLE:
                    self._register.names.forget(each)
        except SiltError as error:
            _logger.warning("definitions of the branch %s are left: %s", self.id, error)

    def _announce(self, publication: int | None) -> None:
        """Records the next attempt to publish the branch, or its end; each number exists once.

        Raises:
            ConcurrentModificationError: if another process has recorded it.
        """
        number = self._attempts + 1
        body = json.dumps({"publication": None if publication is None else str(publication)}).encode()
        self._register.store.make_folder(self._folder)
        if self._register.store.put_if_absent(f"{self._folder}/{number}{_ATTEMPT}", body) is PutResult.EXISTS:
            raise ConcurrentModificationError("another process has published, continued or dropped these changes")
        self._attempts = number
        if publication is not None and not self._is_read_again:
            self._is_read_again = any(path.endswith(_JOINED) for path in self._documents())
            if self._is_read_again:
                raise _Joined

    def _delete_files(self) -> None:
        for log in self._used():
            try:
                log.store.delete_all(new_files(log))
            except SiltError as error:
                _logger.warning("%s: data files that nothing uses are left: %s", log.name, error)
        self._forget([*self._superseded, *(each.after for each in self._names.values() if each.after is not None)])

    def reopen(self, leaves_lost: bool = False) -> Branch:
        """Opens the tables and names that other processes have used on the branch; all rows of the tables count as
        read.

        Args:
            leaves_lost: whether changed tables that no longer exist are left out.

        Raises:
            ConcurrentDropError: if a changed table no longer exists, or no longer has the version of its base.
            CorruptLogError, StorageError: if the branch cannot be read.
        """
        for path in self._documents():
            if path.endswith(_NAME):
                self._note(self._parsed(path, parse_change))
        for path in (file.path for file in self._register.store.files_below(self._folder)):
            if path.endswith(f"/{BASE}"):
                location = path.removeprefix(f"{self._folder}/").removesuffix(f"/{BASE}")
                self._reopen_table(location, self._parsed(path, lambda body: str(body["table"])), leaves_lost)
        self._complete_names()
        return self

    def _reopen_table(self, location: str, table: str, leaves_lost: bool) -> None:
        log = self.log(self._register.log_at(location, table))
        try:
            log.base()
            log.note(ReadSet(whole_table=True))
        except (NotATableError, VersionNotFoundError) as error:
            files = self._register.store.files_below(f"{self._folder}/{location}")
            if len(files) > 1 and not leaves_lost:
                raise ConcurrentDropError(
                    "the version that the run has changed no longer exists",
                    table=table,
                    remedy="Drop the run (`silt drop-run`), and run it again",
                ) from error
            del self._logs[location]

    def _complete_names(self) -> None:
        """Changes the names of the tables that another process has created or dropped on the branch, if that process
        has not changed them yet.
        """
        named = {each.after.text for each in self._names.values() if each.after and each.after.kind is Kind.TABLE}
        for location, log in self._logs.items():
            if location in named or not commits_on(log):
                continue
            is_dropped = DROPPED_PROPERTY in log.snapshot().metadata.configuration
            if is_dropped or log.base() is None:
                self._complete_name(log, None if is_dropped else Meaning(Kind.TABLE, location))

    def _complete_name(self, log: BranchLog, after: Meaning | None) -> None:
        name = RelationName(*name_parts(log.name))
        if self.change_of(name) is None:
            before = cast(BranchNames, self._register.names).meaning(name, is_function=False)
            self._note(NameChange(name.schema, name.identifier, before, after))

    def _documents(self) -> list[str]:
        """Returns the paths of the branch's own documents."""
        try:
            return [each.path for each in self._register.store.files_in_order(self._folder)]
        except ObjectMissing:
            return []

    def _note(self, change: NameChange) -> None:
        key = _key(change)
        names = {each: self._names[each] for each in self._names if each != key}
        self._names = names if change.before == change.after else {**names, key: change}

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

    def _delete(self, but_attempts: bool = False) -> None:
        """Deletes the branch, or all of it except the record of the attempts to publish it."""
        with self._lock:
            self._logs.clear()
            self._names = {}
        store = self._register.store
        try:
            if not but_attempts:
                store.delete_folder(self._folder)
                return
            store.delete_all([path for path in self._documents() if path.endswith((_NAME, _JOINED))])
            for name in _folders(store, self._folder):
                store.delete_folder(f"{self._folder}/{name}")
        except SiltError as error:
            _logger.warning("the commits of the branch %s are left: %s", self.id, error)


def _key(change: NameChange) -> _Key:
    return change.schema, change.name, change.is_function


def _publication(body: Any) -> int | None:
    """Returns the publication of a recorded attempt, or None if it closed the branch."""
    return None if body["publication"] is None else int(body["publication"])


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
    return [(name, is_too_old(name, clock)) for name in _folders(store, FOLDER) if is_branch_id(name)]


def _folders(store: Store, folder: str) -> list[str]:
    try:
        return store.list_folders(folder)
    except ObjectMissing:
        return []


def is_branch_id(text: str) -> bool:
    """Returns whether a text can be the id of a branch."""
    return text.isascii() and text.isdigit() and len(text) <= _LONGEST_ID


def is_too_old(branch_id: str, clock: Clock) -> bool:
    """Returns whether a branch is too old to be published."""
    return began_ms(int(branch_id)) < clock.now_ms() - _AGE_MS
