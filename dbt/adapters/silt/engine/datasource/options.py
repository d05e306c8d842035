"""Reads the options of a read or a write, checks them, and finds the versions that the options of a read select."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from dbt.adapters.silt.engine.arrow.tables import TableSource
from dbt.adapters.silt.engine.kernel import near_names
from dbt.adapters.silt.engine.kernel.errors import InvalidArgumentError, VersionNotFoundError
from dbt.adapters.silt.engine.kernel.identifiers import split_name
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.scan.change_feed import VersionChanges, changes_between
from dbt.adapters.silt.engine.kernel.storage.settings import StorageSettings, storage_settings

FEED: Final = ("readChangeFeed", "startingVersion", "startingTimestamp")
ENDING: Final = ("endingVersion", "endingTimestamp")
READ: Final = ("versionAsOf", "timestampAsOf", *FEED, *ENDING, "columns", "where", "branch")
STREAM_READ: Final = (*FEED, "skipChangeCommits", "ignoreDeletes", "maxFilesPerTrigger", "maxBytesPerTrigger")
WRITE: Final = (
    *("partitionBy", "replaceWhere", "partitionOverwriteMode"),
    *("txnAppId", "txnVersion", "userMetadata", "branch"),
)
STREAM_WRITE: Final = ("partitionBy", "txnAppId", "userMetadata", "checkpointLocation", "queryName")

_TABLE: Final = ("path", "warehouse", "externalPaths", "timeZone")
_STORAGE: Final = "storage."
_OF_SPARK: Final = ("owner", "provider", "location")
"""Options that Spark adds for a table created with CREATE TABLE ... USING."""

_ELSEWHERE: Final = ("mergeSchema", "overwriteSchema")
"""Options of Delta's writer that `Warehouse.write` supports, but not this data source."""


@dataclass(frozen=True)
class Options:
    """The options of a read or a write, by their names in lower case."""

    values: Mapping[str, str]

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Options:
        return cls({name.lower(): value for name, value in given.items()})

    def check(self, *known: str) -> None:
        """Raises an error unless every option is known.

        Raises:
            InvalidArgumentError: if an option is not known.
        """
        names = (*_TABLE, *known)
        there = {name.lower() for name in (*names, *_OF_SPARK)}
        for name in self.values:
            if name not in there and not name.startswith(_STORAGE):
                raise _unknown(name, names)

    def text(self, name: str) -> str | None:
        """Returns the value of an option, or None if it is not given."""
        return self.values.get(name.lower())

    def number(self, name: str) -> int | None:
        """Returns a whole number of 0 or more.

        Raises:
            InvalidArgumentError: if the value is invalid.
        """
        text = self.text(name)
        if text is None or text.strip().isdecimal():
            return None if text is None else int(text)
        raise InvalidArgumentError(
            f"the option `{name}` is `{text}`, not a whole number", remedy="Give a number, as in `3`"
        )

    def flag(self, name: str) -> bool:
        """Returns whether an option is true.

        Raises:
            InvalidArgumentError: if the value is neither true nor false.
        """
        text = (self.text(name) or "false").strip().lower()
        if text in ("true", "false"):
            return text == "true"
        raise InvalidArgumentError(f"the option `{name}` is `{text}`, not a boolean", remedy="Give `true` or `false`")

    def names(self, name: str) -> tuple[str, ...] | None:
        """Returns the columns of a comma-separated list, or None if the option is not given."""
        text = self.text(name)
        return None if text is None else tuple(split_name(part.strip())[0] for part in text.split(",") if part.strip())

    def moment(self, name: str) -> int | None:
        """Returns a time in milliseconds since 1970-01-01 UTC; without a zone it is in `time_zone`.

        Raises:
            InvalidArgumentError: if the value is invalid.
        """
        text = self.text(name)
        if text is None:
            return None
        plain = text.strip()
        try:
            moment = datetime.fromisoformat(f"{plain[:-1]}+00:00" if plain.endswith(("Z", "z")) else plain)
        except ValueError as error:
            raise InvalidArgumentError(
                f"the option `{name}` is `{text}`, not a time", remedy="Write it `2026-01-31T12:00:00`"
            ) from error
        aware = moment if moment.tzinfo else moment.replace(tzinfo=_zone(self.time_zone))
        return int(aware.timestamp() * 1000)

    @property
    def time_zone(self) -> str:
        """The zone of times without a zone."""
        return self.text("timeZone") or "UTC"

    @property
    def table(self) -> TableSource:
        """The table.

        Raises:
            InvalidArgumentError: if no option names it.
            InvalidSettingError: if a setting of the storage is invalid.
        """
        name = self.text("path")
        if not name:
            raise InvalidArgumentError(
                "no table is given", remedy='Give its path or name to `load` or `save`, as in `load("main.orders")`'
            )
        return TableSource(name, self.text("warehouse"), self.storage, self.flag("externalPaths"), self.text("branch"))

    @property
    def storage(self) -> StorageSettings | None:
        """The settings of the object store, or None if no option gives them."""
        given = {name[len(_STORAGE) :]: text for name, text in self.values.items() if name.startswith(_STORAGE)}
        return storage_settings(given) if given else None


def at_most_one(options: Options, names: Iterable[str]) -> None:
    """Raises an error if several of these options are given.

    Raises:
        InvalidArgumentError: if two of them are given.
    """
    given = [name for name in names if options.text(name) is not None]
    if len(given) > 1:
        raise InvalidArgumentError(
            f"the options `{given[0]}` and `{given[1]}` cannot be combined", remedy="Remove one of them"
        )


def _zone(name: str) -> ZoneInfo | timezone:
    if name.upper() == "UTC":
        return timezone.utc
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise InvalidArgumentError(
            f"the option `timeZone` is `{name}`, not a time zone", remedy="Give a time zone, as in `Europe/Berlin`"
        ) from error


def _unknown(name: str, known: tuple[str, ...]) -> InvalidArgumentError:
    if name == "branch":
        return InvalidArgumentError(
            "a stream cannot read or write the branch of a run",
            remedy="Write its batches with `foreachBatch`, each with the option `branch`",
        )
    found = next((each for each in _ELSEWHERE if each.lower() == name), None)
    if found is not None:
        return InvalidArgumentError(
            f"this data source does not support the option `{found}`", remedy="Write the rows with `Warehouse.write`"
        )
    return near_names.unknown(name, (*known, f"{_STORAGE}..."), "this data source")


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
