"""Finds the versions that a call of the table function `table_changes` asks for.

Its bounds are versions (whole numbers) or times (timestamps, dates, strings), both inclusive: a start time means the
first version committed at or after it, an end time the last version committed at or before it. Source: delta-spark's
DeltaTableValueFunctions and CDCReader.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.kernel.errors import InvalidStatementError, VersionNotFoundError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.scan.change_feed import VersionChanges, changes_between

_WHOLE_NUMBERS = ("tinyint", "smallint", "int", "bigint")
_TIMES = ("string", "timestamp", "timestamp_ntz", "date")


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
    raise InvalidStatementError(
        f"`{text}` is not a version or a time of a table", remedy="Give a version number or a timestamp"
    )


def version(spark: SparkSession, text: str) -> int:
    """Returns the value of an argument that must be a version.

    Raises:
        InvalidStatementError: if it is not a whole number from 0.
    """
    found = bound(spark, text).version
    if found is None:
        raise InvalidStatementError(f"`{text}` is not a version of a table", remedy="Give a version number")
    return found


def changes(log: DeltaLog, latest: Snapshot, start: Bound, end: Bound | None) -> ChangeRange:
    """Returns the changes that a call asks for, up to the version `latest` at most.

    Raises:
        As `change_feed.changes_between`, and VersionNotFoundError: if nothing was committed since the start.
    """
    first = _first(log, start)
    last = latest.version if end is None else min(_last(log, end), latest.version)
    if first > latest.version:
        raise VersionNotFoundError(f"the newest version is {latest.version}, before {start.text}", table=log.name)
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
