"""Renders the window of a microbatch as a condition on the rows of its model.

dbt's batches are in UTC, and so is the condition, in any session time zone: an instant is compared with an instant, and
a date or a time without a zone counts as UTC, as in dbt's own filter on a batch's inputs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from dbt_common.exceptions import CompilationError, DbtDatabaseError

from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.materializations.incremental.config_columns import column_named, required_column

if TYPE_CHECKING:
    from dbt.adapters.silt.column import SiltColumn

REMEDY = (
    "A batch may only return rows of its own window: configure `event_time` on the model's inputs, or filter by "
    "`model.batch.event_time_start` and `model.batch.event_time_end`"
)

_NAME = re.compile(r"[\w$]+|`[^`]+`|\"[^\"]+\"")
_KINDS = ("timestamp", "timestamp_ntz", "date")


def batch_window(
    model: Mapping[str, Any], columns: Sequence[SiltColumn], schema_of: Callable[[str], list[SiltColumn]], query: str
) -> str:
    """Returns the condition for the rows in the window of a model's batch.

    Args:
        model: the node, with its `batch` and its configuration.
        columns: columns of the model's table.
        schema_of: returns the columns of a query.
        query: the model's query, which determines the type of an `event_time` that is an expression.

    Raises:
        CompilationError: if the batch or `event_time` is missing, `event_time` is not a time, or it is a date and the
            batches are hourly.
    """
    config, batch = model["config"], model.get("batch")
    event_time = config.get("event_time")
    if not batch or not event_time:
        raise CompilationError("The incremental strategy `microbatch` needs `event_time`, and runs batch by batch")
    text, kind = _typed(str(event_time), columns, schema_of, query)
    if kind not in _KINDS:
        raise CompilationError(
            f"`event_time` names {event_time}, which is of type {kind}: cast it to a timestamp or a date"
        )
    if kind == "date" and str(getattr(config.get("batch_size"), "value", config.get("batch_size"))) == "hour":
        raise CompilationError(
            f"`event_time` names {event_time}, which is a date: use `batch_size: day`, or a timestamp for `event_time`"
        )
    start, end = (_literal(kind, batch[bound]) for bound in ("event_time_start", "event_time_end"))
    return f"{text} >= {start} and {text} < {end}"


def _typed(
    event_time: str, columns: Sequence[SiltColumn], schema_of: Callable[[str], list[SiltColumn]], query: str
) -> tuple[str, str]:
    """Returns the SQL of `event_time` and its type.

    Raises:
        CompilationError: if it names no column of the table or the query, or is not an expression over them.
    """
    types = {each.name: each.dtype for each in columns}
    name = column_named(event_time, types)
    if name is not None:
        return quote(name), types[name]
    # Before the expression, so that a mistake in the query is not taken for one in `event_time`.
    names = [each.name for each in schema_of(query)]
    if _NAME.fullmatch(event_time.strip()):
        required_column(event_time, names, "event_time")
    try:
        [found] = schema_of(f"select {event_time} as event_time from (\n{query}\n)")
    except DbtDatabaseError as error:
        raise CompilationError(
            f"`event_time` is {event_time}, which cannot be computed from the columns {', '.join(names)}: {error.msg}"
        ) from error
    return f"({event_time})", found.dtype


def _literal(kind: str, moment: datetime | str) -> str:
    at = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    utc = at.replace(tzinfo=timezone.utc) if at.tzinfo is None else at.astimezone(timezone.utc)
    match kind:
        case "timestamp":
            return f"timestamp '{utc.isoformat(sep=' ')}'"
        case "timestamp_ntz":
            return f"timestamp_ntz '{utc.replace(tzinfo=None).isoformat(sep=' ')}'"
        case _:
            # A date means its midnight, so this is the first date at or after that time.
            whole = utc.replace(hour=0, minute=0, second=0, microsecond=0)
            return f"date '{(whole if whole == utc else whole + timedelta(days=1)).date().isoformat()}'"
