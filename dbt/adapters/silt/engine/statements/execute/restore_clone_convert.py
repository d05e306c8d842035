"""Runs RESTORE, CLONE and CONVERT TO DELTA."""

from __future__ import annotations

from dataclasses import replace

from dbt.adapters.silt.engine.commands.maintenance import restore as restoring
from dbt.adapters.silt.engine.commands.spark.types import column_type
from dbt.adapters.silt.engine.commands.tables import clone as cloning
from dbt.adapters.silt.engine.commands.tables import convert as converting
from dbt.adapters.silt.engine.commands.tables.clone import CloneOptions, CloneSource
from dbt.adapters.silt.engine.commands.tables.table_location import TableLocation
from dbt.adapters.silt.engine.commands.target import Outcome
from dbt.adapters.silt.engine.kernel.clock import utc_text
from dbt.adapters.silt.engine.kernel.errors import UnsupportedStatementError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.transaction.branch_log import BranchLog
from dbt.adapters.silt.engine.kernel.transaction.changes import RESTORE_OPERATION, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.restore import RestorePoint
from dbt.adapters.silt.engine.reuse.origins import origin_of
from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.sql.ast import TimeTravel
from dbt.adapters.silt.engine.statements.resolve import namespace
from dbt.adapters.silt.engine.statements.resolve.reads import Inputs
from dbt.adapters.silt.engine.statements.steps.context import Context, Result
from dbt.adapters.silt.engine.statements.steps.create_target import CreateTarget, create_target_of
from dbt.adapters.silt.engine.statements.steps.on_table import (
    Change,
    Maker,
    Texts,
    Verb,
    change_table,
    make_table,
    report,
    settings_with,
    table_to_change,
)
from dbt.adapters.silt.engine.statements.steps.pass_to_spark import pass_to_spark


def restore(context: Context, statement: ast.Restore) -> Result:
    """Runs RESTORE TABLE ... TO VERSION | TIMESTAMP AS OF."""

    def run(change: Change) -> Outcome:
        point = _restore_point(context, change.target.log, statement.to)
        return restoring.restore(change.target, point, change.settings)

    return change_table(context, statement, Verb(RESTORE_OPERATION), lambda _: Texts(), run)


def clone(context: Context, statement: ast.Clone) -> Result:
    """Runs CREATE TABLE ... SHALLOW | DEEP CLONE."""
    target = create_target_of(context, statement.table, statement.mode)
    source = table_to_change(context, statement.source)
    if target is None and source is None:
        return pass_to_spark(context, statement)
    if target is None or source is None:
        raise UnsupportedStatementError(
            "a table of a warehouse can only be cloned to a table of a warehouse",
            table=".".join(statement.table),
            remedy="Use `create table ... as select`",
        )
    return make_table(
        context,
        statement,
        Verb(cloning.OPERATION, lambda table: _refuse_location(statement, table)),
        target,
        lambda target: _clone(context, statement, target, source.log),
    )


def _clone(context: Context, statement: ast.Clone, target: CreateTarget, source: DeltaLog) -> Maker:
    cloned = CloneSource(source.name, source, _source_snapshot(context, source, statement.at))
    origin = origin_of(source, cloned.snapshot.metadata.id, cloned.snapshot.version)
    resolved = context.resolver.resolve([], target=target.log)
    inputs = Inputs({source.name: (cloned.snapshot.version,)}).and_earlier(resolved.inputs)
    return lambda log: cloning.clone(
        TableLocation(log, resolved.target, is_managed=target.path is None),
        cloned,
        CloneOptions(statement.shallow, statement.properties),
        target.mode(statement.mode),
        settings_with(context, replace(resolved, inputs=inputs)).with_commit_info(origin.commit_info()),
    )


def convert(context: Context, statement: ast.ConvertToDelta) -> Result:
    """Runs CONVERT TO DELTA of a folder; a folder inside a schema's folder is found by its name afterwards."""
    source = statement.source
    is_folder = len(source) == 2 and source[0].lower() in ("parquet", "delta")
    if not is_folder and not context.namespace.may_be_in_warehouse(source):
        return pass_to_spark(context, statement)
    if not is_folder or (source[0].lower() == "delta" and not context.catalog.table_at(source[1]).exists()):
        raise UnsupportedStatementError(
            "only a folder of Parquet files can be converted",
            table=".".join(source),
            remedy="Name it by its path: convert to delta parquet.`/the/folder`",
        )
    log = context.catalog.table_at(source[1])
    partitioning = [replace(column_type(str(each.type), log.name), name=each.name) for each in statement.partitioned_by]
    outcome = converting.convert(context.spark, log, partitioning, context.settings, statement.statistics)
    return report(context, log, Result(outcome=outcome))


def _refuse_location(statement: ast.Clone, table: str) -> None:
    if statement.location is not None:
        raise UnsupportedStatementError(
            "the location of a named table is its folder in the warehouse",
            table=table,
            remedy=f"Leave LOCATION out, or clone to delta.`{statement.location}`",
        )


def _source_snapshot(context: Context, log: DeltaLog, at: TimeTravel | None) -> Snapshot:
    if at is None and isinstance(log, BranchLog):
        log.note(ReadSet(whole_table=True))
    return log.snapshot() if at is None else log.snapshot_at(namespace.version_of(context.namespace, log, at))


def _restore_point(context: Context, log: DeltaLog, to: TimeTravel) -> RestorePoint:
    """Returns the version to restore; a time after the newest commit means the newest version, as in delta-spark."""
    if to.timestamp is None:
        return RestorePoint(namespace.version_of(context.namespace, log, to))
    moment_ms = namespace.moment(context.namespace, to.timestamp)
    text = utc_text(moment_ms, "+00:00", "milliseconds")
    return RestorePoint(log.version_at(moment_ms, or_newest=True), text)
