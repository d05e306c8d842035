"""Runs OPTIMIZE and VACUUM, which answer with delta-spark's rows, upkeep, and RESTORE; others do nothing."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime, timezone
from decimal import Decimal

from dbt.adapters.silt.engine.catalog import upkeep as surveys
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.commands.maintenance import optimize as optimize_command
from dbt.adapters.silt.engine.commands.maintenance import restore as restoring
from dbt.adapters.silt.engine.commands.maintenance import upkeep as upkeep_command
from dbt.adapters.silt.engine.commands.maintenance import vacuum as vacuum_command
from dbt.adapters.silt.engine.commands.maintenance.optimize import Layout, Optimized
from dbt.adapters.silt.engine.commands.maintenance.rewritten_bins import OPERATION, Sizes
from dbt.adapters.silt.engine.commands.maintenance.upkeep import Kept
from dbt.adapters.silt.engine.commands.maintenance.vacuum import RETENTION_CHECK, Retention, Vacuumed
from dbt.adapters.silt.engine.commands.spark.session_settings import is_checked
from dbt.adapters.silt.engine.commands.target import Outcome, Target
from dbt.adapters.silt.engine.kernel.clock import utc_text
from dbt.adapters.silt.engine.kernel.errors import StatementSyntaxError, UnsupportedStatementError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.maintenance.upkeep import budget_seconds
from dbt.adapters.silt.engine.kernel.transaction.changes import RESTORE_OPERATION
from dbt.adapters.silt.engine.kernel.transaction.restore import RestorePoint
from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.sql.ast import ObjectKind, TimeTravel
from dbt.adapters.silt.engine.statements.execute.session import named_schema
from dbt.adapters.silt.engine.statements.resolve import namespace
from dbt.adapters.silt.engine.statements.resolve.expansion import SqlFragment
from dbt.adapters.silt.engine.statements.resolve.namespace import WarehouseTable
from dbt.adapters.silt.engine.statements.steps.context import Context, Result, Routes, pass_to_spark
from dbt.adapters.silt.engine.statements.steps.on_table import Change, Texts, Verb, change_table, run_on_table

_HOUR_MS = 3_600_000
_SIZES = "struct<min: bigint, max: bigint, avg: double, totalFiles: bigint, totalSize: bigint>"
_OPTIMIZED = (
    "path string, metrics struct<numFilesAdded: bigint, numFilesRemoved: bigint, "
    f"filesAdded: {_SIZES}, filesRemoved: {_SIZES}, partitionsOptimized: bigint, numBins: bigint, "
    "totalConsideredFiles: bigint, totalFilesSkipped: bigint, deletionVectorStats: "
    "struct<numDeletionVectorsRemoved: bigint, numDeletionVectorRowsRemoved: bigint>, "
    "startTimeMs: bigint, endTimeMs: bigint>"
)
_DELETED = "path string, numDeletedFiles bigint, sizeOfDataDeleted bigint, numDeletedDirectories bigint"
_UPKEEP = (
    "table string, files bigint, small_files bigint, size bigint, marked double, bins bigint, score double, "
    "rewritten bigint, written bigint, deleted bigint, waits string"
)
_TO_DELETE = "path string, length bigint, modificationTime timestamp"


def _optimize(context: Context, statement: ast.Optimize) -> Result:
    """Runs OPTIMIZE: returns a row with the table's path and delta-spark's metrics, except the clustering metrics."""

    def run(table: WarehouseTable) -> Result:
        log, condition = table.log, statement.condition
        if condition is not None:
            (condition,) = context.resolver.resolve([SqlFragment(condition, table.long_qualifiers(None))]).texts
        layout = Layout(table.qualifier(None), condition, statement.zorder_by, statement.full)
        target = Target(log.name, log, log.snapshot())
        optimized = optimize_command.optimize(context.spark, target, layout, context.settings)
        answer = context.rows([(log.store.root, _metrics(optimized))], _OPTIMIZED)
        return Result(answer.dataframe, optimized.outcome, note=_of_optimize(optimized))

    return run_on_table(context, statement, Verb(OPERATION), run)


def _optimize_tables(context: Context, statement: ast.OptimizeTables) -> Result:
    """Runs OPTIMIZE TABLES: returns a row for each table; a dry run changes nothing."""
    seconds = budget_seconds(statement.budget)
    found = surveys.survey(context.catalog, _tables_to_tend(context, statement))
    if statement.dry_run:
        return context.rows([_kept(Kept(each.state, waits=each.state.waits)) for each in found], _UPKEEP)
    done = upkeep_command.upkeep(context.spark, surveys.uses_in(context.catalog), found, seconds, context.settings)
    return replace(context.rows([_kept(each) for each in done.tables], _UPKEEP), note=str(done))


def _tables_to_tend(context: Context, statement: ast.OptimizeTables) -> list[RelationName]:
    """Returns the tables that a statement names, or else the tables of its schema, or of the current database.

    Raises:
        RelationNotFoundError, SchemaNotFoundError: if a table or the schema does not exist.
        UnsupportedStatementError: if it names a view, or a table or schema that is not in the warehouse.
    """
    within = context.namespace
    if statement.schema is not None:
        schema = named_schema(context, statement.schema)
        if schema is None:
            raise _not_in_warehouse(statement.schema)
        within = within.within(*schema)
    if statement.names:
        for name in statement.names:
            if ast.is_path(name) or not isinstance(within.meaning(name), WarehouseTable):
                raise _not_in_warehouse(name)
        named = map(within.name_in_warehouse, statement.names)
        return [each for each in named if each is not None]
    found = surveys.tables_of(context.catalog, within.database)
    return [each for each in found if statement.schema is None or each.schema == within.schema]


def _not_in_warehouse(name: ast.Name) -> UnsupportedStatementError:
    return UnsupportedStatementError(
        "upkeep is for tables of the warehouse, by their names", table=".".join(name), remedy="Leave it out"
    )


def _kept(kept: Kept) -> tuple[object, ...]:
    """Returns the result for a table in the order of `_UPKEEP`."""
    state, bins = kept.state, kept.state.bins()
    best = bins[0].score(state.reads) if bins else None
    counts = (state.table, len(state.files), state.small, state.size, state.marked, len(bins), best)
    return (*counts, kept.rewritten, kept.written, kept.deleted, kept.waits or None)


def _vacuum(context: Context, statement: ast.Vacuum) -> Result:
    """Runs VACUUM: returns a row with the table's path and counts, or, for a dry run, a row per file to delete."""

    def retention(table: str) -> Retention:
        return Retention(_milliseconds(statement, table), is_checked(context.spark, RETENTION_CHECK))

    def run(table: WarehouseTable) -> Result:
        log = table.log
        given = replace(retention(log.name), held=context.catalog.held_files(log))
        vacuumed = vacuum_command.vacuum(log, given, context.settings, statement.lite, statement.dry_run)
        if vacuumed.outcome is None:
            return _to_delete(context, log, vacuumed)
        row = (log.store.root, len(vacuumed.garbage.files), vacuumed.garbage.size, vacuumed.folders_deleted)
        note = f"{log.name}: {_files(row[1], row[2])} deleted, which no version since {_since(vacuumed)} needs"
        return Result(context.rows([row], _DELETED).dataframe, vacuumed.outcome, note=note)

    operation = None if statement.dry_run else vacuum_command.OPERATION
    return run_on_table(context, statement, Verb(operation, refuse=retention), run)


