"""Commits changes as the next version of a table, exactly once, or raises an error with the reason.

    validate -> make data files durable -> attempt version N
        committed  done
        conflict   check the winners; attempt the version after them, as often as the settings allow
        unknown    write the same bytes at the same version until it exists, then compare its id

Each commit has a unique id (`commitInfo.txnId`), so a transaction recognises its own commit in a version that already
exists, even after any number of lost answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.clock import back_off
from dbt.adapters.silt.engine.kernel.files import deletion_vectors
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.publication_marks import MARK, SETTLED, marked, publication_of, undone_by
from dbt.adapters.silt.engine.kernel.storage.store import ObjectMissing, PinnedFolder
from dbt.adapters.silt.engine.kernel.table import actions
from dbt.adapters.silt.engine.kernel.table.keys import with_children_of
from dbt.adapters.silt.engine.kernel.table.paths import LOG_FOLDER, commit_path, decode_path, is_absolute
from dbt.adapters.silt.engine.kernel.table.properties import IsolationLevel, TableProperties
from dbt.adapters.silt.engine.kernel.transaction.attempt import (
    Committed,
    Conflict,
    Entry,
    Unknown,
    attempt,
    checked_attempt,
    state_unknown,
)
from dbt.adapters.silt.engine.kernel.transaction.branch_log import branch_of, note_reads
from dbt.adapters.silt.engine.kernel.transaction.changes import (
    DROPPED_PROPERTY,
    ENGINE_INFO,
    Changes,
    ReadSet,
    in_commit_timestamp,
    needs_in_commit_timestamp,
    with_enablement,
)
from dbt.adapters.silt.engine.kernel.transaction.competing_commits import PendingCommit, WinningCommit
from dbt.adapters.silt.engine.kernel.transaction.conflicts import check_conflicts, effective_isolation_level
from dbt.adapters.silt.engine.kernel.transaction.enforced_keys import (
    NewKeys,
    concerns_references,
    stated_at,
    with_checked_keys,
)
from dbt.adapters.silt.engine.kernel.transaction.positions import END_OF_TIME, is_position
from dbt.adapters.silt.engine.kernel.transaction.row_tracking import (
    ROW_TRACKING_DOMAIN,
    preserved_tags,
    tracks_rows,
    with_row_ids,
)
from dbt.adapters.silt.engine.kernel.transaction.validation import check_changes

# Between two attempts, in seconds.
_FIRST_WAIT = 0.01
_LONGEST_WAIT = 2.0


@dataclass(frozen=True)
class CommitSettings:
    """The settings of a commit.

    Attributes:
        isolation_level: the isolation level; None for the table's.
        max_attempts: the maximum number of attempts; each attempt after the first follows another writer's commit.
        commit_info: additional fields of `commitInfo`.
        user_metadata: the user's note, shown in the history.
        read_versions: the versions of each table that was read for these changes, by table name.
        statement_attempt: the number of this run of the whole statement, from 1.
    """

    isolation_level: IsolationLevel | None = None
    max_attempts: int = 20
    commit_info: Mapping[str, actions.Json] = field(default_factory=dict)
    user_metadata: str | None = None
    read_versions: Mapping[str, Sequence[int]] = field(default_factory=dict)
    statement_attempt: int = 1


@dataclass(frozen=True)
class AttemptPoint:
    """The target of an attempt: the version, the time of the commit before it, and the number of the attempt."""

    version: int
    previous_ms: int
    attempt: int = 1


@dataclass(frozen=True)
class CommitResult:
    """The version that was committed, and the number of attempts."""

    version: int
    attempts: int


def commit(
    log: DeltaLog, base: Snapshot | None, changes: Changes, reads: ReadSet, settings: CommitSettings
) -> CommitResult:
    """Commits the changes as the table's next version.

    Args:
        base: the snapshot that the changes are based on; None to create the table's first version.
        reads: the part of `base` that the changes depend on.

    Raises:
        ConcurrentModificationError: if another commit conflicts; always a subclass.
        CommitAttemptsExhaustedError: if other commits came first in every attempt.
        CommitStateUnknownError: if the changes may or may not be committed. After any other error they are certainly
            not committed.
        CorruptLogError: if a version checksum contradicts the base.
        StorageError: if the storage failed before the commit, or refused it.
        DataFileMissingError: if a data file to be added does not exist.
        KeyViolationError: if rows of the changes break an enforced key.
        The errors of `validation.check_changes` and `read_file`.

    >>> from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
    >>> from dbt.adapters.silt.engine.kernel.table.actions import Metadata, Protocol
    >>> from dbt.adapters.silt.engine.kernel.transaction.changes import Operation
    >>> log = DeltaLog(LocalStore(folder), "main.orders")
    >>> log.store.make_folder("_delta_log")
    >>> schema = '{"type": "struct", "fields": []}'
    >>> creation = Changes(Operation("CREATE TABLE"), protocol=Protocol(), metadata=Metadata("an-id", schema))
    >>> commit(log, None, creation, ReadSet(), CommitSettings()).version
    0
    >>> nightly = Changes(Operation("WRITE"), transactions=(actions.SetTransaction("nightly", 7),))
    >>> commit(log, log.snapshot(), nightly, ReadSet(), CommitSettings()).version
    1
    >>> log.snapshot().holds(("nightly", 7))
    True
    """
    check_changes(changes, base, log.name)
    _check_not_recorded(changes, base)
    if base is not None:
        base.check_undoubted()
        _check_not_dropped(log, base, changes)
    folder = log_folder_of(log, base)
    make_durable(log, changes, folder)
    if base is not None and changes.metadata is not None:
        changes = replace(changes, metadata=with_children_of(changes.metadata, base.metadata))
    changes = with_checked_keys(log, base, changes, settings.commit_info)
    stamps = stamped(log, changes)
    info = commit_info_of(log, base, stamps, reads, settings)
    if base is None:
        _check_can_create(log, changes)
        return _create(log, folder, stamps, info)
    pending = PendingCommit(base, stamps, reads, isolation_level_of(base, stamps, settings))
    note_reads(log, reads)
    version = _committed_across(log, pending, info)
    if version is not None:
        return CommitResult(version, 1)
    return _commit_after_winners(log, folder, pending, info, settings.max_attempts)


def _committed_across(log: DeltaLog, pending: PendingCommit, info: actions.CommitInfo) -> int | None:
    """Commits changes that depend on other tables by enforced foreign keys; returns None if they do not.

    On a branch, foreign keys are checked when it is published.
    """
    if branch_of(log) is not None or not concerns_references(pending.base, pending.changes):
        return None
    if log.publications is None:
        raise errors.UnsupportedStatementError(
            "a table with an enforced foreign key is changed by its name in the warehouse",
            table=log.name,
            remedy="Name it by its schema and name, not by its path",
        )
    return log.publications.commit_across(log, pending, info)


def _check_can_create(log: DeltaLog, changes: Changes) -> None:
    """Checks that the first version of a table has no enforced foreign key: such a table is created on a branch."""
    if branch_of(log) is None and concerns_references(None, changes):
        raise errors.UnsupportedStatementError(
            "a table with an enforced foreign key is created by a CREATE TABLE statement",
            table=log.name,
            remedy="Create it without the key, then add it: alter table ... add constraint ... foreign key",
        )


def _check_not_dropped(log: DeltaLog, base: Snapshot, changes: Changes) -> None:
    """Raises an error if the base is the last version of a dropped table, whose name was resolved before the drop; on a
    branch, which only has dropped the table when it is published, the changes may create it again.
    """
    is_created_again = branch_of(log) is not None and changes.metadata is not None
    if DROPPED_PROPERTY in base.metadata.configuration and not is_created_again:
        raise errors.ConcurrentDropError("the table was dropped", table=base.table, version=base.version)


def _check_not_recorded(changes: Changes, base: Snapshot | None) -> None:
    """Raises an error if the base already has a transaction identifier; a version below 0 may always be set."""
    for transaction in changes.transactions:
        txn = (transaction.app_id, transaction.version)
        if base is not None and transaction.version >= 0 and base.holds(txn):
            recorded = base.transaction_version(transaction.app_id)
            raise errors.ConcurrentTransactionError(
                f"the transaction identifier {transaction.app_id} is already recorded with version {recorded}",
                table=base.table,
                version=base.version,
            )


def _create(log: DeltaLog, folder: PinnedFolder, changes: Changes, info: actions.CommitInfo) -> CommitResult:
    entry = entry_at(log, None, changes, info, AttemptPoint(0, 0))
    # The first versions of an old log may have been cleaned up, so that version 0 is free.
    outcome = Conflict() if log.exists() else attempt(log, folder, 0, entry)
    if isinstance(outcome, Unknown):
        raise state_unknown(log, 0, outcome)
    if isinstance(outcome, Conflict):
        raise errors.ConcurrentCreateError("another writer created the table first", table=log.name)
    log.after_commit(0)
    return CommitResult(0, 1)


def _commit_after_winners(
    log: DeltaLog, folder: PinnedFolder, pending: PendingCommit, info: actions.CommitInfo, max_attempts: int
) -> CommitResult:
    point = AttemptPoint(pending.base.version + 1, pending.base.timestamp)
    began_ms = log.clock.now_ms()
    keys = NewKeys(log, pending)
    winners: Counter[str] = Counter()
    for attempts in range(1, max_attempts + 1):
        entry = entry_at(log, pending.base, pending.changes, info, point)
        outcome = checked_attempt(log, folder, pending, point.version, entry)
        if isinstance(outcome, Committed):
            log.after_commit(point.version)
            return CommitResult(point.version, attempts)
        if isinstance(outcome, Unknown):
            raise state_unknown(log, point.version, outcome)
        # The wait precedes reading the winners, so that the next attempt follows all commits made during the wait.
        back_off(log.clock, attempts, _FIRST_WAIT, _LONGEST_WAIT)
        for winner in winners_from(log, point.version):
            pending = keys.checked(winner, check_conflicts(winner, pending))
            winners[winner.info.operation or "another writer"] += 1
            point = AttemptPoint(winner.version + 1, committed_at(log, winner, pending), attempts + 1)
    raise _attempts_exhausted(pending, max_attempts, point.version - 1, winners, log.clock.now_ms() - began_ms)


def winners_from(log: DeltaLog, version: int) -> Iterator[WinningCommit]:
    """Yields the commits from a version on, oldest first, after settling the publications among them.

    Of the commit of an aborted publication, and of the commit that undoes it, only the protocol counts.
    """
    try:
        for commit in log.read_ahead(version):
            yield _settled(log, WinningCommit(commit.version, commit.actions(log.name)))
    except errors.MissingLogVersionError:
        return  # the table was dropped, which the next attempt detects


def _settled(log: DeltaLog, winner: WinningCommit) -> WinningCommit:
    publication = publication_of(winner.info)
    if log.publications is None or (publication is None and undone_by(winner.info) is None):
        return winner
    if publication is not None and log.publications.settle(publication):
        return winner
    return without_effect(winner)


def without_effect(winner: WinningCommit) -> WinningCommit:
    """Returns a commit of an aborted publication, or its undoing, without what the two cancel out. Row ids that it has
    assigned are never assigned again.
    """
    return replace(winner, actions=tuple(filter(_is_lasting, winner.actions)))


def _is_lasting(action: actions.Action) -> bool:
    is_mark = isinstance(action, actions.DomainMetadata) and action.domain == ROW_TRACKING_DOMAIN
    return is_mark or isinstance(action, (actions.CommitInfo, actions.Protocol))


def committed_at(log: DeltaLog, winner: WinningCommit, pending: PendingCommit) -> int:
    """Returns the winner's time, or 0 if this commit has no in-commit timestamp and does not need it."""
    if winner.info.in_commit_timestamp is not None:
        return winner.info.in_commit_timestamp
    if not needs_in_commit_timestamp(pending.base.metadata, pending.changes):
        return 0
    status = log.store.status(commit_path(winner.version))
    return 0 if status is None else status.modified_ms


