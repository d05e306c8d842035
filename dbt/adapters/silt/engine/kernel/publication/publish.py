"""Publishes the changes of a branch: each changed table gets one commit, and readers see all of them or none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, TypeAlias

from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.publication.attempts import ATTEMPTS, attempt, check_files, lost
from dbt.adapters.silt.engine.kernel.publication.branch_changes import BranchChanges, changes_on
from dbt.adapters.silt.engine.kernel.publication.documents import NameChange, Status
from dbt.adapters.silt.engine.kernel.publication.prepared import PreparedTable
from dbt.adapters.silt.engine.kernel.publication.publication_tables import ExistingTable, NewTable
from dbt.adapters.silt.engine.kernel.publication.publications import Publications
from dbt.adapters.silt.engine.kernel.publication.published_versions import with_published_versions
from dbt.adapters.silt.engine.kernel.table.actions import SetTransaction
from dbt.adapters.silt.engine.kernel.table.properties import IsolationLevel
from dbt.adapters.silt.engine.kernel.transaction.branch_log import BranchLog
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation
from dbt.adapters.silt.engine.kernel.transaction.commit import (
    CommitSettings,
    commit,
    commit_info_of,
    isolation_level_of,
    log_folder_of,
    stamped,
)
from dbt.adapters.silt.engine.kernel.transaction.competing_commits import PendingCommit
from dbt.adapters.silt.engine.kernel.transaction.validation import check_changes

Txn: TypeAlias = tuple[str, int] | None
"""The application id and version that each commit of a publication records, if any."""


@dataclass(frozen=True)
class Isolation:
    """The checks of a branch's reads when it is published.

    By default its reads are of one moment: the branch has read each table as of another moment, so all of its reads
    must still be valid at the end.

    Attributes:
        level: the isolation level in all tables; None uses the level of each table.
        checks_unchanged: whether tables that the branch has only read are checked.
    """

    level: IsolationLevel | None = IsolationLevel.SERIALIZABLE
    checks_unchanged: bool = True


OF_TRANSACTIONS: Final = Isolation()
"""The isolation of statements that read all tables as of one moment."""

OF_STATEMENTS: Final = Isolation(None, checks_unchanged=False)
"""The isolation of statements that are committed separately: each depends on the table that it changes, alone."""


@dataclass(frozen=True)
class PublishSettings:
    """The way in which the changes of a branch are published.

    Attributes:
        txn: the identifier that each commit records, if any.
        isolation: the checks of the branch's reads.
        announce: called with the id of each publication before it begins; an exception is passed on, and the
            publication does not begin. Without it, the changes of a single table are an ordinary commit.
    """

    txn: Txn = None
    isolation: Isolation = field(default_factory=Isolation)
    announce: Callable[[int], None] | None = None


def publish(
    register: Publications,
    logs: Sequence[BranchLog],
    names: Sequence[NameChange] = (),
    settings: PublishSettings | None = None,
) -> dict[str, int]:
    """Publishes the changes of the tables and names of a branch; returns the new version of each changed table, by its
    name, without dropped tables.

    Args:
        register: the publications of the tables' database.
        logs: the tables that the branch has read or changed.
        names: the names that it has changed.
        settings: by default those of a transaction.

    Raises:
        ConcurrentModificationError: if another commit conflicts with a change or a read, or another writer has changed
            one of the names; nothing was applied.
        CommitAttemptsExhaustedError: if other publications came first in every attempt; nothing was applied.
        CommitStateUnknownError: if it is not known whether the changes were applied: all of them, or none.
        DataFileMissingError: if a file of the branch was deleted; nothing was applied.
        StorageError: if the storage failed; nothing was applied.
    """
    settings = settings or PublishSettings()
    found = [(log, changes_on(log)) for log in logs]
    tables = [each for each in (_prepared(*each, settings) for each in found) if each is not None]
    versions = {log.name: changes.versions for log, changes in found if changes is not None}
    if not names and not any(each.is_changed for each in tables):
        return {}
    if not settings.isolation.checks_unchanged:
        tables = [each for each in tables if each.is_changed]
    if not names and len(tables) == 1 and settings.announce is None:
        (only,) = with_published_versions(tables, versions)
        return _committed(only)
    for _ in range(ATTEMPTS):
        decision = attempt(register, tables, names, versions, settings.announce)
        if decision is not None and decision.status is Status.PUBLISHED:
            for each in tables:
                if each.log.name in decision.versions:
                    each.log.after_commit(decision.versions[each.log.name])
            return decision.versions
    raise lost(_words(tables, names))


def find_conflicts(
    register: Publications, logs: Sequence[BranchLog], settings: PublishSettings
) -> dict[str, errors.ConcurrentModificationError]:
    """Returns the conflicts of the changed tables that `publish` would meet now, by the tables' names.

    Raises:
        SiltError: as `publish`, except for a conflict; nothing is applied.
    """
    found = [(log, changes_on(log)) for log in logs]
    prepared = [_prepared(log, changes, settings) for log, changes in found if changes is not None]
    tables = [each for each in prepared if each is not None and each.is_changed]
    with ThreadPoolExecutor(register.store.files_at_once) as pool:
        checked = list(pool.map(partial(_checked, register), tables))
    conflicts = {each.table or "": each for each in checked if isinstance(each, errors.ConcurrentModificationError)}
    if not conflicts:
        versions = {log.name: changes.versions for log, changes in found if changes is not None}
        try:
            with_published_versions([each for each in checked if not isinstance(each, Exception)], versions)
        except errors.ConcurrentModificationError as error:
            conflicts[error.table or ""] = error
    return conflicts


def _checked(register: Publications, table: PreparedTable) -> PreparedTable | errors.ConcurrentModificationError:
    try:
        if isinstance(table, ExistingTable):
            table.check_exists()
        return table.checked(register.settle)
    except errors.ConcurrentModificationError as error:
        return error


def _words(tables: Sequence[PreparedTable], names: Sequence[NameChange]) -> str:
    """Returns the name of a table or view that is published, for messages."""
    changed = [each.log.name for each in tables if each.is_changed]
    return changed[0] if changed else f"{names[0].schema}.{names[0].name}"


def _prepared(log: BranchLog, found: BranchChanges | None, given: PublishSettings) -> PreparedTable | None:
    """Returns the table of a publication, or None for a table whose creation on the branch has failed."""
    base, txn = log.base(), given.txn
    if base is None and found is None:
        return None
    if base is not None and (found is None or (not found.changes.actions() and txn is None)):
        level = given.isolation.level or base.properties.isolation_level
        reads_only = PendingCommit(base, Changes(Operation("")), log.reads, level)
        return ExistingTable(log.main, reads_only, None)
    assert found is not None
    settings = CommitSettings(
        given.isolation.level or found.isolation_level,
        commit_info=found.commit_info,
        user_metadata=found.user_metadata,
        read_versions=found.read_versions,
    )
    changes = stamped(log, _with_txn(log.name, found.changes, txn))
    _check(changes, log)
    info = commit_info_of(log, base, changes, log.reads, settings)
    if base is None:
        return NewTable(log.main, changes, info, log_folder_of(log.main, None))
    base.check_undoubted()
    level = isolation_level_of(base, changes, settings)
    if given.isolation.level is not None and not log.reads.is_empty:
        level = given.isolation.level  # an OPTIMIZE has read no row, and other statements of the branch have
    info = replace(info, isolation_level=level.value)
    return ExistingTable(log.main, PendingCommit(base, changes, log.reads, level), info)


def _check(changes: Changes, log: BranchLog) -> None:
    """Checks the commits of a branch, which other programs can write too: `check_changes`."""
    try:
        check_changes(changes, log.base(), log.name)
    except errors.InternalError as error:
        raise errors.CorruptLogError(
            f"the commits of its branch do not continue it: {error.problem}",
            table=log.name,
            remedy="Drop the run (`silt drop-run`), and run it again",
        ) from error


def _with_txn(table: str, changes: Changes, txn: Txn) -> Changes:
    if txn is None:
        return changes
    if any(each.app_id == txn[0] for each in changes.transactions):
        raise errors.ConcurrentTransactionError(f"the transaction identifier {txn[0]} is set twice", table=table)
    return replace(changes, transactions=(*changes.transactions, SetTransaction(*txn)))


def _committed(table: PreparedTable) -> dict[str, int]:
    """Commits the changes of the only table of a branch, which needs no publication."""
    assert isinstance(table, ExistingTable) and table.info is not None
    check_files(table)
    own = CommitSettings(
        table.pending.isolation_level,
        commit_info=table.info.extra,
        user_metadata=table.info.user_metadata,
        read_versions=table.info.read_versions or {},
    )
    result = commit(table.log, table.pending.base, table.pending.changes, table.pending.reads, own)
    return {table.log.name: result.version}
