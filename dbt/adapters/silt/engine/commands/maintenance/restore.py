"""Runs RESTORE TABLE: commits a version with the files, the schema and the properties of an earlier version."""

from __future__ import annotations

from dataclasses import replace

from dbt.adapters.silt.engine.commands.commit import note_reads, with_transaction
from dbt.adapters.silt.engine.commands.target import Outcome, Target, WriteSettings
from dbt.adapters.silt.engine.kernel.errors import UnsupportedStatementError
from dbt.adapters.silt.engine.kernel.publication.branch_changes import OUTSIDE
from dbt.adapters.silt.engine.kernel.transaction import restore as kernel_restore
from dbt.adapters.silt.engine.kernel.transaction.branch_log import branch_of
from dbt.adapters.silt.engine.kernel.transaction.changes import RESTORE_OPERATION, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.restore import RestorePoint


def restore(target: Target, point: RestorePoint, settings: WriteSettings) -> Outcome:
    """Commits the content of an earlier version as the newest version; runs no Spark job.

    Without changes it commits nothing, unless the settings have a `txn`.

    Raises:
        UnsupportedStatementError: if a transaction would restore files that VACUUM may delete before its end.
        The errors of `kernel.transaction.restore.prepare` and `kernel.transaction.restore.commit`.
    """
    log, now = target.log, target.snapshot
    prepared = kernel_restore.prepare(log, now, point)
    if prepared.expired and branch_of(log) is not None:
        raise UnsupportedStatementError(
            "a transaction cannot restore files that were removed longer ago than `delta.deletedFileRetentionDuration`",
            table=target.name,
            remedy=OUTSIDE,
        )
    if not prepared.changes.actions() and not settings.must_commit:
        note_reads(log, ReadSet(whole_table=True), settings)
        return Outcome(RESTORE_OPERATION, target.name, now.version, attempts=0)
    changes = with_transaction(log, prepared.changes, settings)
    committed = kernel_restore.commit(log, replace(prepared, changes=changes), settings.commit)
    return Outcome(
        RESTORE_OPERATION,
        target.name,
        committed.version,
        files_added=len(changes.adds),
        files_removed=len(changes.removes),
        attempts=committed.attempts,
    )
