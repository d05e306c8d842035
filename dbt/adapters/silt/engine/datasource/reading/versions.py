"""Finds the versions that the options of a read select."""

from __future__ import annotations

from dataclasses import dataclass

from dbt.adapters.silt.engine.datasource.options import Options, at_most_one
from dbt.adapters.silt.engine.kernel.errors import InvalidArgumentError, VersionNotFoundError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.scan.change_feed import VersionChanges, changes_between


@dataclass(frozen=True)
class FeedRange:
    """The versions whose changes are read; rows have the columns of the last version.

    Attributes:
        may_be_empty: whether a range without commits is allowed.
    """

    first: int
    end: Snapshot
    may_be_empty: bool = False

    def changes(self, log: DeltaLog) -> tuple[VersionChanges, ...]:
        """Returns the changes; raises the errors of `change_feed.changes_between`."""
        if self.may_be_empty and self.first == self.end.version + 1:
            return ()
        return changes_between(log, self.first, self.end)


def snapshot_read(log: DeltaLog, options: Options) -> Snapshot:
    """Returns the version of `versionAsOf` or `timestampAsOf`, by default the newest.

    Raises:
        InvalidArgumentError: if both are given, or either is not a version or time.
        VersionNotFoundError: if the log does not have the version, or no longer has it.
    """
    at_most_one(options, ("versionAsOf", "timestampAsOf"))
    version, moment = options.number("versionAsOf"), options.moment("timestampAsOf")
    if moment is not None:
        version = log.version_at(moment)
    return log.snapshot() if version is None else log.snapshot_at(version)


def feed_range(log: DeltaLog, options: Options, newest: Snapshot) -> FeedRange:
    """Returns the versions that a read of the change feed selects, up to `newest`; both bounds are included.

    Raises:
        InvalidArgumentError: if no start is given, or a bound is given twice.
        VersionNotFoundError: if no commit exists from the start on, or up to the end.
    """
    at_most_one(options, ("endingVersion", "endingTimestamp"))
    at_most_one(options, ("versionAsOf", "readChangeFeed"))
    at_most_one(options, ("timestampAsOf", "readChangeFeed"))
    first = starting_version(log, options)
    if first is None:
        raise InvalidArgumentError(
            "no start is given for the changes", remedy="Give `startingVersion` or `startingTimestamp`", table=log.name
        )
    last = _last(log, options, newest)
    if first > newest.version:
        raise VersionNotFoundError(
            f"the newest version is {newest.version}, before the starting version {first}", table=log.name
        )
    are_times = options.text("startingTimestamp") is not None and options.text("endingTimestamp") is not None
    return FeedRange(first, newest if last == newest.version else log.snapshot_at(last), are_times)


def starting_version(log: DeltaLog, options: Options) -> int | None:
    """Returns the first version of `startingVersion` or `startingTimestamp`, or None if neither is given."""
    at_most_one(options, ("startingVersion", "startingTimestamp"))
    moment = options.moment("startingTimestamp")
    return options.number("startingVersion") if moment is None else log.version_from(moment)


def _last(log: DeltaLog, options: Options, newest: Snapshot) -> int:
    version, moment = options.number("endingVersion"), options.moment("endingTimestamp")
    if moment is not None:
        version = log.version_at(moment)
    return newest.version if version is None else min(version, newest.version)
