"""Finds the versions that a call of `table_changes` or `silt_changes` asks for (decisions 0086, 0087).

Its bounds are versions (whole numbers) or times (timestamps, dates, strings), both inclusive: a start time means the
first version committed at or after it, an end time the last version committed at or before it. Source: delta-spark's
DeltaTableValueFunctions and CDCReader.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.scan.change_feed import (
    ChangedVersions,
    VersionChanges,
    changes_after,
    changes_between,
    missing_files,
)
from dbt.adapters.silt.engine.kernel.table.schema import CHANGE_TYPE, COMMIT_TIMESTAMP, COMMIT_VERSION, MapType
from dbt.adapters.silt.engine.kernel.transaction.positions import (
    Position,
    app_id_of,
    has_positions,
    mark_of,
    position_in_replaced,
    recorded_mark,
    recorded_position,
)

_REBUILD = "Build the consumer again from all rows: `create or replace table ... as`, or `dbt run --full-refresh`"

_FEED_NAMES = (CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP)
_WHOLE_NUMBERS = ("tinyint", "smallint", "int", "bigint")
_TIMES = ("string", "timestamp", "timestamp_ntz", "date")


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
    end = _end(log, latest, asked)
    table_id = latest.metadata.id
    recorded = None if state.snapshot is None else recorded_position(state.snapshot, table_id)
    app_id = app_id_of(table_id, log.name) if recorded is None else recorded.app_id
    version = None if recorded is None else recorded.version
    mark, before = 0 if end is None else mark_of(end.content), None if recorded is None else recorded_mark(recorded)
    position = Position(str(state.name), app_id, last, version, mark, before)
    if state.snapshot is None or state.is_replaced:
        return replace(asked, after=None), position
    if recorded is None or recorded.version < 0:
        _check_first(state.snapshot, log.name, table_id, asked)
        return asked, position
    if recorded.version > last:
        raise errors.ChangesMissingError(
            f"{state.name} has already consumed the changes up to version {recorded.version}, after version {last}",
            remedy=_REBUILD,
            table=log.name,
        )
    return replace(asked, after=recorded.version, mark=recorded_mark(recorded)), position


def check_consumer(positions: tuple[Position, ...], written: RelationName | None) -> None:
    """Checks that a statement writes the table that it names as the consumer of changes.

    Raises:
        InvalidStatementError: if it names another table, or consumes different versions of a table.
    """
    for position in positions:
        if position.consumer != str(written):
            raise errors.InvalidStatementError(
                f"the changes are consumed by {position.consumer}, but the statement writes another table",
                remedy="Name the written table as `consumer`, or give `after` instead of `consumer`",
                table=None if written is None else str(written),
            )
    if len({each.app_id for each in positions}) < len(set(positions)):
        raise errors.InvalidStatementError(
            "the statement consumes the changes of a table up to different versions",
            remedy="Give the same `until`",
            table=str(written),
        )


def _check_first(consumer: Snapshot, table: str, table_id: str, asked: Options) -> None:
    """Checks that a consumer without a position may begin with all rows."""
    earlier = position_in_replaced(consumer, table_id, table)
    if earlier is not None:
        raise errors.ChangesMissingError(
            f"{table} is another table than the one whose changes were consumed up to version {earlier.version}: "
            "it was dropped and created again",
            remedy=_REBUILD,
            table=consumer.table,
        )
    if asked.after is None and consumer.num_files and not has_positions(consumer):
        raise errors.InvalidStatementError(
            f"the table has rows, but does not record which changes of {table} they contain",
            remedy=f"{_REBUILD}; or give the version to begin with as `after`",
            table=consumer.table,
        )


@dataclass(frozen=True)
class Options:
    """The options of a call, with its versions as numbers, as in `DifferenceCall`.

    Attributes:
        mark: the recorded mark of the version `after`, if known.
    """

    after: int | None
    until: int | None
    keys: tuple[str, ...]
    mark: int | None = None

    def is_after(self, start: Snapshot) -> bool:
        """Compares a version with the mark of the version `after`, if known."""
        return self.mark is None or self.mark == mark_of(start.content)


@dataclass(frozen=True)
class Difference:
    """The rows that a call returns: changes, or all rows of a version as inserts.

    Attributes:
        end: the last version, which determines the columns.
        changed: the changes, unless all rows are returned.
        keys: the columns of a key, to return only the newest row of each changed key; empty to return every change.
    """

    end: Snapshot
    changed: ChangedVersions | None
    keys: tuple[str, ...] = ()

    @property
    def deleted_bytes(self) -> int | None:
        """An upper limit of the size of the deleted rows; None if the changes delete no rows."""
        versions = () if self.changed is None else self.changed.versions
        removing = [each for each in versions if each.removes_rows or each.change_files]
        return sum(each.removed_bytes for each in removing) if removing else None


def difference(log: DeltaLog, latest: Snapshot, asked: Options) -> Difference:
    """Returns the versions that a call asks for, up to the version `latest` at most.

    Raises:
        ChangesMissingError: if the needed commits or files no longer exist, or a version's columns cannot be read in
            the schema of the last version.
        ColumnNotFoundError: if a column of the key does not exist.
        InvalidStatementError: if the last version is before `after`, or a column of the key is a map.
        UnsupportedStatementError: if the table has a column with the name of a column of changes.
        VersionNotFoundError: if a version does not exist yet.
    """
    for number in (asked.after, asked.until):
        if number is not None and number > latest.version:
            raise errors.VersionNotFoundError(
                f"the newest version is {latest.version}, before {number}", table=log.name
            )
    end = _end(log, latest, asked) or latest
    _check_columns(end)
    keys = _checked_keys(end, asked.keys)
    if asked.after is None:
        return Difference(end, None, keys)
    try:
        changed = changes_after(log, asked.after, end, asked.is_after)
    except (errors.VersionNotFoundError, errors.UnsupportedStatementError) as error:
        raise _missing(log, asked.after, error.problem) from error
    deleted = missing_files(log, changed)
    if deleted:
        raise _missing(log, asked.after, f"VACUUM has deleted {len(deleted)} of their files, such as {deleted[0]}")
    return Difference(end, changed, keys)


def _end(log: DeltaLog, latest: Snapshot, asked: Options) -> Snapshot | None:
    """Returns the last version of a call, if that version exists."""
    if asked.until is None or asked.until >= latest.version:
        return latest if asked.until in (None, latest.version) else None
    return log.snapshot_at(asked.until)


def _missing(log: DeltaLog, after: int, why: str) -> errors.ChangesMissingError:
    return errors.ChangesMissingError(
        f"the changes after version {after} can no longer be read: {why}",
        remedy=f"{errors.ChangesMissingError.remedy}; to keep them longer, set the table properties "
        "`delta.logRetentionDuration` and `delta.deletedFileRetentionDuration`",
        table=log.name,
    )


def _check_columns(end: Snapshot) -> None:
    taken = [member.name for member in end.schema if member.name.lower() in _FEED_NAMES]
    if taken:
        raise errors.UnsupportedStatementError(
            f"the table has a column `{taken[0]}`, which is also a column of the changes",
            remedy="Rename the column",
            table=end.table,
        )


def _checked_keys(end: Snapshot, keys: Sequence[str]) -> tuple[str, ...]:
    columns = [end.schema.require(name, end.table) for name in keys]
    for column in columns:
        if isinstance(column.type, MapType):
            raise errors.InvalidStatementError(
                f"the column `{column.name}` is a map, and a map cannot be a key",
                remedy="Name other columns as the key",
                table=end.table,
            )
    return tuple(column.name for column in columns)


@dataclass(frozen=True)
class Bound:
    """A version, or a time in microseconds since 1970-01-01 UTC; `text` is the statement's spelling of it."""

    text: str
    version: int | None = None
    time_us: int | None = None


