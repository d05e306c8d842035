"""What DELETE, UPDATE and MERGE share: which files they open, which of them hold rows to change, and how they end.

Each verb has the same three cases: the whole table; whole files, by partition values and statistics alone, without a
Spark job; the files that hold rows to change. These are written anew, few bytes of them at once, because a job that
looks for the touched ones first costs more than it saves; or their rows are marked, where the table asks for deletion
vectors (`marking`).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.commands import commit
from dbt.adapters.silt.engine.commands.commit import Uncommitted
from dbt.adapters.silt.engine.commands.reading import scan
from dbt.adapters.silt.engine.commands.spark import errors
from dbt.adapters.silt.engine.commands.target import Outcome, Target, WriteSettings
from dbt.adapters.silt.engine.commands.writing import change_data
from dbt.adapters.silt.engine.commands.writing.change_data import ChangeData
from dbt.adapters.silt.engine.commands.writing.files import Written
from dbt.adapters.silt.engine.kernel.errors import InternalError, InvalidNameError, SiltError
from dbt.adapters.silt.engine.kernel.files import deletion_vectors, row_counts
from dbt.adapters.silt.engine.kernel.files.statistics import from_footers
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.table.actions import AddCDCFile, AddFile, Metadata
from dbt.adapters.silt.engine.kernel.table.active_files import size as size
from dbt.adapters.silt.engine.kernel.table.expressions import Expression
from dbt.adapters.silt.engine.kernel.table.paths import decode_path
from dbt.adapters.silt.engine.kernel.table.schema import StructType
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet, as_strings, is_needed
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitResult

RESERVED_PREFIX = "__silt_"

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Rows:
    """The rows that a DELETE or an UPDATE is about.

    Args:
        alias: what `condition` may qualify the table's columns by.
        condition: the text of WHERE, its tables pinned; None for all rows.
        predicate: what the condition says of the table's columns; UNKNOWN where it cannot be said.
    """

    alias: str
    condition: str | None
    predicate: Expression


@dataclass(frozen=True)
class Limits:
    """Bytes of candidate files up to which a step that would rule some out is left out.

    Args:
        direct: a MERGE joins its source as it is, without making it stable first to learn the range of its keys.
        at_once: all candidates are written anew, without a job before that finds those with rows to change.
        single_task: one task joins and writes them.
        single_task_rows: rows of a stable source up to which the same holds.
    """

    direct: int = 8 << 20
    at_once: int = 16 << 20
    single_task: int = 2 << 20
    single_task_rows: int = 20_000


@dataclass(frozen=True)
class Marked:
    """Files that stay in the table with fewer rows; in no version of it yet.

    Args:
        before: the files as they are, rows of the snapshot's files.
        adds: the same files with their new deletion vectors.
    """

    before: pa.Table
    adds: tuple[AddFile, ...]

    @property
    def updated(self) -> int:
        """How many of the files had a vector before."""
        return len(self.adds) - int(self.before["deletion_vector"].null_count)

    def discard(self, log: DeltaLog) -> None:
        """Deletes the new vectors, which surely are in no version; a failure leaves them for VACUUM."""
        vectors = (add.deletion_vector for add in self.adds)
        names = {deletion_vectors.file_name(vector) for vector in vectors if vector is not None}
        for name in names - {None}:
            try:
                log.store.delete(str(name))
            except SiltError as error:
                _logger.warning("%s: deletion vectors that nothing uses are left in %s: %s", log.name, name, error)


@dataclass(frozen=True)
class FileChanges:
    """What becomes of the table's files.

    Args:
        opened: the files whose rows were looked at.
        removed: the files that leave the table.
        written: the files that come into it.
        marked: the files that stay with fewer rows.
        recorded: the change files.
    """

    opened: pa.Table
    removed: pa.Table
    written: Written | None = None
    marked: Marked | None = None
    recorded: ChangeData | None = None

    @property
    def added(self) -> int:
        return 0 if self.written is None else len(self.written.adds)

    @property
    def change_files(self) -> tuple[AddCDCFile, ...]:
        return () if self.recorded is None else self.recorded.files

    @property
    def uncommitted(self) -> tuple[Uncommitted, ...]:
        """What is to be deleted again where the changes are not committed."""
        return tuple(each for each in (self.written, self.marked, self.recorded) if each is not None)

    def vector_metrics(self, prefix: str) -> dict[str, int]:
        """What became of deletion vectors, by the reference's names."""
        updated = 0 if self.marked is None else self.marked.updated
        return {
            f"{prefix}DeletionVectorsAdded": 0 if self.marked is None else len(self.marked.adds) - updated,
            f"{prefix}DeletionVectorsRemoved": self.removed.num_rows - self.removed["deletion_vector"].null_count,
            f"{prefix}DeletionVectorsUpdated": updated,
        }


@dataclass(frozen=True)
class RowResult:
    """What a DELETE or an UPDATE did, before it is committed.

    Args:
        changes: of the files.
        changed: rows deleted or updated; None where that is not known.
        copied: rows written anew as they were.
    """

    changes: FileChanges
    changed: int | None = 0
    copied: int = 0


