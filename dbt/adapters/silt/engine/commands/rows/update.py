"""Runs UPDATE: writes the changed rows, and removes the old rows with their files or by deletion vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
from pyroaring import BitMap64
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.commands.reading import scan
from dbt.adapters.silt.engine.commands.rows import file_changes, file_rows, marking
from dbt.adapters.silt.engine.commands.rows.file_changes import FileChanges, RowResult
from dbt.adapters.silt.engine.commands.rows.file_rows import Limits, Rows, Touched, check_condition
from dbt.adapters.silt.engine.commands.spark import frames
from dbt.adapters.silt.engine.commands.target import Outcome, Target, WriteSettings
from dbt.adapters.silt.engine.commands.writing import change_data, checks, files, generated, row_ids, set_clause
from dbt.adapters.silt.engine.commands.writing.checks import Check
from dbt.adapters.silt.engine.commands.writing.set_clause import AssignedColumn, CastAssignment
from dbt.adapters.silt.engine.kernel.files import deletion_vectors
from dbt.adapters.silt.engine.kernel.files.deletion_vectors import Positions
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.scan import change_feed, skipping
from dbt.adapters.silt.engine.kernel.table import storable_schema
from dbt.adapters.silt.engine.kernel.table.schema import StructField
from dbt.adapters.silt.engine.kernel.transaction.changes import Operation, as_strings
from dbt.adapters.silt.engine.sql.ast import Assignment

OPERATION = "UPDATE"

_CHANGED = "__silt_changed"
_UPDATED = "updated"


def update(
    spark: SparkSession,
    target: Target,
    assignments: Sequence[Assignment],
    rows: Rows,
    settings: WriteSettings,
    limits: Limits | None = None,
) -> Outcome:
    """Sets columns of the rows for which the condition is true.

    Args:
        assignments: a column's name may begin with the alias of `rows`.

    Raises:
        ColumnNotFoundError, InvalidStatementError, TypeMismatchError: an assignment cannot be made, or the condition is
            not boolean.
        DataRejectedError: if a new value breaks a rule of the table, or does not fit into its column.
        UnsupportedFeatureError: if the table needs a feature that this engine cannot write.
        ConcurrentModificationError: if another writer's commit conflicts.
        DataFileMissingError, TableDamagedError: if a data file cannot be read.
    """
    started = target.log.clock.now_ms()
    target.check_writable()
    storable_schema.check_names(target.snapshot.schema, target.name)
    check_condition(spark, target, rows)
    assigned = set_clause.resolve(assignments, target.snapshot.schema, rows.alias, target.name)
    result = _run(spark, target, assigned, rows, limits or Limits())
    operation = Operation(OPERATION, metrics=as_strings({"numUpdatedRows": result.changed}))
    outcome = file_changes.commit_rows(target, operation, rows, result, settings, started)
    return replace(outcome, rows_updated=result.changed)


def _run(
    spark: SparkSession, target: Target, assigned: Sequence[AssignedColumn], rows: Rows, limits: Limits
) -> RowResult:
    everything = target.snapshot.files
    candidates = everything if rows.condition is None else skipping.prune(target.snapshot, rows.predicate)
    uses_vectors = rows.condition is not None and marking.writes_deletion_vectors(target.snapshot)
    if uses_vectors or change_data.is_recorded(target.snapshot):
        return _mark(spark, target, assigned, rows, candidates, limits)

    def to_change() -> DataFrame:
        return _read(spark, target, rows, candidates, with_position=True).filter(F.col(_CHANGED))

    if rows.condition is None:
        touched = Touched(candidates, file_rows.row_count(target, candidates))
    else:
        touched = file_rows.to_rewrite(target, candidates, to_change, limits, rows.are_repeatable)
    chosen, found = touched.files, touched.rows
    frame, rules = _new_rows(_read(spark, target, rows, chosen), target, assigned)
    if chosen.num_rows == 0:
        return RowResult(FileChanges(candidates, chosen))
    counts = {_UPDATED: f"count_if({_CHANGED})"} if found is None else {}
    if not counts and not rules:
        frame = frame.drop(_CHANGED)  # Spark would copy each row once more to remove the column.
    written = files.write_to(target, frame, target.snapshot.metadata, rules, counts)
    changes = FileChanges(candidates, chosen, written)
    file_changes.check_kept(target, changes, file_rows.row_count(target, chosen))
    updated = written.metrics[_UPDATED] if found is None else found
    if updated == 0:
        return RowResult(file_changes.drop_written(target, changes))
    return RowResult(changes, updated, written.rows - updated)


def _mark(
    spark: SparkSession,
    target: Target,
    assigned: Sequence[AssignedColumn],
    rows: Rows,
    candidates: pa.Table,
    limits: Limits,
) -> RowResult:
    """Deletes the old rows by deletion vectors, or removes their files, and writes the new and the kept rows."""
    if rows.condition is None:
        before = _read(spark, target, rows, candidates)
        to_delete: Positions = _all_positions(target, candidates)
    else:
        found = _read(spark, target, rows, candidates, with_position=True).filter(F.col(_CHANGED))
        before = marking.kept(found).alias(rows.alias)
        to_delete = marking.positions(target, before, candidates)
    plan = marking.plan(target, candidates, to_delete)
    new, rules = _new_rows(before, target, assigned)
    if plan.num_deleted == 0:
        return RowResult(FileChanges(candidates, plan.touched))
    if change_data.is_recorded(target.snapshot):
        new = change_data.stable(new)
    left = scan.read_to_rewrite(spark, target.log, target.snapshot, plan.files_to_rewrite, only=plan.survivors)
    both = new.unionByName(left.withColumn(_CHANGED, F.lit(False)), allowMissingColumns=True)
    metadata = target.snapshot.metadata
    written = files.write_to(target, marking.gathered(both, plan, plan.num_deleted, limits), metadata, rules)
    file_changes.check_kept(
        target, FileChanges(candidates, plan.removed, written), plan.num_deleted + plan.num_survivors
    )
    changes = marking.changes(target, candidates, plan, written)
    if change_data.is_recorded(target.snapshot):
        images = {change_feed.UPDATE_PREIMAGE: before, change_feed.UPDATE_POSTIMAGE: new}
        changes = file_changes.record(target, changes, metadata, images, dict.fromkeys(images, plan.num_deleted))
    return RowResult(changes, plan.num_deleted, plan.num_survivors)


def _read(spark: SparkSession, target: Target, rows: Rows, chosen: pa.Table, with_position: bool = False) -> DataFrame:
    """Returns the rows of the files, with a column that shows whether each row changes."""
    frame = scan.read_to_rewrite(spark, target.log, target.snapshot, chosen, with_position).alias(rows.alias)
    # The line break ends a comment at the condition's end.
    condition = "true" if rows.condition is None else f"(({rows.condition}\n) <=> true)"
    return frame.withColumn(_CHANGED, F.expr(condition))


def _new_rows(
    frame: DataFrame, target: Target, assigned: Sequence[AssignedColumn]
) -> tuple[DataFrame, tuple[Check, ...]]:
    """Returns the new values of all rows of the frame, and the checks of the changed rows."""
    made = set_clause.settings(frame, assigned, target.name)
    per_column = set_clause.by_column(made)
    changed = F.col(_CHANGED)
    columns = {m.name: _column(m, per_column.get(m.name.lower(), ())) for m in target.snapshot.schema}
    lost, lost_checks = set_clause.losses([(_CHANGED, setting) for setting in made], target.name)
    rules = checks.table_checks(target.snapshot.schema, target.snapshot.properties, target.name)
    of_changed = tuple(replace(rule, violation=changed & rule.violation) for rule in rules)
    ids = row_ids.after(frame, target.snapshot.properties, changed)
    rows = frames.select(frame, {**columns, _CHANGED: _CHANGED, **lost, **ids})
    computed = {
        m.name: changed for m in generated.generated_columns(target.snapshot.schema) if m.name.lower() not in per_column
    }
    return generated.computed(rows, target.snapshot.schema, computed, target.name), (*lost_checks, *of_changed)


def _column(member: StructField, own: Sequence[CastAssignment]) -> str | Column:
    """Returns a column of the table, with its new values in changed rows; as SQL if SQL can express it."""
    name, text = quote(member.name), set_clause.as_text(own)
    if not own:
        return name
    if text is not None:
        return f"case when {_CHANGED} then {text} else {name} end"
    new = set_clause.with_assignments(F.col(name), own)
    return F.when(F.col(_CHANGED), new).otherwise(F.col(name))


def _all_positions(target: Target, chosen: pa.Table) -> dict[str, BitMap64]:
    """Returns the positions of all rows of files."""
    marked = deletion_vectors.read_all(target.log.store, chosen, target.name)
    sizes = zip(chosen["path"].to_pylist(), file_rows.records(target, chosen), strict=True)
    return {path: marked.get(path, BitMap64()).flip(0, size) for path, size in sizes}
