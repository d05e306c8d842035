"""The changes of a table's files by a DELETE, an UPDATE or a MERGE, and their commit."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame

from dbt.adapters.silt.engine.commands import commit
from dbt.adapters.silt.engine.commands.commit import discarded_on_error
from dbt.adapters.silt.engine.commands.rows import file_rows
from dbt.adapters.silt.engine.commands.rows.file_rows import CountedRows, ExpectedRows, Rows
from dbt.adapters.silt.engine.commands.target import Outcome, Target, Uncommitted, WriteSettings
from dbt.adapters.silt.engine.commands.writing import change_data
from dbt.adapters.silt.engine.commands.writing.change_data import ChangeData
from dbt.adapters.silt.engine.commands.writing.files import Written
from dbt.adapters.silt.engine.kernel.errors import SiltError
from dbt.adapters.silt.engine.kernel.files import deletion_vectors
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.table import active_files
from dbt.adapters.silt.engine.kernel.table.actions import AddCDCFile, AddFile, Metadata
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet, as_strings, is_needed
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitResult

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Marked:
    """Files that are kept with fewer rows, not yet committed.

    Args:
        before: the files before the change, rows of the snapshot's files.
        adds: the same files with their new deletion vectors.
    """

    before: pa.Table
    adds: tuple[AddFile, ...]

    @property
    def updated(self) -> int:
        """How many of the files had a vector before."""
        return len(self.adds) - int(self.before["deletion_vector"].null_count)

    def discard(self, log: DeltaLog) -> None:
        """Deletes the new vectors, which no version uses; a failure leaves them for VACUUM."""
        vectors = (add.deletion_vector for add in self.adds)
        names = {deletion_vectors.file_name(vector) for vector in vectors if vector is not None}
        for name in names - {None}:
            try:
                log.store.delete(str(name))
            except SiltError as error:
                _logger.warning("%s: deletion vectors that nothing uses are left in %s: %s", log.name, name, error)


@dataclass(frozen=True)
class FileChanges:
    """The files that a statement opens, removes, writes, or gives a deletion vector.

    Args:
        opened: the files whose rows were read.
        removed: the removed files.
        written: the new files.
        marked: the files that are kept with fewer rows.
        recorded: the change files.
        routed: rows that the statement leaves out, because they fail tests; no version has their files.
    """

    opened: pa.Table
    removed: pa.Table
    written: Written | None = None
    marked: Marked | None = None
    recorded: ChangeData | None = None
    routed: Written | None = None

    @property
    def added(self) -> int:
        return 0 if self.written is None else len(self.written.adds)

    @property
    def change_files(self) -> tuple[AddCDCFile, ...]:
        return () if self.recorded is None else self.recorded.files

    @property
    def uncommitted(self) -> tuple[Uncommitted, ...]:
        """The files to delete if the changes are not committed."""
        made = (self.written, self.marked, self.recorded, self.routed)
        return tuple(each for each in made if each is not None)

    def vector_metrics(self, prefix: str) -> dict[str, int]:
        """Returns the metrics of deletion vectors, by delta-spark's names."""
        updated = 0 if self.marked is None else self.marked.updated
        return {
            f"{prefix}DeletionVectorsAdded": 0 if self.marked is None else len(self.marked.adds) - updated,
            f"{prefix}DeletionVectorsRemoved": self.removed.num_rows - self.removed["deletion_vector"].null_count,
            f"{prefix}DeletionVectorsUpdated": updated,
        }


@dataclass(frozen=True)
class RowResult:
    """The result of a DELETE or an UPDATE, before it is committed.

    Args:
        changes: the file changes.
        changed: the number of deleted or updated rows; None if unknown.
        copied: the number of unchanged rows that were rewritten.
    """

    changes: FileChanges
    changed: int | None = 0
    copied: int = 0


def record(
    target: Target,
    changes: FileChanges,
    metadata: Metadata,
    rows: Mapping[str, DataFrame],
    expected: Mapping[str, int],
) -> FileChanges:
    """Writes the rows' change files and adds them to the changes; deletes all written files on failure.

    Args:
        metadata: the metadata of the version that will contain the files.
        rows: the rows by change type.
        expected: the row count of each change type.
    """
    with discarded_on_error(target.log, changes.uncommitted):
        return replace(changes, recorded=change_data.write(target.log, metadata, rows, expected))


def check_kept(target: Target, changes: FileChanges, expected: int) -> None:
    """Checks that the expected number of rows was written; otherwise deletes the files.

    Raises:
        DataFileChangedError: if a data file no longer matches its entry in the log.
        InternalError: if rows were lost or duplicated for another reason.
    """
    with discarded_on_error(target.log, changes.uncommitted):
        if changes.written is not None and changes.written.rows != expected:
            what = f"{changes.written.rows} rows were written instead of {expected}"
            raise file_rows.miscounted(target, changes.removed, what)


def check_read(target: Target, changes: FileChanges, read: CountedRows | ExpectedRows, kept: int) -> None:
    """Checks that no row of the rewritten files was lost; otherwise deletes the written files.

    Raises:
        DataFileChangedError, InternalError: as `CountedRows.check`.
    """
    with discarded_on_error(target.log, changes.uncommitted):
        read.check(target, kept)


def drop_written(target: Target, changes: FileChanges) -> FileChanges:
    """Deletes the written files, which contain no change, and returns empty changes."""
    if changes.written is not None:
        changes.written.discard(target.log)
    return FileChanges(changes.opened, changes.removed.slice(0, 0))


def commit_files(
    target: Target,
    operation: Operation,
    changes: FileChanges,
    reads: ReadSet,
    settings: WriteSettings,
    metadata: Metadata | None = None,
) -> CommitResult | None:
    """Commits the changes; returns None without a commit if the caller and the isolation level need none, which a
    transaction counts as a read.

    Args:
        reads: the command's predicates; the opened files are added.
        metadata: the table's new metadata, if it changes.
    """
    actions = changes_of(target, operation, changes, metadata)
    isolation = settings.commit.isolation_level or target.snapshot.properties.isolation_level
    opened = frozenset(changes.opened["path"].to_pylist()) | {remove.path for remove in actions.removes}
    with_paths = replace(reads, paths=reads.paths | opened)
    if not settings.must_commit and changes.routed is None and not is_needed(actions, isolation):
        commit.note_reads(target.log, with_paths, settings)
        return None
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