def check_names(schema: StructType, table: str, what: str = "column") -> None:
    """Passes where no column has a name that the engine uses for its own.

    Raises:
        InvalidNameError: one has.
    """
    for name in schema.names:
        if name.lower().startswith(RESERVED_PREFIX):
            raise InvalidNameError(f"the {what} `{name}` has a name that begins with {RESERVED_PREFIX}", table=table)


def at(chosen: pa.Table, paths: Iterable[str]) -> pa.Table:
    """Those of the files that have one of the paths."""
    return chosen.filter(pc.is_in(chosen["path"], value_set=pa.array(paths, pa.string())))


def row_count(target: Target, chosen: pa.Table) -> int:
    """How many rows the files hold; the footers of files without statistics are read."""
    return sum(records(target, chosen)) - row_counts.marked_rows(chosen)


def records(target: Target, chosen: pa.Table) -> list[int]:
    """How many rows each file holds, those that a deletion vector marks counted too; reads footers as `row_count`."""
    recorded = row_counts.num_records(chosen).to_pylist()
    names = [decode_path(path) for path in chosen["path"].to_pylist()]
    unknown = [name for name, count in zip(names, recorded, strict=True) if count is None]
    found = from_footers(target.log.store, unknown, StructType(), target.snapshot.properties)
    return [found[name].num_records if count is None else count for name, count in zip(names, recorded, strict=True)]


def touched(positioned: DataFrame, chosen: pa.Table) -> pa.Table:
    """Those of the files that some row of `positioned` comes from, by `scan.FILE`; runs a job."""
    with errors.mapped():
        found = positioned.select(F.col(scan.FILE)).distinct().collect()
    return at(chosen, (row[scan.FILE] for row in found))


def finish(
    target: Target,
    operation: Operation,
    changes: FileChanges,
    reads: ReadSet,
    settings: WriteSettings,
    metadata: Metadata | None = None,
) -> CommitResult | None:
    """Commits the changes; None where there are none, and neither the caller nor the isolation asks for a commit.

    Args:
        reads: the predicates that the verb has read by; the opened files are added.
        metadata: the table's new one, where it changes.
    """
    now = target.log.clock.now_ms()
    removed = target.snapshot.add_files(changes.removed)
    if changes.marked is not None:
        removed += target.snapshot.add_files(changes.marked.before)
    actions = Changes(
        operation,
        adds=(
            *(() if changes.marked is None else changes.marked.adds),
            *(() if changes.written is None else changes.written.adds),
        ),
        removes=tuple(add.remove(now) for add in removed),
        metadata=metadata,
        change_files=changes.change_files,
    )
    isolation = settings.commit.isolation_level or target.snapshot.properties.isolation_level
    if settings.txn is None and not is_needed(actions, isolation):
        return None
    opened = frozenset(changes.opened["path"].to_pylist()) | {add.path for add in removed}
    with_paths = replace(reads, paths=reads.paths | opened)
    return commit.commit(target.log, target.snapshot, actions, with_paths, settings, changes.uncommitted)


def end(
    target: Target, operation: Operation, rows: Rows, result: RowResult, settings: WriteSettings, started: int
) -> Outcome:
    """Commits what a DELETE or an UPDATE did.

    Args:
        operation: its name, and the metrics of its own.
        started: when it began, in milliseconds of the log's clock.
    """
    changes = result.changes
    metrics = {
        "numRemovedFiles": changes.removed.num_rows,
        "numRemovedBytes": size(changes.removed),
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
    committed = finish(target, whole, changes, reads, settings)
    return Outcome(
        operation.name,
        target.name,
        target.snapshot.version if committed is None else committed.version,
        files_added=changes.added,
        files_removed=changes.removed.num_rows,
        files_skipped=target.snapshot.num_files - changes.opened.num_rows,
        attempts=0 if committed is None else committed.attempts,
    )


def record(
    target: Target,
    changes: FileChanges,
    metadata: Metadata,
    rows: Mapping[str, DataFrame],
    expected: Mapping[str, int],
) -> FileChanges:
    """The changes with the change files of these rows; where they cannot be written, all that was written is deleted.

    Args:
        metadata: of the version that the files are meant for.
        rows: by how they changed.
        expected: how many there are of each kind.
    """
    try:
        return replace(changes, recorded=change_data.write(target.log, metadata, rows, expected))
    except BaseException:
        for each in changes.uncommitted:
            each.discard(target.log)
        raise


def check_kept(target: Target, changes: FileChanges, expected: int) -> None:
    """Passes where as many rows were written as there must be; otherwise the files are deleted.

    Raises:
        InternalError: rows were lost or doubled.
    """
    if changes.written is not None and changes.written.rows != expected:
        changes.written.discard(target.log)
        raise InternalError(
            f"{changes.written.rows} rows were written instead of {expected}; nothing was committed", table=target.name
        )


def drop_written(target: Target, changes: FileChanges) -> FileChanges:
    """The changes without any: what was written turned out to hold what was there before, and is deleted."""
    if changes.written is not None:
        changes.written.discard(target.log)
    return FileChanges(changes.opened, changes.removed.slice(0, 0))