def _refresh(context: Context, statement: ast.Refresh) -> Result:
    """Runs REFRESH, which does nothing, because each statement sees the newest version."""
    return Result() if context.namespace.may_be_in_warehouse(statement.table) else pass_to_spark(context, statement)


def _analyze(context: Context, statement: ast.Analyze) -> Result:
    """Runs ANALYZE, which does nothing, because statistics are always kept."""
    if statement.name is None:
        return Result()
    if statement.kind is ObjectKind.SCHEMA:
        in_warehouse = named_schema(context, statement.name) is not None
    else:
        in_warehouse = context.namespace.may_be_in_warehouse(statement.name)
    return Result() if in_warehouse else pass_to_spark(context, statement)


def _metrics(optimized: Optimized) -> tuple[object, ...]:
    """Returns the metrics in the order of `_OPTIMIZED`."""
    vectors = (optimized.vectors_removed, optimized.vector_rows_removed) if optimized.vectors_removed else None
    return (
        len(optimized.added.of_files),
        len(optimized.removed.of_files),
        _sizes(optimized.added),
        _sizes(optimized.removed),
        optimized.partitions,
        optimized.bins,
        optimized.considered,
        optimized.considered - len(optimized.removed.of_files),
        vectors,
        optimized.started_ms,
        optimized.ended_ms,
    )


