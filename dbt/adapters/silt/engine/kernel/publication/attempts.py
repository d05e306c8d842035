"""Attempts of a publication: checks all tables, and puts their commits with the marks of a new publication."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Protocol

from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.clock import Clock, back_off
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.publication.branch_changes import BranchVersions
from dbt.adapters.silt.engine.kernel.publication.documents import (
    Begun,
    Decision,
    Documents,
    NameChange,
    Status,
    new_publication,
)
from dbt.adapters.silt.engine.kernel.publication.foreign_keys import ForeignKeys
from dbt.adapters.silt.engine.kernel.publication.prepared import PreparedTable
from dbt.adapters.silt.engine.kernel.publication.publication_tables import ExistingTable
from dbt.adapters.silt.engine.kernel.publication.published_versions import with_published_versions
from dbt.adapters.silt.engine.kernel.publication_marks import MARK, made_by
from dbt.adapters.silt.engine.kernel.table.actions import CommitInfo, SetTransaction
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes
from dbt.adapters.silt.engine.kernel.transaction.competing_commits import PendingCommit

ATTEMPTS: Final = 5
_FIRST_WAIT: Final = 0.01
_LONGEST_WAIT: Final = 0.5


@dataclass(frozen=True)
class Completed:
    """The end of a publication: its decision, and the conflict for which it was aborted, if this process found it."""

    decision: Decision
    conflict: errors.ConcurrentModificationError | None = None


class Register(Protocol):
    """The publications of a database, as an attempt uses them; see `Publications`."""

    clock: Clock
    documents: Documents

    def settle(self, publication: int) -> bool: ...

    def complete(self, begun: Begun, tables: Sequence[PreparedTable]) -> Completed: ...

    def location_of(self, log: DeltaLog) -> str: ...

    def log_of(self, location: str, table: str) -> DeltaLog: ...


def attempt(
    register: Register,
    tables: Sequence[PreparedTable],
    names: Sequence[NameChange],
    versions: Mapping[str, BranchVersions],
    announce: Callable[[int], None] | None = None,
    *,
    is_needed: bool = True,
) -> Decision | None:
    """Checks all tables, and publishes them; an aborted publication may be tried again if there was no conflict.

    Args:
        names: the names that the publication changes.
        versions: the versions of each changed table on its branch, by name.
        announce: called with the id of the publication before it begins.
        is_needed: whether to publish a single table whose foreign keys, if any, have read nothing.

    Returns:
        The decision; None if no publication is needed.

    Raises:
        As `publish.publish`.
    """
    prepared = [each.checked(register.settle) for each in tables]
    checked = ForeignKeys(register.log_of, register.location_of).checked(prepared)
    if not is_needed and len(checked) == 1 and checked[0] is prepared[0]:
        return None
    newest = with_published_versions(checked, versions)
    for each in newest:
        if each.is_changed:
            check_files(each)
        elif isinstance(each, ExistingTable):
            each.check_exists()
    publication = new_publication(register.clock)
    marked_tables = [each.rewritten(partial(_marked, register.clock, publication)) for each in newest]
    parts = tuple(each.part(register.location_of(each.log)) for each in marked_tables)
    begun = Begun(publication, register.clock.now_ms(), parts, tuple(names))
    if announce is not None:
        announce(publication)
    register.documents.begin(begun)
    try:
        completed = register.complete(begun, marked_tables)
    except BaseException as error:
        decision = _decided_after(error, register, begun)
        if decision.status is Status.PUBLISHED and isinstance(error, errors.SiltError):
            return decision  # another process has completed it
        if isinstance(error, errors.CommitStateUnknownError):
            raise errors.StorageError(f"{error.problem}; the transaction was aborted", table=error.table) from error
        raise
    if completed.conflict is not None:
        raise completed.conflict
    return completed.decision


def _decided_after(error: BaseException, register: Register, begun: Begun) -> Decision:
    """Aborts a publication that failed, so that its outcome is known; returns the decision.

    Raises:
        CommitStateUnknownError: if that fails too.
    """
    try:
        decision = register.documents.decide(begun, Status.ABORTED, {})
    except errors.SiltError as failure:
        raise _unknown(begun, failure) from error
    with contextlib.suppress(errors.SiltError):  # the next process that meets its commits undoes them
        register.settle(begun.publication)
    return decision


def _unknown(begun: Begun, error: errors.SiltError) -> errors.CommitStateUnknownError:
    changed = [part.table for part in begun.written] + [f"{each.schema}.{each.name}" for each in begun.names]
    names = ", ".join(dict.fromkeys(changed))
    problem = f"it is not known whether the transaction over {names} was committed: {error.problem}"
    return errors.CommitStateUnknownError(problem)


def check_files(table: PreparedTable) -> None:
    """Makes the new files of a table durable, and checks that no other program has deleted any of them.

    Raises:
        DataFileMissingError: if a file is missing.
    """
    log, paths = table.log, table.check_files()
    if log.store.has_folders:
        return
    with ThreadPoolExecutor(log.store.files_at_once) as pool:
        for path, status in zip(paths, pool.map(log.store.status, paths), strict=True):
            if status is None:
                raise _missing(log, path)


def lost(tables: str) -> errors.CommitAttemptsExhaustedError:
    """Returns the error of a publication whose attempts all lost to other publications."""
    return errors.CommitAttemptsExhaustedError(
        f"{ATTEMPTS} attempts to publish the transaction lost to other publications", table=tables
    )


def commit_across(register: Register, log: DeltaLog, pending: PendingCommit, info: CommitInfo) -> int | None:
    """Commits changes of a table that depend on other tables by enforced foreign keys, as a publication.

    Returns:
        The version; None if the changes depend on no other row, and nothing was committed.

    Raises:
        ForeignKeyViolationError: if a row would have no parent.
        ConcurrentModificationError: if another commit conflicts.
        As `publish.publish`.
    """
    table = ExistingTable(log, pending, info)
    for number in range(1, ATTEMPTS + 1):
        try:
            decision = attempt(register, [table], (), {}, is_needed=False)
        except errors.ConcurrentModificationError as error:
            if error.table == log.name or number == ATTEMPTS:
                raise
        else:
            if decision is None:
                return None
            if decision.status is Status.PUBLISHED:
                log.after_commit(decision.versions[log.name])
                return decision.versions[log.name]
        back_off(register.clock, number, _FIRST_WAIT, _LONGEST_WAIT)
    raise lost(log.name)


def _missing(log: DeltaLog, path: str) -> errors.DataFileMissingError:
    return errors.DataFileMissingError(f"{path}, which the transaction has written, is missing", table=log.name)


def _marked(clock: Clock, publication: int, changes: Changes, info: CommitInfo) -> tuple[Changes, CommitInfo]:
    """Returns the changes and the `commitInfo` of a commit with the marks of its publication."""
    mark = SetTransaction(MARK, publication, clock.now_ms())
    marked_info = replace(info, txn_id=f"{publication}-{clock.new_id()}", extra={**info.extra, **made_by(publication)})
    return replace(changes, transactions=(*changes.transactions, mark)), marked_info
