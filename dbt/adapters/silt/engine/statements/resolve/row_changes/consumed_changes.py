"""Finds the changes that a table has not consumed yet (decision 0087)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dbt.adapters.silt.engine.catalog.names import RelationName
from dbt.adapters.silt.engine.kernel.errors import ChangesMissingError, InvalidStatementError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.transaction.positions import (
    Position,
    app_id_of,
    has_positions,
    position_in_replaced,
    recorded_position,
)
from dbt.adapters.silt.engine.statements.resolve.row_changes.silt_changes_function import Options

_REBUILD = "Build the consumer again from all rows: `create or replace table ... as`, or `dbt run --full-refresh`"


@dataclass(frozen=True)
class Consumer:
    """The table that consumes changes, with its log if it exists."""

    name: RelationName
    log: DeltaLog | None


@dataclass(frozen=True)
class Consumption:
    """The state of a consumer.

    Attributes:
        name: the name of the consumer.
        snapshot: the consumer as the statement sees it, if it exists.
        is_replaced: whether the statement re-creates the consumer, so that it consumes all rows.
    """

    name: RelationName
    snapshot: Snapshot | None
    is_replaced: bool


def consumed(log: DeltaLog, latest: Snapshot, asked: Options, state: Consumption) -> tuple[Options, Position]:
    """Returns the options of the changes that the consumer has not consumed, and the position to commit with them.

    Raises:
        ChangesMissingError: if the table is another table than the consumed one, or the position is after its last
            version.
        InvalidStatementError: if the consumer has rows but has consumed no table.
    """
    last = latest.version if asked.until is None else asked.until
    table_id = latest.metadata.id
    recorded = None if state.snapshot is None else recorded_position(state.snapshot, table_id)
    app_id = app_id_of(table_id, log.name) if recorded is None else recorded.app_id
    position = Position(str(state.name), app_id, last, None if recorded is None else recorded.version)
    if state.snapshot is None or state.is_replaced:
        return replace(asked, after=None), position
    if recorded is None or recorded.version < 0:
        _check_first(state.snapshot, log.name, table_id, asked)
        return asked, position
    if recorded.version > last:
        raise ChangesMissingError(
            f"{state.name} has already consumed the changes up to version {recorded.version}, after version {last}",
            remedy=_REBUILD,
            table=log.name,
        )
    return replace(asked, after=recorded.version), position


def check_consumer(positions: tuple[Position, ...], written: RelationName | None) -> None:
    """Checks that a statement writes the table that it names as the consumer of changes.

    Raises:
        InvalidStatementError: if it names another table, or consumes different versions of a table.
    """
    for position in positions:
        if position.consumer != str(written):
            raise InvalidStatementError(
                f"the changes are consumed by {position.consumer}, but the statement writes another table",
                remedy="Name the written table as `consumer`, or give `after` instead of `consumer`",
                table=None if written is None else str(written),
            )
    if len({each.app_id for each in positions}) < len(set(positions)):
        raise InvalidStatementError(
            "the statement consumes the changes of a table up to different versions",
            remedy="Give the same `until`",
            table=str(written),
        )


def _check_first(consumer: Snapshot, table: str, table_id: str, asked: Options) -> None:
    """Checks that a consumer without a position may begin with all rows."""
    earlier = position_in_replaced(consumer, table_id, table)
    if earlier is not None:
        raise ChangesMissingError(
            f"{table} is another table than the one whose changes were consumed up to version {earlier.version}: "
            "it was dropped and created again",
            remedy=_REBUILD,
            table=consumer.table,
        )
    if asked.after is None and consumer.num_files and not has_positions(consumer):
        raise InvalidStatementError(
            f"the table has rows, but does not record which changes of {table} they contain",
            remedy=f"{_REBUILD}; or give the version with which to begin as `after`",
            table=consumer.table,
        )