def _sizes(sizes: Sizes) -> tuple[object, ...]:
    count = len(sizes.of_files)
    ends = (min(sizes.of_files), max(sizes.of_files), sizes.total / count) if count else (None, None, 0.0)
    return (*ends, count, sizes.total)


def _to_delete(context: Context, log: DeltaLog, vacuumed: Vacuumed) -> Result:
    rows = [
        (
            f"{log.store.root}/{file.path}",
            file.size,
            datetime.fromtimestamp(file.modified_ms / 1000, timezone.utc),
        )
        for file in vacuumed.garbage.files
    ]
    note = "" if rows else f"{log.name}: nothing to delete before {_since(vacuumed)}"
    return replace(context.rows(rows, _TO_DELETE), note=note)


def _of_optimize(optimized: Optimized) -> str:
    """Returns the effect of an OPTIMIZE as a line."""
    table, removed, added = optimized.outcome.table, optimized.removed, optimized.added
    if not removed.of_files:
        return f"{table}: nothing to merge, {optimized.considered:,} files are kept as they are"
    return (
        f"{table}@v{optimized.outcome.version}: {_files(len(removed.of_files), removed.total)} written again as "
        f"{_files(len(added.of_files), added.total)}"
    )


def _files(number: int, size: int) -> str:
    return f"{number:,} file{'' if number == 1 else 's'} ({size:,} bytes)"


def _since(vacuumed: Vacuumed) -> str:
    return utc_text(vacuumed.cutoff_ms)


def _milliseconds(statement: ast.Vacuum, table: str) -> int | None:
    text = statement.retain_hours
    if text is None:
        return None
    if not re.fullmatch(r"-?\s*[0-9]+(\.[0-9]*)?|-?\s*\.[0-9]+", text.strip()):
        raise StatementSyntaxError(
            f"`{text}` is not a number of hours",
            remedy="Write RETAIN with a number, as in RETAIN 168 HOURS",
            table=table,
        )
    return int(Decimal(re.sub(r"\s", "", text)) * _HOUR_MS)


def _restore(context: Context, statement: ast.Restore) -> Result:
    """Runs RESTORE TABLE ... TO VERSION | TIMESTAMP AS OF."""

    def run(change: Change) -> Outcome:
        point = _restore_point(context, change.target.log, statement.to)
        return restoring.restore(change.target, point, change.settings)

    return change_table(context, statement, Verb(RESTORE_OPERATION), lambda _: Texts(), run)


def _restore_point(context: Context, log: DeltaLog, to: TimeTravel) -> RestorePoint:
    """Returns the version to restore; a time after the newest commit means the newest version, as in delta-spark."""
    if to.timestamp is None:
        return RestorePoint(namespace.version_of(context.namespace, log, to))
    moment_ms = namespace.moment(context.namespace, to.timestamp)
    text = utc_text(moment_ms, "+00:00", "milliseconds")
    return RestorePoint(log.version_at(moment_ms, or_newest=True), text)


ROUTES: Routes = {
    ast.Refresh: _refresh,
    ast.Analyze: _analyze,
    ast.Optimize: _optimize,
    ast.OptimizeTables: _optimize_tables,
    ast.Vacuum: _vacuum,
    ast.Restore: _restore,
}
