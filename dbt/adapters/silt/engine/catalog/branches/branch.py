"""A branch of a database: a line of its tables and names that only programs which know the branch's id read and write.

    _branches/<id>/<digest>.name.json           a name that the branch has changed
    _branches/<id>/<digest>.schema.json         a schema that the branch drops with all its names
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
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any, Final, TypeAlias, cast

from dbt.adapters.silt.engine.catalog.branches import attempts as branch_attempts
from dbt.adapters.silt.engine.catalog.branches import named_documents
from dbt.adapters.silt.engine.catalog.branches.conflicts import (
    BranchChange,
    Lookups,
    Relation,
    changes_of,
    check_lookups,
    conflicts,
    definitions_of,
    outdated,
    relation_of,
)
from dbt.adapters.silt.engine.catalog.branches.run_nodes import NODES
from dbt.adapters.silt.engine.catalog.names.database import BranchNames
from dbt.adapters.silt.engine.catalog.names.documents import file_name
from dbt.adapters.silt.engine.catalog.names.log_end import is_last
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName, full_name, is_identifier
from dbt.adapters.silt.engine.kernel.errors import (
    ConcurrentDropError,
    ConcurrentModificationError,
    InvalidNameError,
    NotATableError,
    SiltError,
    VersionNotFoundError,
)
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.publication.branch_changes import commits_on, new_files
from dbt.adapters.silt.engine.kernel.publication.documents import (
    Kind,
    Meaning,
    NameChange,
    Status,
    new_publication,
    parse_change,
    serialize_change,
)
from dbt.adapters.silt.engine.kernel.publication.publications import Publications
from dbt.adapters.silt.engine.kernel.publication.publish import (
    OF_STATEMENTS,
    OF_TRANSACTIONS,
    Isolation,
    PublishSettings,
    Txn,
    publish,
)
from dbt.adapters.silt.engine.kernel.storage.store import ObjectMissing
from dbt.adapters.silt.engine.kernel.table.json_fields import FORMAT
from dbt.adapters.silt.engine.kernel.table.paths import commit_path
from dbt.adapters.silt.engine.kernel.transaction.branch_log import BASE, BranchLog
from dbt.adapters.silt.engine.kernel.transaction.changes import ReadSet

_logger = logging.getLogger(__name__)

_NAME: Final = ".name.json"
_SCHEMA: Final = ".schema.json"
_SHOWN_COMMITS: Final = 5
_OF_WORK: Final = (_NAME, _SCHEMA, NODES, branch_attempts.JOINED, branch_attempts.COMMAND, branch_attempts.SIGN)
_Key: TypeAlias = tuple[str, str, bool]
"""The schema and the name of a relation or function, and whether it is a function."""


class Branch:
    """A branch of a database. Thread-safe.

    Args:
        register: the publications of the database.
        branch_id: the id of an existing branch, to be opened by `reopen`; by default a new branch, which exists from
            its first use on.
        named: the named branch that it is, if it has a name.

    Attributes:
        attempts: the attempts to publish it, and its end.
    """

    def __init__(
        self, register: Publications, branch_id: str | None = None, named: named_documents.NamedBranch | None = None
    ) -> None:
        self.id = branch_id or str(new_publication(register.clock))
        self._register = register
        self._is_lasting = branch_id is not None
        self._logs: dict[str, BranchLog] = {}
        self._names: dict[_Key, NameChange] = {}
        self._dropped_schemas: dict[str, bool] = {}
        self._superseded: list[Meaning] = []
        self._looked_up: Lookups = {}
        self.named = named
        self.attempts = branch_attempts.BranchAttempts(register, self.id, named)
        self._lock = threading.RLock()

    def log(self, main: DeltaLog) -> BranchLog:
        """Returns the log of a table on the branch."""
        location = self._register.location_of(main)
        with self._lock:
            if location not in self._logs:
                folder = self._register.store.child(f"{self._folder}/{location}")
                cut = (
                    None
                    if self.named is None
                    else partial(named_documents.version_at, self._register, self.named.cut_ms)
                )
                self._logs[location] = BranchLog(main, folder, self._is_lasting, cut)
            return self._logs[location]

    def hides(self, main: DeltaLog) -> bool:
        """Returns whether a table was created after the branch began, and so does not exist on it.

        Raises:
            StorageError: if the storage failed.
        """
        if self.named is None:
            return False
        first = main.store.status(commit_path(0))  # it is missing if the log was cleaned up
        return first is not None and first.modified_ms > self.named.cut_ms

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
        path = f"{self._folder}/{file_name(repr(key))}{_NAME}"
        body = json.dumps({"format": FORMAT, **serialize_change(change)}, ensure_ascii=False).encode()
        with self._lock:
            self._register.store.make_folder(self._folder)
            self._register.store.put(path, body)
            known = self._names.get(key)
            if known is not None and known.after is not None and known.after not in (change.before, change.after):
                self._superseded.append(known.after)
            self._note(change)

    def note_lookup(self, name: RelationName, present: NameChange) -> None:
        """Notes that a statement did nothing because a name exists or is missing, which a transaction has then read."""
        if present.before == present.after:
            self._looked_up.setdefault((name, present.is_function), present.before)

    def drops_schema(self, schema: str) -> bool:
        """Returns whether the branch has dropped a schema."""
        return schema in self._dropped_schemas

    def drop_schema(self, schema: str, cascade: bool) -> None:
        """Drops a schema whose names the branch has dropped; outside of the branch, when it is published and the schema
        is then empty.

        Args:
            cascade: whether files that belong to no relation are deleted too.

        Raises:
            StorageError: if the storage failed; the schema is not dropped.
        """
        body = json.dumps({"format": FORMAT, "schema": schema, "cascade": cascade}).encode()
        with self._lock:
            self._register.store.make_folder(self._folder)
            self._register.store.put(self._schema_path(schema), body)
            self._dropped_schemas = {**self._dropped_schemas, schema: cascade}

    def keep_schema(self, schema: str) -> None:
        """Takes back that the branch has dropped a schema.

        Raises:
            StorageError: if the storage failed; the schema is still dropped.
        """
        with self._lock:
            self._register.store.delete(self._schema_path(schema))
            self._dropped_schemas = {each: how for each, how in self._dropped_schemas.items() if each != schema}

    def publish(self, txn: Txn = None, isolation: Isolation = OF_TRANSACTIONS) -> dict[str, int]:
        """Publishes the changes of the branch, and deletes it; returns the new versions, by the tables' names.

        Args:
            isolation: the checks of the branch's reads.

        Raises:
            SiltError: see `publish`; the branch exists until `discard`.
        """
        if self._looked_up and (self._names or changes_of(self._used_logs())):
            check_lookups(self._register, self._looked_up)
        versions = self._published(PublishSettings(txn, isolation))
        self._delete()
        return versions

    def publish_once(self, check: Callable[[], None] = lambda: None) -> dict[str, int]:
        """Publishes the changes of a branch that other processes may continue or publish too, and closes it; returns
        the new versions, by the tables' names.

        Tables that the branch has only read are not checked, and each changed table has its own isolation level.

        Args:
            check: called when an attempt is recorded and has not begun; its exception is passed on.

        Raises:
            ConcurrentModificationError: if another process has published or closed the branch, or also as for
                `publish`; nothing was applied.
            SiltError: see `publish`; the branch exists until `close`.
        """

        def announce(publication: int) -> None:
            self.attempts.announce(publication)
            check()

        settings = PublishSettings(None, OF_STATEMENTS, announce)
        try:
            versions = self._published_or_empty(settings, announce)
        except branch_attempts.Joined:
            versions = self.reopen()._published_or_empty(settings, announce)
        self._delete(but_attempts=True)
        return versions

    def _published_or_empty(self, settings: PublishSettings, announce: Callable[[int], None]) -> dict[str, int]:
        before, versions = self.attempts.number, self._published(settings)
        if self.attempts.number == before:  # nothing was changed
            self._publish_nothing(announce)
        return versions

    def _publish_nothing(self, announce: Callable[[int], None]) -> None:
        publication = new_publication(self._register.clock)
        announce(publication)
        if not self._register.close(publication, Status.PUBLISHED):
            raise ConcurrentModificationError("another process has continued these changes")

    def join(self) -> Branch:
        """Opens the branch for a session that works on it next to the process of its run.

        Raises:
            ConcurrentModificationError: if the branch is being published, or was published or closed.
            CorruptLogError, StorageError: as `reopen`.
        """
        self.attempts.note_session()
        return self.reopen()

    def conflicts(self, database: str) -> dict[Relation, str]:
        """Returns the relations that would conflict if `publish_once` were called now, each with the reason.

        Args:
            database: the name of the database.

        Raises:
            SiltError: if the changes cannot be published for another reason, or the storage failed.
        """
        settings = PublishSettings(None, OF_STATEMENTS)
        return conflicts(self._register, self._used_logs(), self._named(database), settings)

    def outdated(self) -> dict[Relation, str]:
        """Returns the tables that another program has changed since this branch began with them, each with the change.

        Raises:
            CorruptLogError, StorageError: if a table cannot be read.
        """
        return outdated(self._register, self._used_logs())

    def changes(self, database: str) -> list[BranchChange]:
        """Returns the tables that the branch has changed, and the views and functions that it has created or replaced.

        Args:
            database: the name of the database.

        Raises:
            CorruptLogError, StorageError: if the branch cannot be read.
        """
        meanings = cast(BranchNames, self._register.names)
        return [*changes_of(self._used_logs()), *definitions_of(meanings, self._named(database))]

    def changed(self, database: str) -> list[str]:
        """Returns the full names of the tables, views and functions that the branch has changed, sorted.

        Raises:
            CorruptLogError, StorageError: if the branch cannot be read.
        """
        return sorted({*self.name_changes(database), *self.tables()})

    def tables(self) -> dict[str, BranchLog]:
        """Returns the tables that the branch has changed or created, by their full names. Raises as `changed`."""
        return {each.name: each for each in self._used_logs() if commits_on(each)}

    def name_changes(self, database: str) -> dict[str, NameChange]:
        """Returns the changes of names on the branch, by the full names of the relations and functions."""
        return {str(name): change for name, change in self._named(database).items()}

    def behind(self) -> dict[str, int]:
        """Returns how many versions tables are ahead of the branch's versions, by their names."""
        found = {}
        for log in self._used_logs():
            if log.base() is not None and log.main.exists():
                found[log.name] = log.main.snapshot().version - log.base_version
        return {name: count for name, count in found.items() if count > 0}

    def commits_since(self, relation: Relation) -> Iterator[str]:
        """Yields the newest commits of a table since the branch began with it: their versions and operations.

        Raises:
            CorruptLogError, StorageError: if its log cannot be read.
        """
        for log in self._used_logs():
            if relation_of(log.name) == relation and log.base() is not None and log.main.exists():
                for commit in islice(log.main.newest_commits(), _SHOWN_COMMITS):
                    if commit.version > log.base_version:
                        yield f"v{commit.version} {commit.info.operation}"

    def state_hash(self) -> str:
        """Returns a hash of all changes on the branch: its commits with their facts, and its names with their code.

        Raises:
            CorruptLogError, StorageError: if the branch cannot be read.
        """
        digest, names = hashlib.sha256(), cast(BranchNames, self._register.names)
        for log in sorted(self._used_logs(), key=lambda each: each.name):
            for commit in commits_on(log):
                digest.update(repr((log.name, log.base_version, commit.version)).encode())
                digest.update(log.store.read(commit_path(commit.version)))
        for key, change in sorted(self._names.items()):
            digest.update(repr((key, serialize_change(change))).encode())
            if change.after is not None and change.after.kind is not Kind.TABLE:
                digest.update(names.document(change.after))
        digest.update(repr(sorted(self._dropped_schemas.items())).encode())
        return digest.hexdigest()

    def changed_names(self, database: str) -> list[RelationName]:
        """Returns the names of the relations that the branch has created, replaced or dropped.

        Args:
            database: the name of the database.
        """
        return [name for name, each in self._named(database).items() if not each.is_function]

    def _named(self, database: str) -> dict[RelationName, NameChange]:
        return {RelationName(database, each.schema, each.name): each for each in self._names.values()}

    def without(self, lost: Collection[Relation]) -> Branch:
        """Begins another branch with the changes of this branch, except the changes of some relations.

        It also reads the tables that this branch has only read at the same versions, except those relations, which it
        reads at their newest versions.

        Raises:
            CorruptLogError, StorageError: if the storage failed; the other branch is then never used.
        """
        other = Branch(self._register, str(new_publication(self._register.clock)))
        other._take_over(self, lost)
        return other

    def _take_over(self, earlier: Branch, lost: Collection[Relation]) -> None:
        for log in earlier._used_logs():
            if relation_of(log.name) not in lost and (log.base() is not None or commits_on(log)):
                self._continue(earlier, log)
        for change in earlier._names.values():
            if (change.schema, change.name) not in lost:
                self.change(change)
        for schema, cascade in earlier._dropped_schemas.items():
            if not any(lost_schema == schema for lost_schema, _ in lost):
                self.drop_schema(schema, cascade)
        self._superseded = list(earlier._superseded)

    def _continue(self, earlier: Branch, log: BranchLog) -> None:
        """Continues a table with the commits of another branch."""
        store, location = self._register.store, self.location_of(log)
        for each in store.files_below(f"{earlier._folder}/{location}"):
            path = f"{self._folder}/{each.path.removeprefix(f'{earlier._folder}/')}"
            store.make_folder(path.rpartition("/")[0])
            store.put(path, store.read(each.path))
        own = self.log(log.main)
        own.base()
        own.note(log.reads)

    def end(self, lost: Collection[Relation], other: Branch) -> None:
        """Ends a branch that `without` has continued on another; deletes the data files of the relations that are not
        on the other.

        Raises:
            ConcurrentModificationError: if another process has published, continued or ended it.
            CorruptLogError, StorageError: if its documents cannot be read or written.
        """
        self.attempts.announce(None)
        if self.attempts.has_sessions():  # each change that a session has made before it sees the end
            other._take_over(self.reopen(), lost)
        self._delete_files(log for log in self._used_logs() if relation_of(log.name) in lost)
        ended = (each for each in self._names.values() if (each.schema, each.name) in lost)
        self._forget(each.after for each in ended if each.after is not None)
        self._delete(but_attempts=True)

    def close(self) -> None:
        """Ends a branch that other processes may be continuing, and deletes its data files and definitions; it can
        never be published.

        Raises:
            ConcurrentModificationError: if another process is publishing it.
            CorruptLogError: if its documents cannot be read.
            StorageError: if the storage failed.
        """
        self.attempts.announce(None)
        self._delete_files(self._used_logs())
        self._forget_definitions()
        self._delete(but_attempts=True)

    def discard(self) -> None:
        """Deletes the branch, its data files and definitions; a failure leaves data files for VACUUM."""
        self._delete_files(self._used_logs())
        self._forget_definitions()
        self._delete()

    @property
    def _folder(self) -> str:
        return f"{branch_attempts.FOLDER}/{self.id}"

    def _published(self, settings: PublishSettings) -> dict[str, int]:
        versions = publish(self._register, self._used_logs(), tuple(self._names.values()), settings)
        self._forget(self._superseded)
        self._drop_schemas()
        return versions

    def _drop_schemas(self) -> None:
        """Drops the empty schemas that the published branch has dropped; a failure leaves them."""
        for schema, cascade in self._dropped_schemas.items():
            try:
                cast(BranchNames, self._register.names).drop_empty_schema(schema, cascade)
            except SiltError as error:
                _logger.warning("the schema %s is empty, and is left: %s", schema, error)

    def _schema_path(self, schema: str) -> str:
        return f"{self._folder}/{file_name(schema)}{_SCHEMA}"

    def _forget(self, meanings: Iterable[Meaning]) -> None:
        """Deletes definitions to which no name refers. Not earlier: another process may publish the same branch."""
        try:
            for each in meanings:
                if each.kind is not Kind.TABLE:
                    self._register.names.forget(each)
        except SiltError as error:
            _logger.warning("definitions of the branch %s are left: %s", self.id, error)

    def _delete_files(self, logs: Iterable[BranchLog]) -> None:
        for log in logs:
            try:
                log.store.delete_all(new_files(log))
            except SiltError as error:
                _logger.warning("%s: data files that nothing uses are left: %s", log.name, error)

    def _forget_definitions(self) -> None:
        self._forget([*self._superseded, *(each.after for each in self._names.values() if each.after is not None)])

    def reopen(self, leaves_lost: bool = False, only: RelationName | None = None) -> Branch:
        """Opens the tables and names that other processes have used on the branch; all rows of the tables count as
        read.

        Args:
            leaves_lost: whether changed tables that no longer exist are left out.
            only: the only table to open, if the branch is opened to read this table.

        Raises:
            ConcurrentDropError: if a changed table no longer exists, or the version of its base was lost, because
                its folder was restored from a copy.
            ConcurrentModificationError: if another process publishes or drops the branch meanwhile.
            CorruptLogError, StorageError: if the branch cannot be read.
        """
        try:
            self._reopen_names()
            self._reopen_tables(leaves_lost, only)
        except ObjectMissing as error:  # deleted since the branch was listed
            raise ConcurrentModificationError("another process has published or dropped these changes") from error
        self._complete_names()
        return self

    def read_names(self) -> None:
        """Reads the names that other processes have changed on a named branch since, before a statement.

        Raises:
            CorruptLogError, StorageError: if they cannot be read.
        """
        if self.named is not None:
            with self._lock, contextlib.suppress(ObjectMissing):
                self._reopen_names()

    def _reopen_names(self) -> None:
        store = self._register.store
        for path in branch_attempts.documents(store, self._folder):
            if path.endswith(_NAME):
                self._note(branch_attempts.parsed(store, path, parse_change))
            if path.endswith(_SCHEMA):
                self._dropped_schemas.update([branch_attempts.parsed(store, path, _dropped_schema)])

    def _reopen_tables(self, leaves_lost: bool, only: RelationName | None) -> None:
        store = self._register.store
        for path in (file.path for file in store.files_below(self._folder)):
            if path.endswith(f"/{BASE}"):
                location = path.removeprefix(f"{self._folder}/").removesuffix(f"/{BASE}")
                table = branch_attempts.parsed(store, path, _table_of)
                if only is None or (table.schema, table.identifier) == (only.schema, only.identifier):
                    self._reopen_table(location, str(table), leaves_lost)

    def _reopen_table(self, location: str, table: str, leaves_lost: bool) -> None:
        log = self.log(self._register.log_at(location, table))
        try:
            log.base()
            # Statements on a named branch are committed one by one: a table has been read by those that change it.
            is_appended = self.named is not None and all(each.info.is_blind_append for each in commits_on(log))
            log.note(ReadSet(whole_table=not is_appended))
        except (NotATableError, VersionNotFoundError) as error:
            files = self._register.store.files_below(f"{self._folder}/{location}")
            if len(files) > 1 and not leaves_lost:
                raise ConcurrentDropError(
                    f"the version that the run has changed no longer exists: {error.problem}",
                    table=table,
                    remedy="Drop the run (`silt drop-run`), and run it again",
                ) from error
            del self._logs[location]

    def _complete_names(self) -> None:
        """Changes the names of the tables that another process has created, dropped or created again on the branch, if
        that process has not changed them yet.
        """
        named = {each.after.text for each in self._names.values() if each.after and each.after.kind is Kind.TABLE}
        for location, log in self._logs.items():
            if location in named or not commits_on(log):
                continue
            is_dropped = is_last(log.snapshot())
            self._complete_name(log, None if is_dropped else Meaning(Kind.TABLE, location))

    def _complete_name(self, log: BranchLog, after: Meaning | None) -> None:
        name = full_name(log.name)
        known = self.change_of(name)
        if known is not None and after is not None and known.before == after:
            self._note(replace(known, after=after))
        elif known is None and (after is None or log.base() is None):
            before = cast(BranchNames, self._register.names).meaning(name, is_function=False)
            self._note(NameChange(name.schema, name.identifier, before, after))

    def _note(self, change: NameChange) -> None:
        key = _key(change)
        names = {each: self._names[each] for each in self._names if each != key}
        self._names = names if change.before == change.after else {**names, key: change}

    def _used_logs(self) -> list[BranchLog]:
        with self._lock:
            return [log for log in self._logs.values() if log.is_used]

    def _delete(self, but_attempts: bool = False) -> None:
        """Deletes the branch, or all of it except the record of the attempts to publish it."""
        with self._lock:
            self._logs.clear()
            self._names, self._dropped_schemas = {}, {}
        store = self._register.store
        try:
            if not but_attempts:
                store.delete_folder(self._folder)
                return
            store.delete_all(
                [path for path in branch_attempts.documents(store, self._folder) if path.endswith(_OF_WORK)]
            )
            for name in branch_attempts.folders(store, self._folder):
                store.delete_folder(f"{self._folder}/{name}")
        except SiltError as error:
            _logger.warning("the commits of the branch %s are left: %s", self.id, error)


def _dropped_schema(body: Any) -> tuple[str, bool]:
    schema = body["schema"]
    if not isinstance(schema, str) or not is_identifier(schema):
        raise ValueError(f"{schema!r:.100} is not the name of a schema")
    return schema, bool(body["cascade"])


def _table_of(body: Any) -> RelationName:
    """Returns the table of the document of a base."""
    try:
        return full_name(body["table"])
    except InvalidNameError as error:
        raise ValueError(error.problem) from error


def _key(change: NameChange) -> _Key:
    return change.schema, change.name, change.is_function
