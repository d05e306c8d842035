"""Puts the commit of a publication into the log of a table, and checks the reads of a table that it does not change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from dbt.adapters.silt.engine.kernel.errors import ConcurrentDropError, CorruptLogError, MissingLogVersionError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.publication.documents import Part
from dbt.adapters.silt.engine.kernel.publication_marks import MARK, made_by, publication_of, undone_by
from dbt.adapters.silt.engine.kernel.table.actions import (
    AddCDCFile,
    AddFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
    parse,
    serialize,
)
from dbt.adapters.silt.engine.kernel.table.property_values import IsolationLevel
from dbt.adapters.silt.engine.kernel.transaction.attempt import Committed, Unknown
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.checked_attempt import checked_attempt, state_unknown
from dbt.adapters.silt.engine.kernel.transaction.commit import (
    AttemptPoint,
    committed_at,
    entry_at,
    log_folder_of,
    without_effect,
)
from dbt.adapters.silt.engine.kernel.transaction.competing_commits import PendingCommit, WinningCommit
from dbt.adapters.silt.engine.kernel.transaction.conflicts import check_conflicts

Settle = Callable[[int], bool]
"""Settles another publication; returns whether it is published."""

_ONLY_READ: Final = Operation("TRANSACTION")


@dataclass(frozen=True)
class Prepared:
    """A table of a publication, ready to be put or checked.

    Attributes:
        log: the table.
        pending: its changes and reads, and the snapshot that they are based on.
        info: the `commitInfo` of its commit; None for a table that was only read.
    """

    log: DeltaLog
    pending: PendingCommit
    info: CommitInfo | None


def prepared_of(log: DeltaLog, part: Part) -> Prepared:
    """Returns the table of a publication that another process has begun.

    Raises:
        ConcurrentDropError: if the table was dropped or created again.
        CorruptLogError: if the document holds no commit.
    """
    if not log.exists():
        raise ConcurrentDropError("the table was dropped", table=log.name)
    base = log.snapshot_at(part.base)
    if base.metadata.id != part.table_id:
        raise ConcurrentDropError("the table was dropped and created again", table=log.name)
    reads = ReadSet(paths=frozenset(part.paths), whole_table=part.whole_table, transactions=part.transactions)
    if part.commit is None:
        return Prepared(log, PendingCommit(base, Changes(_ONLY_READ), reads, IsolationLevel.SERIALIZABLE), None)
    try:
        commit = WinningCommit(part.base, tuple(parse(part.commit.encode())))
        level = IsolationLevel(commit.info.isolation_level)
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptLogError(f"the commit in the publication's document cannot be read ({error!r})") from error
    return Prepared(log, PendingCommit(base, _changes_of(commit), reads, level), commit.info)


def part_of(prepared: Prepared, location: str) -> Part:
    """Returns the table for the document of its publication.

    Conditions are not stored: a process that completes the publication treats all rows as read.
    """
    base, reads, info = prepared.pending.base, prepared.pending.reads, prepared.info
    commit = None if info is None else serialize((info, *prepared.pending.changes.actions())).decode()
    return Part(
        base.table,
        location,
        base.metadata.id,
        base.version,
        commit,
        tuple(sorted(reads.paths)),
        reads.whole_table or bool(reads.predicates),
        reads.transactions,
    )


def marked_with(prepared: Prepared, publication: int) -> Prepared:
    """Returns the table with the marks of a publication in its commit."""
    if prepared.info is None:
        return prepared
    changes = prepared.pending.changes
    mark = SetTransaction(MARK, publication, prepared.log.clock.now_ms())
    changes = replace(changes, transactions=(*changes.transactions, mark))
    info = replace(
        prepared.info,
        txn_id=f"{publication}-{prepared.log.clock.new_id()}",
        extra={**prepared.info.extra, **made_by(publication)},
    )
    return replace(prepared, pending=replace(prepared.pending, changes=changes), info=info)


def put(prepared: Prepared, settle: Settle) -> int:
    """Puts the commit at the first free version after its base, once; returns the version at which it is.

    Raises:
        ConcurrentModificationError: if a commit after the base conflicts.
        CommitStateUnknownError: if it is not known whether it was put.
        StorageError: if the storage failed.
    """
    assert prepared.info is not None
    log, pending, info = prepared.log, prepared.pending, prepared.info
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
            pending = check_conflicts(winner, pending)
            place = AttemptPoint(winner.version + 1, committed_at(log, winner, pending), place.attempt + 1)


def checked(prepared: Prepared, settle: Settle, publication: int | None = None) -> Prepared:
    """Checks the commits after the base; returns the table on the base of the newest version.

    Raises:
        ConcurrentModificationError: if a commit conflicts.
        StorageError: if the storage failed.
    """
    pending, newest = prepared.pending, prepared.pending.base.version
    for winner in _winners(prepared.log, newest + 1, settle, publication):
        pending, newest = check_conflicts(winner, pending), winner.version
    if newest == pending.base.version:
        return prepared
    base = replace(prepared.log.snapshot_at(newest), log_folder=pending.base.log_folder)
    return replace(prepared, pending=replace(pending, base=base))


def _winners(log: DeltaLog, version: int, settle: Settle, publication: int | None) -> Iterator[WinningCommit]:
    """Yields the commits from a version on, after settling the other publications among them."""
    try:
        for commit in log.read_ahead(version):
            winner = WinningCommit(commit.version, commit.actions(log.name))
            other = publication_of(winner.info)
            is_undone = undone_by(winner.info) is not None
            if other is not None and other != publication:
                is_undone = not settle(other)
            yield without_effect(winner) if is_undone else winner
    except MissingLogVersionError:
        return  # the table was dropped, which the next attempt detects


def _changes_of(commit: WinningCommit) -> Changes:
    info = commit.info
    return Changes(
        Operation(info.operation or "", info.operation_parameters, info.operation_metrics or {}),
        adds=tuple(commit.of(AddFile)),
        removes=tuple(commit.of(RemoveFile)),
        metadata=next(iter(commit.of(Metadata)), None),
        protocol=next(iter(commit.of(Protocol)), None),
        transactions=tuple(commit.of(SetTransaction)),
        domains=tuple(commit.of(DomainMetadata)),
        change_files=tuple(commit.of(AddCDCFile)),
    )
