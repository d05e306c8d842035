"""A branch of a database: a line of its tables and names that only programs which know the branch's id read and write.

`branch_content` describes its documents. This module compares a branch with its database, and ends it.
"""

from __future__ import annotations

import hashlib
import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import islice
from typing import Any, Final, cast

from dbt.adapters.silt.engine.catalog.branches import attempts as branch_attempts
from dbt.adapters.silt.engine.catalog.branches.branch_content import NAME, SCHEMA, BranchContent
from dbt.adapters.silt.engine.catalog.branches.conflicts import (
    BranchChange,
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
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.errors import ConcurrentModificationError, SiltError
from dbt.adapters.silt.engine.kernel.publication.branch_changes import commits_on
from dbt.adapters.silt.engine.kernel.publication.documents import (
    Kind,
    Meaning,
    NameChange,
    Status,
    new_publication,
    serialize_change,
)
from dbt.adapters.silt.engine.kernel.publication.publish import (
    OF_STATEMENTS,
    OF_TRANSACTIONS,
    Isolation,
    PublishSettings,
    Txn,
    publish,
)
from dbt.adapters.silt.engine.kernel.table.paths import commit_path
from dbt.adapters.silt.engine.kernel.transaction.branch_log import BranchLog

_logger = logging.getLogger(__name__)

_SHOWN_COMMITS: Final = 5
_OF_WORK: Final = (NAME, SCHEMA, NODES, branch_attempts.JOINED, branch_attempts.COMMAND, branch_attempts.SIGN)


class Branch(BranchContent):
    """A branch of a database. Thread-safe."""

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
        """Returns a hash of all changes on the branch. Raises as `hashes`."""
        return hashlib.sha256(repr(sorted(self.hashes().items())).encode()).hexdigest()

    def hashes(self) -> dict[Relation, str]:
        """Returns a hash of each change on the branch: of a table's commits with their facts, of a name's meaning with
        its code, and of a dropped schema, whose name is empty.

        Raises:
            CorruptLogError, StorageError: if the branch cannot be read.
        """
        names = cast(BranchNames, self._register.names)
        digests: dict[Relation, Any] = defaultdict(hashlib.sha256)
        for log in sorted(self._used_logs(), key=lambda each: (each.name, self.location_of(each))):
            for commit in commits_on(log):
                digest = digests[relation_of(log.name)]
                digest.update(repr((log.name, log.base_version, commit.version)).encode())
                digest.update(log.store.read(commit_path(commit.version)))
        for key, change in sorted(self._names.items()):
            digests[key[:2]].update(repr((key, serialize_change(change))).encode())
            if change.after is not None and change.after.kind is not Kind.TABLE:
                digests[key[:2]].update(names.document(change.after))
        for schema, cascade in self._dropped_schemas.items():
            digests[schema, ""].update(repr(cascade).encode())
        return {each: digest.hexdigest() for each, digest in digests.items()}

    def changed_names(self, database: str) -> list[RelationName]:
        """Returns the names of the relations that the branch has created, replaced or dropped.

        Args:
            database: the name of the database.
        """
        return [name for name, each in self._named(database).items() if not each.is_function]

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
            is_read = self.named is None and log.base() is not None  # a named branch reads its cut
            if relation_of(log.name) not in lost and (is_read or commits_on(log)):
                self._continue(earlier, log)
        for change in earlier._names.values():
            if (change.schema, change.name) not in lost:
                self.change(change)
        for schema, cascade in earlier._dropped_schemas.items():
            if not earlier._keeps_schema(schema, lost):
                self.drop_schema(schema, cascade)
        self._superseded = list(earlier._superseded)

    def _keeps_schema(self, schema: str, lost: Collection[Relation]) -> bool:
        """Returns whether a branch without the changes of some relations does not drop a schema that this one drops."""
        return any(lost_schema == schema for lost_schema, _ in lost)

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
            other._take_over(self.reopen(), self._left_out(lost))
        self._delete_files(log for log in self._used_logs() if relation_of(log.name) in lost)
        ended = (each for each in self._names.values() if (each.schema, each.name) in lost)
        self._forget(each.after for each in ended if each.after is not None)
        self._delete(but_attempts=True)

    def _left_out(self, lost: Collection[Relation]) -> Collection[Relation]:
        """Returns the relations whose changes a branch does not take over from this one, given those that are lost."""
        return lost

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

    def forget(self) -> None:
        """Deletes the documents of a branch that continues on another, except the attempts to publish it."""
        self._delete(but_attempts=True)

    def discard(self) -> None:
        """Deletes the branch, its data files and definitions; a failure leaves data files for VACUUM."""
        self._delete_files(self._used_logs())
        self._forget_definitions()
        self._delete()

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

    def _forget(self, meanings: Iterable[Meaning]) -> None:
        """Deletes definitions to which no name refers. Not earlier: another process may publish the same branch."""
        try:
            for each in meanings:
                if each.kind is not Kind.TABLE:
                    self._register.names.forget(each)
        except SiltError as error:
            _logger.warning("definitions of the branch %s are left: %s", self.id, error)

    def _forget_definitions(self) -> None:
        self._forget([*self._superseded, *(each.after for each in self._names.values() if each.after is not None)])

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
