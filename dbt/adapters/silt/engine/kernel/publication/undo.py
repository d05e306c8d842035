"""Undoes the commits of an aborted publication, by a commit each."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from dbt.adapters.silt.engine.kernel.errors import CommitAttemptsExhaustedError, MissingLogVersionError
from dbt.adapters.silt.engine.kernel.log.commit_file import read_commit
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.publication.net_changes import key_of
from dbt.adapters.silt.engine.kernel.publication_marks import MARK, SETTLED, publication_of, undoes, undone_by
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, DomainMetadata, Metadata, RemoveFile, SetTransaction
from dbt.adapters.silt.engine.kernel.transaction.attempt import Committed, Unknown, attempt, state_unknown
from dbt.adapters.silt.engine.kernel.transaction.changes import DROPPED_PROPERTY, NOT_DONE, Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import (
    AttemptPoint,
    CommitSettings,
    commit_info_of,
    entry_at,
    log_folder_of,
    stamped,
)
from dbt.adapters.silt.engine.kernel.transaction.competing_commits import WinningCommit

_logger = logging.getLogger(__name__)

_ATTEMPTS: Final = 100
_OPERATION: Final = Operation("UNDO TRANSACTION")


def undo(log: DeltaLog, publication: int, table_id: str, base: int) -> None:
    """Undoes the publication's commit in a table, unless it is missing or undone, or another commit has dropped the
    table.

    If another engine has rewritten rows of the commit meanwhile, the commit is not undone: nothing can separate its
    rows from theirs.

    Args:
        log: the table, without a register of publications.
        base: the version after which the commit was put.

    Raises:
        CommitAttemptsExhaustedError: if other writers came first in every attempt.
        CommitStateUnknownError: if it is not known whether it was undone.
        StorageError: if the storage failed.
    """
    for _ in range(_ATTEMPTS):
        newest = log.snapshot() if log.exists() else None
        if newest is None or newest.metadata.id != table_id:
            return
        found = _to_undo(log, publication, range(newest.version, base, -1))
        if found is None or (found.version != newest.version and _is_dropped(newest)):
            return
        if _is_undone_after(log, newest, found, publication):
            return
    raise CommitAttemptsExhaustedError(
        f"other writers came first in {_ATTEMPTS} attempts to undo the publication {publication}", table=log.name
    )


def _is_dropped(newest: Snapshot) -> bool:
    return DROPPED_PROPERTY in newest.metadata.configuration


def _to_undo(log: DeltaLog, publication: int, versions: Iterable[int]) -> WinningCommit | None:
    """Returns the publication's commit, or None if it is missing or undone; the versions are the newest first."""
    for version in versions:
        try:
            found = WinningCommit(version, read_commit(log.store, version, log.name).actions(log.name))
        except MissingLogVersionError:
            return None  # the log was cleaned up
        if undone_by(found.info) == publication:
            return None
        if publication_of(found.info) == publication:
            return found
    return None


def _is_undone_after(log: DeltaLog, newest: Snapshot, undone: WinningCommit, publication: int) -> bool:
    """Puts the commit that undoes another after the newest version; returns False if that version is not free."""
    changes = stamped(log, _reversed(newest, log.snapshot_at(undone.version - 1), undone))
    settings = CommitSettings(commit_info=undoes(publication))
    info = commit_info_of(log, newest, changes, ReadSet(whole_table=True), settings)
    point = AttemptPoint(newest.version + 1, newest.timestamp)
    outcome = attempt(log, log_folder_of(log, newest), point.version, entry_at(log, newest, changes, info, point))
    if isinstance(outcome, Unknown):
        raise state_unknown(log, point.version, outcome)
    if isinstance(outcome, Committed):
        log.after_commit(point.version)
    return isinstance(outcome, Committed)


def _reversed(newest: Snapshot, before: Snapshot, undone: WinningCommit) -> Changes:
    """Returns the changes after which the table is as if the commit had not been made."""
    active = {key_of(each): each for each in newest.add_files()}
    added, removed = [key_of(each) for each in undone.of(AddFile)], set(map(key_of, undone.of(RemoveFile)))
    rewritten = [key for key in added if key not in active]
    if rewritten:
        _logger.warning(
            "%s: another engine has rewritten files of version %s, which belongs to an aborted transaction: its rows "
            "remain in the table",
            newest.table,
            undone.version,
        )
        return Changes(_OPERATION, transactions=(SetTransaction(MARK, SETTLED),))
    metadata = next(iter(undone.of(Metadata)), None)
    return Changes(
        _OPERATION,
        adds=tuple(replace(each, data_change=True) for each in before.add_files() if key_of(each) in removed),
        removes=tuple(active[key].remove(newest.timestamp) for key in added),
        metadata=before.metadata if metadata is not None and newest.metadata == metadata else None,
        transactions=tuple(_transactions(before, undone)),
        domains=tuple(_domains(before, undone)),
    )


def _transactions(before: Snapshot, undone: WinningCommit) -> Iterator[SetTransaction]:
    """Yields the transaction identifiers of the commit with their versions before it, and that it is settled."""
    for each in undone.of(SetTransaction):
        version = before.transaction_version(each.app_id)
        if each.app_id != MARK:
            yield SetTransaction(each.app_id, NOT_DONE if version is None else version)
    yield SetTransaction(MARK, SETTLED)


def _domains(before: Snapshot, undone: WinningCommit) -> Iterator[DomainMetadata]:
    for each in undone.of(DomainMetadata):
        yield before.domains.get(each.domain) or DomainMetadata(each.domain, "", removed=True)
