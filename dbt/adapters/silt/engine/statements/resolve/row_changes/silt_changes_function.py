"""Finds the versions that a call of the table function `silt_changes` asks for (decision 0086)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dbt.adapters.silt.engine.kernel.errors import (
    ChangesMissingError,
    InvalidStatementError,
    UnsupportedStatementError,
    VersionNotFoundError,
)
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.scan.change_feed import ChangedVersions, changes_after, missing_files
from dbt.adapters.silt.engine.kernel.table.schema import CHANGE_TYPE, COMMIT_TIMESTAMP, COMMIT_VERSION, MapType

_FEED_NAMES = (CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP)


@dataclass(frozen=True)
class Options:
    """The options of a call, with its versions as numbers, as in `DifferenceCall`."""

    after: int | None
    until: int | None
    keys: tuple[str, ...]


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
            raise VersionNotFoundError(f"the newest version is {latest.version}, before {number}", table=log.name)
    end = latest if asked.until in (None, latest.version) else log.snapshot_at(asked.until or 0)
    _check_columns(end)
    keys = _checked_keys(end, asked.keys)
    if asked.after is None:
        return Difference(end, None, keys)
    try:
        changed = changes_after(log, asked.after, end)
    except (VersionNotFoundError, UnsupportedStatementError) as error:
        raise _missing(log, asked.after, error.problem) from error
    deleted = missing_files(log, changed)
    if deleted:
        raise _missing(log, asked.after, f"VACUUM has deleted {len(deleted)} of their files, such as {deleted[0]}")
    return Difference(end, changed, keys)


def _missing(log: DeltaLog, after: int, why: str) -> ChangesMissingError:
    return ChangesMissingError(
        f"the changes after version {after} cannot be read any more: {why}",
        remedy=f"{ChangesMissingError.remedy}; to keep them longer, set the table properties "
        "`delta.logRetentionDuration` and `delta.deletedFileRetentionDuration`",
        table=log.name,
    )


def _check_columns(end: Snapshot) -> None:
    taken = [member.name for member in end.schema if member.name.lower() in _FEED_NAMES]
    if taken:
        raise UnsupportedStatementError(
            f"the table has a column `{taken[0]}`, which is also a column of the changes",
            remedy="Rename the column",
            table=end.table,
        )


def _checked_keys(end: Snapshot, keys: Sequence[str]) -> tuple[str, ...]:
    columns = [end.schema.require(name, end.table) for name in keys]
    for column in columns:
        if isinstance(column.type, MapType):
            raise InvalidStatementError(
                f"the column `{column.name}` is a map, and a map cannot be a key",
                remedy="Name other columns as the key",
                table=end.table,
            )
    return tuple(column.name for column in columns)
