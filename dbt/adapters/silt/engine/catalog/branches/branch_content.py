"""The tables, names and schemas of a branch, as its processes read and change them.

    _branches/<id>/<digest>.name.json           a name that the branch has changed
    _branches/<id>/<digest>.schema.json         a schema that the branch drops with all its names
    _branches/<id>/<table's folder>/base.json   the version of the table at which the branch begins
    _branches/<id>/<table's folder>/<n>.json    the commits of the branch, numbered as in the table's log

Data files of a branch are in the table's folder, so publishing the branch moves no file.
"""

from __future__ import annotations

import contextlib
import json
import logging
import threading
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any, Final, Self, TypeAlias, cast

from dbt.adapters.silt.engine.catalog.branches import attempts as branch_attempts
from dbt.adapters.silt.engine.catalog.branches import named_documents
from dbt.adapters.silt.engine.catalog.branches.conflicts import Lookups
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
    new_publication,
    parse_change,
    serialize_change,
)
from dbt.adapters.silt.engine.kernel.publication.publications import Publications
from dbt.adapters.silt.engine.kernel.storage.store import ObjectMissing
from dbt.adapters.silt.engine.kernel.table.json_fields import FORMAT
from dbt.adapters.silt.engine.kernel.table.paths import commit_path
from dbt.adapters.silt.engine.kernel.transaction.branch_log import BASE, BranchLog
from dbt.adapters.silt.engine.kernel.transaction.changes import ReadSet

_logger = logging.getLogger(__name__)

NAME: Final = ".name.json"
SCHEMA: Final = ".schema.json"
"""The ends of the names of a branch's documents."""
_Key: TypeAlias = tuple[str, str, bool]
"""The schema and the name of a relation or function, and whether it is a function."""


class BranchContent:
    """The tables, names and schemas of a branch of a database. Thread-safe.

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
        return known or self.log(self._register.log_of(meaning.text, str(name)))

    def location_of(self, log: BranchLog) -> str:
        """Returns the folder of a table, relative to the database's root."""
        return self._register.location_of(log.main)

    def remove(self, log: BranchLog) -> None:
        """Removes a table that the branch has created, and its data files, which a failure leaves for VACUUM.

        Raises:
            StorageError: if the storage failed.
        """
        location = self.location_of(log)
        self._delete_files((log,))
        with self._lock:
            self._logs.pop(location, None)
            self._register.store.delete_folder(f"{self._folder}/{location}")

    def _delete_files(self, logs: Iterable[BranchLog]) -> None:
        for log in logs:
            try:
                log.store.delete_all(new_files(log))
            except SiltError as error:
                _logger.warning("%s: data files that nothing uses are left: %s", log.name, error)

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
        path = f"{self._folder}/{file_name(repr(key))}{NAME}"
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

    def _named(self, database: str) -> dict[RelationName, NameChange]:
        return {RelationName(database, each.schema, each.name): each for each in self._names.values()}

    @property
    def _folder(self) -> str:
        return f"{branch_attempts.FOLDER}/{self.id}"

    def _schema_path(self, schema: str) -> str:
        return f"{self._folder}/{file_name(schema)}{SCHEMA}"

    def reopen(self, leaves_lost: bool = False, only: RelationName | None = None) -> Self:
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
            if path.endswith(NAME):
                self._note(branch_attempts.parsed(store, path, parse_change))
            if path.endswith(SCHEMA):
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
        log = self.log(self._register.log_of(location, table))
        try:
            log.base()
            # Statements on a named branch are committed one by one: a table has been read by those that change it.
            is_appended = self.named is not None and all(each.info.is_blind_append for each in commits_on(log))
            log.note(ReadSet(whole_table=not is_appended))
        except (NotATableError, VersionNotFoundError) as error:
            files = self._register.store.files_below(f"{self._folder}/{location}")
            if len(files) > 1 and not leaves_lost:
                raise self._base_lost(table, error.problem) from error
            del self._logs[location]

    def _base_lost(self, table: str, reason: str) -> ConcurrentDropError:
        who, remedy = "run", "Drop the run (`silt drop-run`), and run it again"
        if self.named is not None:
            who, remedy = "branch", f"Delete the branch (`silt branch {self.named.name} --delete`), and create it again"
        problem = f"the version that the {who} has changed no longer exists: {reason}"
        return ConcurrentDropError(problem, table=table, remedy=remedy)

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
