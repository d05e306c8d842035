"""Runs TRUNCATE TABLE: removes all files from the table, and reads none."""

from __future__ import annotations

from dbt.adapters.silt.engine.commands.commit import commit
from dbt.adapters.silt.engine.commands.target import Outcome, Target, WriteSettings
from dbt.adapters.silt.engine.kernel.files import row_counts
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet

OPERATION = "TRUNCATE"


def truncate(target: Target, settings: WriteSettings) -> Outcome:
    """Deletes all rows of the table; runs no Spark job.

    Raises:
        ConcurrentModificationError: if another writer changed any file of the table.
    """
    snapshot = target.snapshot
    target.check_writable()
    now = target.log.clock.now_ms()
    changes = Changes(
        operation=Operation(OPERATION, metrics={"numRemovedFiles": str(snapshot.num_files)}),
        removes=tuple(add.remove(now) for add in snapshot.add_files()),
    )
    committed = commit(target.log, snapshot, changes, ReadSet(whole_table=True), settings)
    return Outcome(
        OPERATION,
        target.name,
        committed.version,
        rows_deleted=row_counts.row_count(snapshot.files),
        files_removed=snapshot.num_files,
        attempts=committed.attempts,
    )
