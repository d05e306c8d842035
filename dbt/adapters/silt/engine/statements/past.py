"""Statements about a table's earlier versions: RESTORE."""

from __future__ import annotations

from datetime import datetime, timezone

from dbt.adapters.silt.engine.commands import restore as restoring
from dbt.adapters.silt.engine.commands.restore import RestorePoint
from dbt.adapters.silt.engine.kernel.log import DeltaLog
from dbt.adapters.silt.engine.statements import kinds
from dbt.adapters.silt.engine.statements.context import Context, Result
from dbt.adapters.silt.engine.statements.foreign import pass_to_spark
from dbt.adapters.silt.engine.statements.kinds import TimeTravel
from dbt.adapters.silt.engine.statements.targets import (
    already_applied,
    changed,
    refuse_unsupported,
    settings_with,
    table_to_change,
    target_of,
)


def restore(context: Context, statement: kinds.Restore) -> Result:
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


def _restore_point(context: Context, log: DeltaLog, to: TimeTravel) -> RestorePoint:
    """A time after the newest commit stands for it, as in the reference."""
    if to.timestamp is None:
        return RestorePoint(context.resolver.version_of(log, to))
    moment_ms = context.resolver.moment(to.timestamp)
    text = datetime.fromtimestamp(moment_ms / 1000, timezone.utc).isoformat(" ", "milliseconds")
    return RestorePoint(log.version_at(moment_ms, or_newest=True), text)
