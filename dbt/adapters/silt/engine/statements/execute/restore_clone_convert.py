"""Statements about a table's earlier versions, and about copies of them: RESTORE and CLONE; and CONVERT TO DELTA."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone

from dbt.adapters.silt.engine.commands.maintenance import restore as restoring
from dbt.adapters.silt.engine.commands.maintenance.restore import RestorePoint
from dbt.adapters.silt.engine.commands.spark.types import column_type
from dbt.adapters.silt.engine.commands.tables import clone as cloning
from dbt.adapters.silt.engine.commands.tables import convert as converting
from dbt.adapters.silt.engine.commands.tables.clone import CloneOptions, CloneSource
from dbt.adapters.silt.engine.commands.tables.creation import Place
from dbt.adapters.silt.engine.kernel.errors import UnsupportedStatementError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.sql.ast import TimeTravel
from dbt.adapters.silt.engine.statements.execute.context import Context, Result
from dbt.adapters.silt.engine.statements.execute.create_target import create_target_of
from dbt.adapters.silt.engine.statements.execute.foreign import pass_to_spark
from dbt.adapters.silt.engine.statements.execute.targets import (
    already_applied,
    changed,
    refuse_unsupported,
    settings_with,
    table_to_change,
    target_of,
)


def restore(context: Context, statement: ast.Restore) -> Result:
    """RESTORE TABLE ... TO VERSION | TIMESTAMP AS OF."""
    table = table_to_change(context, statement.table)
    if table is None:
        return pass_to_spark(context, statement)
    refuse_unsupported(statement, table.log.name)
    done = already_applied(context, table.log, table.log.snapshot(), restoring.OPERATION)
    if done is not None:
        return Result(outcome=done)
    resolved = context.resolver.resolve([], target=table.log)
    point = _restore_point(context, table.log, statement.to)
    outcome = restoring.restore(target_of(table.log, resolved), point, settings_with(context, resolved))
    return changed(context, table.log, outcome)


def clone(context: Context, statement: ast.Clone) -> Result:
    """CREATE TABLE ... SHALLOW | DEEP CLONE."""
    target, source = (
        create_target_of(context, statement.table, statement.mode),
        table_to_change(context, statement.source),
    )
    if target is None and source is None:
        return pass_to_spark(context, statement)
    if target is None or source is None:
        raise UnsupportedStatementError(
            "a table of a warehouse can only be cloned to one of a warehouse",
            table=".".join(statement.table),
            remedy="Use `create table ... as select`",
        )
    _refuse_clone(statement, target.label)
    if target.log is not None:
        done = already_applied(context, target.log, target.log.snapshot(), cloning.OPERATION)
        if done is not None:
            return Result(outcome=done)
    cloned = CloneSource(source.log.name, source.log, _source_snapshot(context, source.log, statement.at))
    resolved = context.resolver.resolve([], target=target.log)
    read = {**resolved.versions, cloned.log.name: (cloned.snapshot.version,)}
    log = target.prepare(context)
    outcome = cloning.clone(
        Place(log, resolved.target, is_managed=target.path is None),
        cloned,
        CloneOptions(statement.shallow, statement.properties),
        statement.mode,
        settings_with(context, replace(resolved, versions=read)),
    )
    target.finish(context)
    return changed(context, log, outcome)


def convert(context: Context, statement: ast.ConvertToDelta) -> Result:
    """CONVERT TO DELTA of a folder; a folder of a schema of ours is found by its name afterwards."""
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
    return changed(context, log, outcome)


def _refuse_clone(statement: ast.Clone, table: str) -> None:
    refuse_unsupported(statement, table)
    if statement.location is not None:
        raise UnsupportedStatementError(
            "the place of a table that has a name is its folder in the warehouse",
            table=table,
            remedy=f"Leave LOCATION out, or clone to delta.`{statement.location}`",
        )


def _source_snapshot(context: Context, log: DeltaLog, at: TimeTravel | None) -> Snapshot:
    return log.snapshot() if at is None else log.snapshot_at(context.resolver.version_of(log, at))


def _restore_point(context: Context, log: DeltaLog, to: TimeTravel) -> RestorePoint:
    """A time after the newest commit stands for it, as in the reference."""
    if to.timestamp is None:
        return RestorePoint(context.resolver.version_of(log, to))
    moment_ms = context.resolver.moment(to.timestamp)
    text = datetime.fromtimestamp(moment_ms / 1000, timezone.utc).isoformat(" ", "milliseconds")
    return RestorePoint(log.version_at(moment_ms, or_newest=True), text)