def log_folder_of(log: DeltaLog, base: Snapshot | None) -> PinnedFolder:
    """Returns the folder of the log that the commit is for, even if another log replaces it later."""
    if base is not None and base.log_folder is not None:
        return base.log_folder
    try:
        return log.store.pin(LOG_FOLDER)
    except ObjectMissing as error:
        raise errors.ConcurrentDropError("the folder of the table's log is missing", table=log.name) from error


def make_durable(log: DeltaLog, changes: Changes, folder: PinnedFolder) -> None:
    """Syncs data files before the log is written, so that no crash leaves a version with lost files."""
    files: tuple[actions.AddFile | actions.AddCDCFile, ...] = (*changes.adds, *changes.change_files)
    vectors = (add.deletion_vector for add in changes.adds)
    names = {
        *(decode_path(file.path) for file in files),
        *(deletion_vectors.file_name(vector, log.name) for vector in vectors if vector is not None),
    }
    paths = sorted(name for name in names if name is not None and not is_absolute(name))
    if not paths:
        return
    try:
        log.store.make_durable(paths)
    except ObjectMissing as error:
        if not (folder.is_current() and log.exists()):
            raise errors.ConcurrentDropError("the table was dropped", table=log.name) from error
        raise errors.DataFileMissingError("a data file to be committed is missing", table=log.name) from error


