"""DELETE FROM."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.commands import files, row_changes, scan
from dbt.adapters.silt.engine.commands.row_changes import FileChanges, Limits, Rows
from dbt.adapters.silt.engine.commands.target import Outcome, Target, WriteSettings
from dbt.adapters.silt.engine.kernel import skipping
from dbt.adapters.silt.engine.kernel.changes import Operation
from dbt.adapters.silt.engine.kernel.errors import InternalError
from dbt.adapters.silt.engine.kernel.features import check_writable
from dbt.adapters.silt.engine.kernel.transaction import ReadSet

OPERATION = "DELETE"


def delete(
    spark: SparkSession, target: Target, rows: Rows, settings: WriteSettings, limits: Limits | None = None
) -> Outcome:
    """Deletes the rows for which the condition is true; those for which it is null stay.

    A delete of whole files, as far as partition values and statistics prove it, runs no Spark job.

    Raises:
        UnsupportedFeatureError: the table needs a feature that this engine cannot write.
        ConcurrentModificationError: another writer's commit stands in the way.
        DataFileMissingError, TableDamagedError: a data file cannot be read.
    """
    started = target.log.clock.now_ms()
    check_writable(target.snapshot.protocol, target.name, target.snapshot.metadata)
    changes, deleted, copied = _changes(spark, target, rows, limits or Limits())
    metrics = {
        "numRemovedFiles": changes.removed.num_rows,
        "numRemovedBytes": row_changes.size(changes.removed),
        "numAddedFiles": changes.added,
        "numAddedBytes": 0 if changes.written is None else changes.written.size,
        "numDeletedRows": deleted,
        "numCopiedRows": None if deleted is None else copied,
        "numAddedChangeFiles": 0,
        "numDeletionVectorsAdded": 0,
        "numDeletionVectorsRemoved": 0,
        "numDeletionVectorsUpdated": 0,
        "executionTimeMs": target.log.clock.now_ms() - started,
    }
    predicate = [] if rows.condition is None else [rows.condition]
    operation = Operation(
        OPERATION, {"predicate": json.dumps(predicate, ensure_ascii=False)}, row_changes.texts(metrics)
    )
    reads = ReadSet(predicates=(rows.predicate,), whole_table=rows.condition is None)
    committed = row_changes.finish(target, operation, changes, reads, settings)
    return Outcome(
        OPERATION,
        target.name,
        target.snapshot.version if committed is None else committed.version,
        rows_deleted=deleted,
        files_added=changes.added,
        files_removed=changes.removed.num_rows,
        files_skipped=target.snapshot.num_files - changes.opened.num_rows,
        attempts=0 if committed is None else committed.attempts,
    )


def _changes(spark: SparkSession, target: Target, rows: Rows, limits: Limits) -> tuple[FileChanges, int | None, int]:
    """What becomes of the files, the rows deleted where that is known, and the rows copied."""
    everything = target.snapshot.files
    nothing = everything.slice(0, 0)
    if rows.condition is None:
        return FileChanges(nothing, everything), row_changes.known_rows(everything), 0
    candidates = skipping.prune(target.snapshot, rows.predicate)
    is_whole = skipping.fully_matched(target.snapshot, rows.predicate, candidates)
    whole, others = candidates.filter(is_whole), candidates.filter(pc.invert(is_whole))
    deleted = row_changes.known_rows(whole)
    if others.num_rows == 0:
        return FileChanges(nothing, whole), deleted, 0
    rewritten, deleted_here, copied = _rewrite(spark, target, rows, others, limits)
    removed = pa.concat_tables([whole, rewritten.removed])
    return (
        FileChanges(others, removed, rewritten.written),
        None if deleted is None else deleted + deleted_here,
        copied,
    )


def _rewrite(
    spark: SparkSession, target: Target, rows: Rows, candidates: pa.Table, limits: Limits
) -> tuple[FileChanges, int, int]:
    chosen = candidates
    if row_changes.size(candidates) > limits.at_once:
        chosen = row_changes.touched(
            _read(spark, target, rows, candidates, with_position=True).filter(_matches(rows)), candidates
        )
        if chosen.num_rows == 0:
            return FileChanges(candidates, chosen), 0, 0
    kept = _read(spark, target, rows, chosen).filter(~_matches(rows))
    written = files.write(kept, target.log, target.snapshot.metadata)
    deleted = row_changes.row_count(target, chosen) - written.rows
    changes = FileChanges(candidates, chosen, written)
    if deleted < 0:
        files.discard(target.log, written)
        raise InternalError("a DELETE kept more rows than the files held; nothing was committed", table=target.name)
    if deleted == 0:
        return row_changes.drop_written(target, changes), 0, 0
    return changes, deleted, written.rows


def _read(spark: SparkSession, target: Target, rows: Rows, chosen: pa.Table, with_position: bool = False) -> DataFrame:
    return scan.read(spark, target.log, target.snapshot, chosen, with_position).alias(rows.alias)


def _matches(rows: Rows) -> Column:
    # The line break ends a comment at the condition's end.
    return F.expr(f"(({rows.condition}\n) <=> true)")
