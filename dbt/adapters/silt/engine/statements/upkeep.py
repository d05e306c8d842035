"""OPTIMIZE and VACUUM: what they ask of their commands, and the rows they answer with."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from decimal import Decimal

from dbt.adapters.silt.engine.commands import vacuum as vacuum_command
from dbt.adapters.silt.engine.commands.vacuum import RETENTION_CHECK, Retention, Vacuumed
from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError, StatementSyntaxError
from dbt.adapters.silt.engine.kernel.log import DeltaLog
from dbt.adapters.silt.engine.statements import kinds
from dbt.adapters.silt.engine.statements.context import Context, Result
from dbt.adapters.silt.engine.statements.foreign import pass_to_spark
from dbt.adapters.silt.engine.statements.targets import already_applied, changed, refuse_unsupported, table_to_change

_HOUR_MS = 3_600_000
_DELETED = "path string, numDeletedFiles bigint, sizeOfDataDeleted bigint, numDeletedDirectories bigint"
_TO_DELETE = "path string, length bigint, modificationTime timestamp"


def vacuum(context: Context, statement: kinds.Vacuum) -> Result:
    """VACUUM: one row with the table's path and what was deleted; for a dry run, a row for each file that would be."""
    table = table_to_change(context, statement.table)
    if table is None:
        return pass_to_spark(context, statement)
    log = table.log
    refuse_unsupported(statement, log.name)
    retention = Retention(_milliseconds(statement, log.name), _is_retention_checked(context))
    done = None if statement.dry_run else already_applied(context, log, log.snapshot(), vacuum_command.OPERATION)
    if done is not None:
        return Result(outcome=done)
    vacuumed = vacuum_command.vacuum(log, retention, context.settings, statement.lite, statement.dry_run)
    if vacuumed.outcome is None:
        return _to_delete(context, log, vacuumed)
    row = (log.store.root, len(vacuumed.garbage.files), vacuumed.garbage.size, vacuumed.folders_deleted)
    answer = context.rows([row], _DELETED)
    return Result(answer.dataframe, changed(context, log, vacuumed.outcome).outcome)


def _to_delete(context: Context, log: DeltaLog, vacuumed: Vacuumed) -> Result:
    rows = [
        (
            f"{log.store.root}/{file.path}",
            file.size,
            datetime.fromtimestamp(file.modified_ms / 1000, timezone.utc),
        )
        for file in vacuumed.garbage.files
    ]
    return context.rows(rows, _TO_DELETE)


def _milliseconds(statement: kinds.Vacuum, table: str) -> int | None:
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


def _is_retention_checked(context: Context) -> bool:
    text = (context.spark.conf.get(RETENTION_CHECK, "true") or "true").strip().lower()
    if text not in ("true", "false"):
        raise InvalidSettingError(f"`{RETENTION_CHECK}` cannot be `{text}`", remedy="Set it to true or false")
    return text == "true"