@dataclass(frozen=True)
class ChangeRange:
    """The result of a call: the changes, in the columns of the version `end`."""

    end: Snapshot
    versions: tuple[VersionChanges, ...]


def bound(spark: SparkSession, text: str) -> Bound:
    """Returns the value of an argument, which must be a constant.

    Raises:
        InvalidStatementError: if it is neither a version nor a time.
    """
    (_, type_name), *_ = spark.sql(f"select {text}").dtypes
    if type_name in _WHOLE_NUMBERS:
        value = _constant(spark, f"cast({text} as bigint)")
        if value is not None and value >= 0:
            return Bound(text, version=value)
    elif type_name in _TIMES:
        value = _constant(spark, f"unix_micros(try_cast({text} as timestamp))")
        if value is not None:
            return Bound(text, time_us=value)
    raise errors.InvalidStatementError(
        f"`{text}` is not a version or a time of a table", remedy="Give a version number or a timestamp"
    )


def version(spark: SparkSession, text: str) -> int:
    """Returns the value of an argument that must be a version.

    Raises:
        InvalidStatementError: if it is not a whole number from 0.
    """
    found = bound(spark, text).version
    if found is None:
        raise errors.InvalidStatementError(f"`{text}` is not a version of a table", remedy="Give a version number")
    return found


def changes(log: DeltaLog, latest: Snapshot, start: Bound, end: Bound | None) -> ChangeRange:
    """Returns the changes that a call asks for, up to the version `latest` at most.

    Raises:
        As `change_feed.changes_between`, and VersionNotFoundError: if nothing was committed since the start.
    """
    first = _first(log, start)
    last = latest.version if end is None else min(_last(log, end), latest.version)
    if first > latest.version:
        raise errors.VersionNotFoundError(
            f"the newest version is {latest.version}, before {start.text}", table=log.name
        )
    if _is_between_two_versions(start, end) and last == first - 1:
        return ChangeRange(latest, ())
    ending = latest if last == latest.version else log.snapshot_at(last)
    return ChangeRange(ending, changes_between(log, first, ending))


def _constant(spark: SparkSession, expression: str) -> int | None:
    value = spark.sql(f"select {expression}").collect()[0][0]
    return None if value is None else int(value)


def _first(log: DeltaLog, start: Bound) -> int:
    if start.version is not None:
        return start.version
    return log.version_from(-(-(start.time_us or 0) // 1000))


def _last(log: DeltaLog, end: Bound) -> int:
    return end.version if end.version is not None else log.version_at((end.time_us or 0) // 1000)


def _is_between_two_versions(start: Bound, end: Bound | None) -> bool:
    """Returns whether both are times, in order: then the absence of commits between them is not an error."""
    if end is None or start.time_us is None or end.time_us is None:
        return False
    return start.time_us <= end.time_us
