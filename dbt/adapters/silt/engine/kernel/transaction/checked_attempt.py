"""Attempts a version after a transaction's base while the log may be cleaned up.

A clean-up deletes the oldest commits. A writer must not take a deleted version for a free version or, in a storage
without folders, a clean-up for a drop.
"""

from __future__ import annotations

from dbt.adapters.silt.engine.kernel.errors import (
    CommitStateUnknownError,
    ConcurrentDropError,
    ConcurrentModificationError,
    NotATableError,
    StorageError,
)
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.log_segment import list_log
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.storage.store import PinnedFolder
from dbt.adapters.silt.engine.kernel.table.paths import commit_path
from dbt.adapters.silt.engine.kernel.transaction.attempt import Committed, Entry, Outcome, Unknown, attempt
from dbt.adapters.silt.engine.kernel.transaction.competing_commits import PendingCommit


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
    except ConcurrentDropError as error:
        if _begins_after(log, pending.base):
            raise _cleaned_up(pending) from error
        raise
    if isinstance(outcome, Committed):
        _check_was_free(log, folder, pending, version, outcome)
    return outcome


def state_unknown(log: DeltaLog, version: int, outcome: Unknown) -> CommitStateUnknownError:
    then = f"; then {outcome.refused.problem}" if outcome.refused else ""
    error = CommitStateUnknownError(
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
    except StorageError as error:
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
    except NotATableError:
        return None


def _cleaned_up(pending: PendingCommit) -> ConcurrentModificationError:
    return ConcurrentModificationError(
        f"{pending.changes.operation.name}, based on version {pending.base.version}, ran for longer than the log is "
        "kept (`delta.logRetentionDuration`): the commits after that version can no longer be read",
        table=pending.base.table,
        version=pending.base.version,
    )
