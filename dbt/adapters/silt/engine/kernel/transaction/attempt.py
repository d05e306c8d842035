"""Attempts to write a commit at a version; the outcome is Committed, Conflict or Unknown."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, TypeAlias

from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.clock import back_off
from dbt.adapters.silt.engine.kernel.log.commit_file import CommitFile
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.log_segment import list_log
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.storage.store import ObjectMissing, PinnedFolder, PutResult
from dbt.adapters.silt.engine.kernel.table.actions import CommitInfo
from dbt.adapters.silt.engine.kernel.table.paths import commit_name, commit_path
from dbt.adapters.silt.engine.kernel.transaction.competing_commits import PendingCommit

SETTLING_TRIES: Final = 8
"""The number of writes after which the outcome is reported as unknown."""

_FIRST_WAIT = 0.1
_LONGEST_WAIT = 5.0


@dataclass(frozen=True)
class Committed:
    """The version holds this commit.

    Attributes:
        after: the first error that left the outcome of an earlier write of it uncertain, if any.
    """

    after: errors.StorageError | errors.CorruptLogError | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Conflict:
    """The version holds another commit; this commit was not written."""


@dataclass(frozen=True)
class Unknown:
    """The version may hold this commit, now or later.

    Attributes:
        error: the first error that left the outcome uncertain.
        refused: the error of a later write that was refused, if any.
    """

    error: errors.StorageError | errors.CorruptLogError
    refused: errors.StorageError | None = None


Outcome: TypeAlias = Committed | Conflict | Unknown


@dataclass(frozen=True)
class Entry:
    """The bytes of a commit, and the unique `txnId` in them."""

    data: bytes
    txn_id: str


def attempt(log: DeltaLog, folder: PinnedFolder, version: int, entry: Entry) -> Outcome:
    """Writes the entry at the version if the version is free.

    If the outcome of a write is uncertain, the same bytes are written at the same version again, so that they can be
    committed only once. As soon as the version can be read, its `txnId` identifies its writer.

    Raises:
        ConcurrentDropError: if the log's folder no longer exists and the entry was not written.
        NotWrittenError: if the storage refused the entry.
    """
    unknown: errors.StorageError | errors.CorruptLogError | None = None
    refused: errors.StorageError | None = None
    for tries in range(SETTLING_TRIES):
        try:
            if folder.put_if_absent(commit_name(version), entry.data) is PutResult.CREATED:
                return Committed(unknown)
            return Committed(unknown) if _is_own(log, version, entry) else Conflict()
        except ObjectMissing as error:
            if unknown is None:
                raise errors.ConcurrentDropError(
                    "the table was dropped", table=log.name, version=version - 1
                ) from error
            return Unknown(unknown)
        except errors.NotWrittenError as error:
            if unknown is None:
                raise
            refused = error
        except errors.StorageRefusedError as error:
            unknown, refused = unknown or error, error
        except (errors.StorageError, errors.CorruptLogError) as error:
            unknown = unknown or error
        back_off(log.clock, tries, _FIRST_WAIT, _LONGEST_WAIT)
    if unknown is None:
        raise errors.InternalError(
            f"the outcome of {SETTLING_TRIES} attempts is unknown, without an error", table=log.name, version=version
        )
    return Unknown(unknown, refused if refused is not unknown else None)


def _is_own(log: DeltaLog, version: int, entry: Entry) -> bool:
    """Returns whether the existing version is this commit: a storage may answer EXISTS to the writer that created it.

    Raises:
        StorageError, CorruptLogError: if that cannot be decided yet.
    """
    commit = _commit_at(log, version)
    if commit is None:
        raise errors.StorageError(f"the storage reported that {commit_name(version)} exists, and then that it does not")
    actions = commit.actions(log.name)
    return any(isinstance(action, CommitInfo) and action.txn_id == entry.txn_id for action in actions)


def _commit_at(log: DeltaLog, version: int) -> CommitFile | None:
    """Returns the commit of a version, or None if it does not exist.

    An object store returns the whole file, and the conflict check need not read it again. Another store may return a
    part of it, which is enough here: the first line has the `txnId`.
    """
    try:
        if not log.store.has_folders:
            return next(log.read_ahead(version), None)
        return CommitFile(version, log.store.read(commit_path(version)))
    except (ObjectMissing, errors.MissingLogVersionError):
        return None


def checked_attempt(log: DeltaLog, folder: PinnedFolder, pending: PendingCommit, version: int, entry: Entry) -> Outcome:
    """Writes the entry at the version if the version is free, as `attempt` does.

    Raises:
        ConcurrentModificationError: if the log was cleaned up past the base; nothing was committed.
        CommitStateUnknownError: if the storage failed right after the commit, or the log was cleaned up while it was
            uncertain whether the entry was written.
        The errors of `attempt`.
    """
    folder = _not_cleaned_up(log, folder, pending, version - 1)
    try:
        outcome = attempt(log, folder, version, entry)
    except errors.ConcurrentDropError as error:
        if _begins_after(log, pending.base):
            raise _cleaned_up(pending) from error
        raise
    if isinstance(outcome, Committed):
        _check_was_free(log, folder, pending, version, outcome)
    return outcome


def state_unknown(log: DeltaLog, version: int, outcome: Unknown) -> errors.CommitStateUnknownError:
    then = f"; then {outcome.refused.problem}" if outcome.refused else ""
    error = errors.CommitStateUnknownError(
        f"it is not known whether version {version} was committed: {outcome.error.problem}{then}",
        table=log.name,
        details={"version": version},
    )
    error.__cause__ = outcome.error
    return error


def _not_cleaned_up(log: DeltaLog, folder: PinnedFolder, pending: PendingCommit, version: int) -> PinnedFolder:
    """Returns the folder of the log, known by the newest version that was read, which no clean-up deletes.

    Raises:
        ConcurrentModificationError: if the log was cleaned up past the base, because a free version may be a deleted
            version.
    """
    if not log.may_be_cleaned_up(pending.base):
        return folder
    newest = log.store.status(commit_path(version))
    if newest is not None:
        # Checked after that look, so that the version is of this log and not of a log that has replaced it.
        return folder.known_by(newest) if folder.is_current() else folder
    if (list_log(log.store, log.name).newest or 0) <= version:
        return folder  # the table has a checkpoint but no commit
    raise _cleaned_up(pending)


def _check_was_free(
    log: DeltaLog, folder: PinnedFolder, pending: PendingCommit, version: int, outcome: Committed
) -> None:
    """Deletes the commit and raises an error if its version was free only because a clean-up had deleted it.

    The clean-up may have run between the last look at the log and the write. It deletes versions in order, so this
    version was free for another reason if the version before it exists.

    Raises:
        ConcurrentModificationError: if the log begins after the version.
        CommitStateUnknownError: if the storage failed, or an earlier write may have committed before the clean-up.
    """
    if not log.may_be_cleaned_up(pending.base):
        return
    try:
        if log.store.status(commit_path(version - 1)) is not None:
            return
        oldest = _oldest_checkpoint(log)
        if oldest is None or oldest <= version or not folder.is_current():
            return
        log.store.delete(commit_path(version))
    except errors.StorageError as error:
        raise state_unknown(log, version, Unknown(error)) from error
    if outcome.after is not None:
        raise state_unknown(log, version, Unknown(outcome.after))
    raise _cleaned_up(pending)


def _begins_after(log: DeltaLog, base: Snapshot) -> bool:
    """Returns whether the log begins after the base, which a storage without folders reports as a dropped table."""
    if not log.may_be_cleaned_up(base) or log.store.status(commit_path(base.version)) is not None:
        return False
    oldest = _oldest_checkpoint(log)
    return oldest is not None and oldest > base.version


def _oldest_checkpoint(log: DeltaLog) -> int | None:
    """Returns the version of the oldest checkpoint, or None if no checkpoint or no log exists."""
    try:
        return min((each.version for each in list_log(log.store, log.name).checkpoints), default=None)
    except errors.NotATableError:
        return None


def _cleaned_up(pending: PendingCommit) -> errors.ConcurrentModificationError:
    return errors.ConcurrentModificationError(
        f"{pending.changes.operation.name}, based on version {pending.base.version}, ran for longer than the log is "
        "kept (`delta.logRetentionDuration`): the commits after that version can no longer be read",
        table=pending.base.table,
        version=pending.base.version,
    )
