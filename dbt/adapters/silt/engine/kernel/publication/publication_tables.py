"""ExistingTable and NewTable: the tables that a publication changes and creates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.publication import prepared
from dbt.adapters.silt.engine.kernel.publication.documents import NEW, Part
from dbt.adapters.silt.engine.kernel.publication_marks import publication_of, undone_by
from dbt.adapters.silt.engine.kernel.storage.store import PinnedFolder
from dbt.adapters.silt.engine.kernel.table.actions import CommitInfo, Metadata
from dbt.adapters.silt.engine.kernel.table.properties import IsolationLevel
from dbt.adapters.silt.engine.kernel.transaction.attempt import (
    Committed,
    Conflict,
    Unknown,
    attempt,
    checked_attempt,
    state_unknown,
)
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import (
    AttemptPoint,
    committed_at,
    entry_at,
    log_folder_of,
    without_effect,
)
from dbt.adapters.silt.engine.kernel.transaction.competing_commits import PendingCommit, WinningCommit
from dbt.adapters.silt.engine.kernel.transaction.conflicts import check_conflicts
from dbt.adapters.silt.engine.kernel.transaction.enforced_keys import NewKeys, states_keys, with_keys_to_publish

_ONLY_READ: Final = Operation("TRANSACTION")


@dataclass(frozen=True)
class ExistingTable:
    """A table of a publication that exists.

    Attributes:
        log: the table.
        pending: its changes and reads, and the snapshot that they are based on.
        info: the `commitInfo` of its commit; None for a table that was only read.
        is_changed_by_others: whether another writer has changed its rows since the branch began.
        is_pinned: whether its commit is put right after its base or not at all.
    """

    log: DeltaLog
    pending: PendingCommit
    info: CommitInfo | None
    is_changed_by_others: bool = False
    is_pinned: bool = False

    @property
    def is_changed(self) -> bool:
        return self.info is not None

    def check_files(self) -> Sequence[str]:
        return prepared.durable_files(self.log, self.pending.changes, log_folder_of(self.log, self.pending.base))

    def part(self, location: str) -> Part:
        """Conditions are not stored: a process that completes the publication treats all rows as read."""
        base, reads = self.pending.base, self.pending.reads
        return Part(
            base.table,
            location,
            base.metadata.id,
            base.version,
            None if self.info is None else prepared.commit_text(self.info, self.pending.changes),
            tuple(sorted(reads.paths)),
            reads.whole_table or bool(reads.predicates),
            reads.transactions,
            prepared.drops(self.pending.changes),
            self.is_pinned,
        )

    @property
    def next_version(self) -> int | None:
        return None if self.is_changed_by_others else self.pending.base.version + 1

    def rewritten(self, rewrite: prepared.Rewrite) -> ExistingTable:
        if self.info is None:
            return self
        changes, info = rewrite(self.pending.changes, self.info)
        return replace(self, pending=replace(self.pending, changes=changes), info=info)

    def pinned(self) -> ExistingTable:
        return replace(self, is_pinned=True)

    def put(self, settle: prepared.Settle) -> int:
        """Puts the commit at the first free version after its base."""
        assert self.info is not None
        log, pending, info, keys = self.log, self.pending, self.info, NewKeys(self.log, self.pending)
        folder, place = log_folder_of(log, pending.base), AttemptPoint(pending.base.version + 1, pending.base.timestamp)
        while True:
            entry = entry_at(log, pending.base, pending.changes, info, place)
            outcome = checked_attempt(log, folder, pending, place.version, entry)
            if isinstance(outcome, Committed):
                return place.version
            if isinstance(outcome, Unknown):
                raise state_unknown(log, place.version, outcome)
            for winner in _winners(log, place.version, settle, publication_of(info)):
                if winner.info.txn_id == info.txn_id:
                    return winner.version
                if self.is_pinned:
                    raise prepared.VersionTaken(log.name)
                pending = keys.checked(winner, check_conflicts(winner, pending))
                place = AttemptPoint(winner.version + 1, committed_at(log, winner, pending), place.attempt + 1)

    def check_exists(self) -> None:
        """Checks that the table is still the table with which the branch began.

        Raises:
            ConcurrentDropError: if it was dropped or created again.
        """
        _existing(self.log, self.pending.base.metadata.id, self.log.snapshot)

    def checked(self, settle: prepared.Settle, publication: int | None = None) -> ExistingTable:
        pending, newest, is_changed = self.pending, self.pending.base.version, self.is_changed_by_others
        for winner in _winners(self.log, newest + 1, settle, publication):
            pending, newest = check_conflicts(winner, pending), winner.version
            is_changed = is_changed or winner.changes_rows
        if newest > pending.base.version:
            base = replace(self.log.snapshot_at(newest), log_folder=pending.base.log_folder)
            pending = replace(pending, base=base)
        elif self.info is None or states_keys(pending.changes):
            return self
        if self.info is not None:
            changes = with_keys_to_publish(self.log, pending.base, pending.changes)
            pending = replace(pending, changes=changes)
        return replace(self, pending=pending, is_changed_by_others=is_changed)


def existing_table(log: DeltaLog, part: Part) -> ExistingTable:
    """Returns the table of a publication that another process has begun.

    Raises:
        ConcurrentDropError: if the table was dropped or created again.
        CorruptLogError: if the document holds no commit.
    """
    base = _existing(log, part.table_id, lambda: log.snapshot_at(part.base))
    reads = ReadSet(paths=frozenset(part.paths), whole_table=part.whole_table, transactions=part.transactions)
    if part.commit is None:
        return ExistingTable(log, PendingCommit(base, Changes(_ONLY_READ), reads, IsolationLevel.SERIALIZABLE), None)
    changes, info, level = prepared.parsed_commit(part)
    return ExistingTable(log, PendingCommit(base, changes, reads, level), info, is_pinned=part.pinned)


def _existing(log: DeltaLog, table_id: str, read: Callable[[], Snapshot]) -> Snapshot:
    dropped = errors.ConcurrentDropError("the table was dropped", table=log.name)
    if not log.exists():
        raise dropped
    try:
        found = read()
    except errors.NotATableError as error:
        raise dropped from error
    if found.metadata.id != table_id:
        raise errors.ConcurrentDropError("the table was dropped and created again", table=log.name)
    return found


def _winners(log: DeltaLog, version: int, settle: prepared.Settle, publication: int | None) -> Iterator[WinningCommit]:
    """Yields the commits from a version on, after settling the other publications among them."""
    try:
        for commit in log.read_ahead(version):
            winner = WinningCommit(commit.version, commit.actions(log.name))
            other = publication_of(winner.info)
            is_undone = undone_by(winner.info) is not None
            if other is not None and other != publication:
                is_undone = not settle(other)
            yield without_effect(winner) if is_undone else winner
    except errors.MissingLogVersionError:
        return  # the table was dropped, which the next attempt detects


@dataclass(frozen=True)
class NewTable:
    """A table that a publication creates; its name refers to it when the publication is published.

    Attributes:
        log: the table, in a folder without a log.
        changes: its first version.
        info: the `commitInfo` of that version.
        folder: the folder of its log.
    """

    log: DeltaLog
    changes: Changes
    info: CommitInfo
    folder: PinnedFolder = field(repr=False)

    @property
    def is_changed(self) -> bool:
        return True

    def check_files(self) -> Sequence[str]:
        return prepared.durable_files(self.log, self.changes, self.folder)

    def checked(self, settle: prepared.Settle, publication: int | None = None) -> NewTable:  # noqa: ARG002
        """Opens the folder of the log again, which the end of an aborted publication has replaced."""
        changes = self.changes if states_keys(self.changes) else with_keys_to_publish(self.log, None, self.changes)
        return replace(self, changes=changes, folder=log_folder_of(self.log, None))

    @property
    def next_version(self) -> int:
        return 0

    def rewritten(self, rewrite: prepared.Rewrite) -> NewTable:
        changes, info = rewrite(self.changes, self.info)
        return replace(self, changes=changes, info=info)

    def pinned(self) -> NewTable:
        return self

    def part(self, location: str) -> Part:
        return Part(
            self.log.name, location, _metadata(self.changes).id, NEW, prepared.commit_text(self.info, self.changes)
        )

    def put(self, settle: prepared.Settle) -> int:  # noqa: ARG002
        """Puts version 0."""
        entry = entry_at(self.log, None, self.changes, self.info, AttemptPoint(0, 0))
        outcome = attempt(self.log, self.folder, 0, entry)
        if isinstance(outcome, Unknown):
            raise state_unknown(self.log, 0, outcome)
        if isinstance(outcome, Conflict):
            raise errors.ConcurrentCreateError("another writer created the table first", table=self.log.name)
        return 0


def new_table(log: DeltaLog, part: Part) -> NewTable:
    """Returns the table of a publication that another process has begun.

    Raises:
        ConcurrentDropError: if the folder of its log is missing.
        CorruptLogError: if the document holds no first version of a table.
    """
    changes, info, _ = prepared.parsed_commit(part)
    _metadata(changes)
    return NewTable(log, changes, info, log_folder_of(log, None))


def _metadata(changes: Changes) -> Metadata:
    if changes.metadata is None:
        raise errors.CorruptLogError("the commit in the publication's document creates no table")
    return changes.metadata