def stamped(log: DeltaLog, changes: Changes) -> Changes:
    """Adds a time to every transaction identifier, which might otherwise expire at once. Positions never expire."""
    now = log.clock.now_ms()

    def timed(each: actions.SetTransaction) -> actions.SetTransaction:
        time = max(each.last_updated or 0, END_OF_TIME) if is_position(each.app_id) else each.last_updated or now
        return replace(each, last_updated=time)

    return replace(
        changes, transactions=tuple(map(timed, changes.transactions)), forgotten=tuple(map(timed, changes.forgotten))
    )


def commit_info_of(
    log: DeltaLog, base: Snapshot | None, changes: Changes, reads: ReadSet, settings: CommitSettings
) -> actions.CommitInfo:
    return actions.CommitInfo(
        timestamp=log.clock.now_ms(),
        operation=changes.operation.name,
        operation_parameters=changes.operation.parameters,
        read_version=None if base is None else base.version,
        isolation_level=isolation_level_of(base, changes, settings).value,
        is_blind_append=changes.is_blind_append(reads),
        operation_metrics=changes.operation.metrics,
        user_metadata=settings.user_metadata,
        engine_info=ENGINE_INFO,
        txn_id=log.clock.new_id(),
        read_versions=settings.read_versions or None,
        statement_attempts=settings.statement_attempt,
        extra=settings.commit_info,
    )


