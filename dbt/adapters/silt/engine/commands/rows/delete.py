"""Runs DELETE FROM and TRUNCATE: removes whole files, and rewrites the remaining files or adds deletion vectors."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.commands.commit import commit
from dbt.adapters.silt.engine.commands.reading import scan
from dbt.adapters.silt.engine.commands.rows import file_changes, file_rows, marking
from dbt.adapters.silt.engine.commands.rows.file_changes import FileChanges, RowResult
from dbt.adapters.silt.engine.commands.rows.file_rows import CountedRows, ExpectedRows, Limits, Rows, check_condition
from dbt.adapters.silt.engine.commands.target import Outcome, Target, WriteSettings
from dbt.adapters.silt.engine.commands.writing import change_data, files
from dbt.adapters.silt.engine.kernel.files import stats_json
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.scan import change_feed, skipping
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet, as_strings

OPERATION = "DELETE"
TRUNCATE = "TRUNCATE"


def delete(
    spark: SparkSession, target: Target, rows: Rows, settings: WriteSettings, limits: Limits | None = None
) -> Outcome:
    """Deletes the rows for which the condition is true; rows for which it is null are kept.

    Deleting whole files, if partition values and statistics prove that all rows match, runs no Spark job.

    Raises:
        InvalidStatementError: if the condition is not boolean.
        UnsupportedFeatureError: if the table needs a feature that this engine cannot write.
        ConcurrentModificationError: if another writer's commit conflicts.
        DataFileMissingError, TableDamagedError: if a data file cannot be read.
    """
    started = target.log.clock.now_ms()
    target.check_writable()
    check_condition(spark, target, rows)
    result = _run(spark, target, rows, limits or Limits())
    operation = Operation(OPERATION, metrics=as_strings({"numDeletedRows": result.changed}))
    outcome = file_changes.commit_rows(target, operation, rows, result, settings, started)
    return replace(outcome, rows_deleted=result.changed)


def _run(spark: SparkSession, target: Target, rows: Rows, limits: Limits) -> RowResult:
    everything = target.snapshot.files
    nothing = everything.slice(0, 0)
    if rows.condition is None:
        return RowResult(FileChanges(nothing, everything), stats_json.row_count(everything))
    candidates = skipping.prune(target.snapshot, rows.predicate)
    is_whole = skipping.fully_matched(target.snapshot, rows.predicate, candidates)
    whole, others = candidates.filter(is_whole), candidates.filter(pc.invert(is_whole))
    deleted = stats_json.row_count(whole)
    if others.num_rows == 0:
        return RowResult(FileChanges(nothing, whole), deleted)
    if marking.finds_rows_by_position(target.snapshot):
        return _mark(spark, target, rows, whole, others, limits)
    result = _rewrite(spark, target, rows, others, limits)
    changes = replace(result.changes, removed=pa.concat_tables([whole, result.changes.removed]))
    changed = None if deleted is None or result.changed is None else deleted + result.changed
    return RowResult(changes, changed, result.copied)


def _mark(
    spark: SparkSession, target: Target, rows: Rows, whole: pa.Table, candidates: pa.Table, limits: Limits
) -> RowResult:
    """Removes the whole files, and deletes the candidates' rows by deletion vectors or by rewriting their files."""
    is_recorded = change_data.is_recorded(target.snapshot)
    found = _read(spark, target, rows, candidates, with_position=True).filter(_matches(rows))
    if is_recorded:
        found = marking.kept(found)
    plan = marking.plan(target, candidates, marking.positions(target, found, candidates))
    written = None
    if plan.files_to_rewrite.num_rows:
        left = scan.read_to_rewrite(spark, target.log, target.snapshot, plan.files_to_rewrite, only=plan.survivors)
        written = files.write_to(target, marking.gathered(left, plan, 0, limits), target.snapshot.metadata)
        file_changes.check_kept(target, FileChanges(candidates, plan.files_to_rewrite, written), plan.num_survivors)
    changes = marking.changes(target, candidates, plan, written)
    changes = replace(changes, removed=pa.concat_tables([whole, changes.removed]))
    deleted = plan.num_deleted + file_rows.row_count(target, whole)
    if is_recorded and (plan.files_to_rewrite.num_rows or plan.files_to_mark.num_rows):
        to_delete = found.select(*map(quote, target.snapshot.schema.names))
        gone = scan.read(spark, target.log, target.snapshot, whole).unionAll(to_delete)
        deletions, expected = {change_feed.DELETE: gone}, {change_feed.DELETE: deleted}
        changes = file_changes.record(target, changes, target.snapshot.metadata, deletions, expected)
    return RowResult(changes, deleted, plan.num_survivors)


def _rewrite(spark: SparkSession, target: Target, rows: Rows, candidates: pa.Table, limits: Limits) -> RowResult:
    """Rewrites the files without the deleted rows."""

    def matching() -> DataFrame:
        return _read(spark, target, rows, candidates, with_position=True).filter(_matches(rows))

    touched = file_rows.to_rewrite(target, candidates, matching, limits, rows.are_repeatable)
    chosen = touched.files
    if chosen.num_rows == 0:
        return RowResult(FileChanges(candidates, chosen))
    held = file_rows.row_count(target, chosen)
    read: CountedRows | ExpectedRows
    if touched.rows is None:
        read = file_rows.counted(spark, target, chosen)
    else:
        frame = scan.read_to_rewrite(spark, target.log, target.snapshot, chosen)
        read = ExpectedRows(frame, chosen, held - touched.rows)
    kept = read.frame.alias(rows.alias).filter(~_matches(rows))
    written = files.write_to(target, kept, target.snapshot.metadata)
    changes = FileChanges(candidates, chosen, written)
    file_changes.check_read(target, changes, read, written.rows)
    if written.rows == held:
        return RowResult(file_changes.drop_written(target, changes))
    return RowResult(changes, held - written.rows, written.rows)


def _read(spark: SparkSession, target: Target, rows: Rows, chosen: pa.Table, with_position: bool = False) -> DataFrame:
    return scan.read(spark, target.log, target.snapshot, chosen, with_position).alias(rows.alias)


def _matches(rows: Rows) -> Column:
    # The line break ends a comment at the condition's end.
    return F.expr(f"(({rows.condition}\n) <=> true)")


def truncate(target: Target, settings: WriteSettings) -> Outcome:
    """Deletes all rows of the table; runs no Spark job.

    Raises:
        ConcurrentModificationError: if another writer changed any file of the table.
    """
    snapshot = target.snapshot
    target.check_writable()
    now = target.log.clock.now_ms()
    changes = Changes(
        operation=Operation(TRUNCATE, metrics={"numRemovedFiles": str(snapshot.num_files)}),
        removes=tuple(add.remove(now) for add in snapshot.add_files()),
    )
    committed = commit(target.log, snapshot, changes, ReadSet(whole_table=True), settings)
    return Outcome(
        TRUNCATE,
        target.name,
        committed.version,
        rows_deleted=stats_json.row_count(snapshot.files),
        files_removed=snapshot.num_files,
        attempts=committed.attempts,
    )
