"""UPDATE."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.commands import assignments, checks, files, generated, row_changes, scan
from dbt.adapters.silt.engine.commands.assignments import Assignment, Name
from dbt.adapters.silt.engine.commands.checks import Check
from dbt.adapters.silt.engine.commands.partitions import quoted
from dbt.adapters.silt.engine.commands.row_changes import FileChanges, Limits, Rows
from dbt.adapters.silt.engine.commands.target import Outcome, Target, WriteSettings
from dbt.adapters.silt.engine.kernel import skipping
from dbt.adapters.silt.engine.kernel.changes import Operation
from dbt.adapters.silt.engine.kernel.features import check_writable
from dbt.adapters.silt.engine.kernel.transaction import ReadSet

OPERATION = "UPDATE"

_CHANGED = "__silt_changed"
_UPDATED = "updated"


def update(
    spark: SparkSession,
    target: Target,
    pairs: Sequence[tuple[Name, str]],
    rows: Rows,
    settings: WriteSettings,
    limits: Limits | None = None,
) -> Outcome:
    """Sets columns of the rows for which the condition is true.

    Args:
        pairs: the column, its name as parts, and the text of its new value.

    Raises:
        ColumnNotFoundError, InvalidStatementError, TypeMismatchError: an assignment cannot be made.
        DataRejectedError: a new value breaks a rule of the table, or does not fit into its column.
        UnsupportedFeatureError: the table needs a feature that this engine cannot write.
        ConcurrentModificationError: another writer's commit stands in the way.
        DataFileMissingError, TableDamagedError: a data file cannot be read.
    """
    started = target.log.clock.now_ms()
    check_writable(target.snapshot.protocol, target.name, target.snapshot.metadata)
    row_changes.check_names(target.snapshot.schema, target.name)
    assigned = assignments.resolve(pairs, target.snapshot.schema, rows.alias, target.name)
    changes, updated = _changes(spark, target, assigned, rows, limits or Limits())
    copied = 0 if changes.written is None else changes.written.rows - updated
    metrics = {
        "numRemovedFiles": changes.removed.num_rows,
        "numRemovedBytes": row_changes.size(changes.removed),
        "numAddedFiles": changes.added,
        "numAddedBytes": 0 if changes.written is None else changes.written.size,
        "numUpdatedRows": updated,
        "numCopiedRows": copied,
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
        rows_updated=updated,
        files_added=changes.added,
        files_removed=changes.removed.num_rows,
        files_skipped=target.snapshot.num_files - changes.opened.num_rows,
        attempts=0 if committed is None else committed.attempts,
    )


def _changes(
    spark: SparkSession, target: Target, assigned: Sequence[Assignment], rows: Rows, limits: Limits
) -> tuple[FileChanges, int]:
    """What becomes of the files, and the rows updated."""
    everything = target.snapshot.files
    candidates = everything if rows.condition is None else skipping.prune(target.snapshot, rows.predicate)
    chosen = candidates
    if rows.condition is not None and row_changes.size(candidates) > limits.at_once:
        found = _read(spark, target, rows, candidates, with_position=True)
        chosen = row_changes.touched(found.filter(F.col(_CHANGED)), candidates)
    if chosen.num_rows == 0:
        _new_rows(_read(spark, target, rows, chosen), target, assigned)
        return FileChanges(candidates, chosen), 0
    frame, rules = _new_rows(_read(spark, target, rows, chosen), target, assigned)
    counts = {_UPDATED: F.count_if(F.col(_CHANGED))}
    written = files.write(frame, target.log, target.snapshot.metadata, rules, counts)
    changes = FileChanges(candidates, chosen, written)
    row_changes.check_kept(target, changes, row_changes.row_count(target, chosen))
    if written.metrics[_UPDATED] == 0:
        return row_changes.drop_written(target, changes), 0
    return changes, written.metrics[_UPDATED]


def _read(spark: SparkSession, target: Target, rows: Rows, chosen: pa.Table, with_position: bool = False) -> DataFrame:
    """The rows of the files, each with whether it is to be changed."""
    frame = scan.read(spark, target.log, target.snapshot, chosen, with_position).alias(rows.alias)
    # The line break ends a comment at the condition's end.
    condition = "true" if rows.condition is None else f"(({rows.condition}\n) <=> true)"
    return frame.withColumn(_CHANGED, F.expr(condition))


def _new_rows(frame: DataFrame, target: Target, assigned: Sequence[Assignment]) -> tuple[DataFrame, tuple[Check, ...]]:
    """All rows of the frame as the table is to have them, and what the changed ones must keep."""
    made = assignments.settings(frame, assigned, target.name)
    per_column = assignments.by_column(made)
    changed = F.col(_CHANGED)
    columns = []
    for member in target.snapshot.schema:
        old = F.col(quoted(member.name))
        own = per_column.get(member.name.lower())
        new = old if own is None else F.when(changed, assignments.applied(old, own)).otherwise(old)
        columns.append(new.alias(member.name))
    lost, lost_checks = assignments.losses([(_CHANGED, setting) for setting in made], target.name)
    rules = checks.table_checks(target.snapshot.schema, target.snapshot.properties, target.name)
    of_changed = tuple(replace(rule, violation=changed & rule.violation) for rule in rules)
    rows = frame.select(*columns, changed, *lost.values())
    computed = {
        m.name: changed for m in generated.generated_columns(target.snapshot.schema) if m.name.lower() not in per_column
    }
    return generated.computed(rows, target.snapshot.schema, computed), (*lost_checks, *of_changed)