def entry_at(
    log: DeltaLog, base: Snapshot | None, changes: Changes, info: actions.CommitInfo, point: AttemptPoint
) -> Entry:
    """Returns the commit's bytes for an attempt."""
    metadata = None if base is None else base.metadata
    info = replace(info, commit_attempts=point.attempt)
    if needs_in_commit_timestamp(metadata, changes):
        time = in_commit_timestamp(log.clock.now_ms(), point.previous_ms)
        info = replace(info, in_commit_timestamp=time)
        changes = with_enablement(metadata, changes, point.version, time)
    changes = stated_at(changes, point.version)
    # On a branch, other writers may still assign the next ids: new rows get their ids when they are published.
    if tracks_rows(base, changes) and branch_of(log) is None:
        info = replace(info, extra={**info.extra, "tags": preserved_tags(base, changes, info.extra.get("tags") or {})})
        changes = with_row_ids(base, changes, point.version)
    return Entry(actions.serialize((info, *_with_settled_mark(log, base, changes).actions())), info.txn_id or "")


def _with_settled_mark(log: DeltaLog, base: Snapshot | None, changes: Changes) -> Changes:
    """Adds that no publication before this commit is undecided, if the base names a publication: all were settled."""
    is_set = any(each.app_id == MARK for each in changes.transactions)
    if log.publications is None or base is None or marked(base.transactions) is None or is_set:
        return changes
    return replace(
        changes, transactions=(*changes.transactions, actions.SetTransaction(MARK, SETTLED, log.clock.now_ms()))
    )


def isolation_level_of(base: Snapshot | None, changes: Changes, settings: CommitSettings) -> IsolationLevel:
    metadata = changes.metadata if base is None else base.metadata
    configured = TableProperties({} if metadata is None else metadata.configuration).isolation_level
    return effective_isolation_level(settings.isolation_level or configured, changes)


def _attempts_exhausted(
    pending: PendingCommit, attempts: int, last_version: int, winners: Counter[str], took_ms: int
) -> errors.CommitAttemptsExhaustedError:
    base, operation = pending.base, pending.changes.operation.name
    times = f"{attempts} attempt{'' if attempts == 1 else 's'} to commit {operation}"
    theirs = ", ".join(f"{count} x {name}" for name, count in winners.most_common())
    return errors.CommitAttemptsExhaustedError(
        f"{times}, based on version {base.version}, all lost to other writers' commits: versions "
        f"{base.version + 1} to {last_version} ({theirs}), in {took_ms / 1000:.1f} s",
        table=base.table,
        version=base.version,
        details={
            "attempts": attempts,
            "own_operation": operation,
            "base_version": base.version,
            "last_version": last_version,
            "winners": dict(winners),
            "milliseconds": took_ms,
        },
    )
