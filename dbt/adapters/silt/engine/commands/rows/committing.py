"""Commits the files that a DELETE, UPDATE or MERGE changed."""

from __future__ import annotations

import json
from dataclasses import replace

from dbt.adapters.silt.engine.commands import commit
from dbt.adapters.silt.engine.commands.rows.file_changes import FileChanges, RowResult
from dbt.adapters.silt.engine.commands.rows.selection import Rows
from dbt.adapters.silt.engine.commands.target import Outcome, Target, WriteSettings
from dbt.adapters.silt.engine.kernel.table import active_files
from dbt.adapters.silt.engine.kernel.table.actions import Metadata
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet, as_strings, is_needed
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitResult


def commit_files(
    target: Target,
    operation: Operation,
    changes: FileChanges,
    reads: ReadSet,
    settings: WriteSettings,
    metadata: Metadata | None = None,
) -> CommitResult | None:
    """Commits the changes; returns None without a commit if the caller and the isolation level need none.

    Args:
        reads: the command's predicates; the opened files are added.
        metadata: the table's new metadata, if it changes.
    """
    actions = changes_of(target, operation, changes, metadata)
    isolation = settings.commit.isolation_level or target.snapshot.properties.isolation_level
    if not settings.must_commit and not is_needed(actions, isolation):
        return None
    opened = frozenset(changes.opened["path"].to_pylist()) | {remove.path for remove in actions.removes}
    with_paths = replace(reads, paths=reads.paths | opened)
    return commit.commit(target.log, target.snapshot, actions, with_paths, settings, changes.uncommitted)


def changes_of(target: Target, operation: Operation, changes: FileChanges, metadata: Metadata | None = None) -> Changes:
    """Returns the changes of the files as actions of a commit.

    Args:
        metadata: the table's new metadata, if it changes.
    """
    now = target.log.clock.now_ms()
    removed = target.snapshot.add_files(changes.removed)
    if changes.marked is not None:
        removed += target.snapshot.add_files(changes.marked.before)
    return Changes(
        operation,
        adds=(
            *(() if changes.marked is None else changes.marked.adds),
            *(() if changes.written is None else changes.written.adds),
        ),
        removes=tuple(add.remove(now) for add in removed),
        metadata=metadata,
        change_files=changes.change_files,
    )


def commit_rows(
    target: Target, operation: Operation, rows: Rows, result: RowResult, settings: WriteSettings, started: int
) -> Outcome:
    """Commits the result of a DELETE or an UPDATE.

    Args:
        operation: its name and its own metrics.
        started: the time at which it started, in milliseconds of the log's clock.
    """
    changes = result.changes
    metrics = {
        "numRemovedFiles": changes.removed.num_rows,
        "numRemovedBytes": active_files.size(changes.removed),
        "numAddedFiles": changes.added,
        "numAddedBytes": 0 if changes.written is None else changes.written.size,
        "numCopiedRows": None if result.changed is None else result.copied,
        "numAddedChangeFiles": len(changes.change_files),
        **changes.vector_metrics("num"),
        "executionTimeMs": target.log.clock.now_ms() - started,
    }
    predicate = [] if rows.condition is None else [rows.condition]
    whole = replace(
        operation,
        parameters={"predicate": json.dumps(predicate, ensure_ascii=False)},
        metrics={**operation.metrics, **as_strings(metrics)},
    )
    reads = ReadSet(predicates=(rows.predicate,), whole_table=rows.condition is None)
    committed = commit_files(target, whole, changes, reads, settings)
    return Outcome(
        operation.name,
        target.name,
        target.snapshot.version if committed is None else committed.version,
        files_added=changes.added,
        files_removed=changes.removed.num_rows,
        files_skipped=target.snapshot.num_files - changes.opened.num_rows,
        attempts=0 if committed is None else committed.attempts,
    )
