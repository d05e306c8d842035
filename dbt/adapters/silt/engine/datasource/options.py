"""Reads the options of a read or a write: unknown ones are refused, and each has the type that it says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from dbt.adapters.silt.engine.arrow.tables import TableSource
from dbt.adapters.silt.engine.kernel import option_names
from dbt.adapters.silt.engine.kernel.errors import InvalidArgumentError
from dbt.adapters.silt.engine.kernel.identifiers import split_name
from dbt.adapters.silt.engine.kernel.storage.settings import StorageSettings, storage_settings

FEED: Final = ("readChangeFeed", "startingVersion", "startingTimestamp")
ENDING: Final = ("endingVersion", "endingTimestamp")
READ: Final = ("versionAsOf", "timestampAsOf", *FEED, *ENDING, "columns", "where")
STREAM_READ: Final = (*FEED, "skipChangeCommits", "ignoreDeletes", "maxFilesPerTrigger", "maxBytesPerTrigger")
WRITE: Final = (
    *("partitionBy", "replaceWhere", "partitionOverwriteMode"),
    *("txnAppId", "txnVersion", "userMetadata"),
)
STREAM_WRITE: Final = ("partitionBy", "txnAppId", "userMetadata", "checkpointLocation", "queryName")

_TABLE: Final = ("path", "warehouse", "externalPaths", "timeZone")
_STORAGE: Final = "storage."
_OF_SPARK: Final = ("owner", "provider", "location")
"""What Spark adds to the options of a table that CREATE TABLE ... USING has made."""

_ELSEWHERE: Final = ("mergeSchema", "overwriteSchema")
"""Options of Delta's writer that `Warehouse.write` has, and this one has not."""


@dataclass(frozen=True)
class Options:
    """The options of one read or write, by their names in lower case."""

    values: Mapping[str, str]

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Options:
        return cls({name.lower(): value for name, value in given.items()})

    def check(self, *known: str) -> None:
        """Passes where every option is known.

        Raises:
            InvalidArgumentError: one is not.
        """
        names = (*_TABLE, *known)
        there = {name.lower() for name in (*names, *_OF_SPARK)}
        for name in self.values:
            if name not in there and not name.startswith(_STORAGE):
                raise _unknown(name, names)

    def text(self, name: str) -> str | None:
        """The value; None where there is none."""
        return self.values.get(name.lower())

    def number(self, name: str) -> int | None:
        """A whole number of 0 or more.

        Raises:
            InvalidArgumentError: it is none.
        """
        text = self.text(name)
        if text is None or text.strip().isdecimal():
            return None if text is None else int(text)
        raise InvalidArgumentError(
            f"the option `{name}` is `{text}`, not a whole number", remedy="Give a number, as in `3`"
        )

    def flag(self, name: str) -> bool:
        """Whether it is true.

        Raises:
            InvalidArgumentError: it is neither true nor false.
        """
        text = (self.text(name) or "false").strip().lower()
        if text in ("true", "false"):
            return text == "true"
        raise InvalidArgumentError(f"the option `{name}` is `{text}`", remedy="Give `true` or `false`")

    def names(self, name: str) -> tuple[str, ...] | None:
        """Columns, with commas between them; None where there is no such option."""
        text = self.text(name)
        return None if text is None else tuple(split_name(part.strip())[0] for part in text.split(",") if part.strip())

    def moment(self, name: str) -> int | None:
        """A time in milliseconds since 1970-01-01 UTC; without a zone it is in `time_zone`.

        Raises:
            InvalidArgumentError: it is none.
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
        """The zone of times that name none."""
        return self.text("timeZone") or "UTC"

    @property
    def table(self) -> TableSource:
        """The table.

        Raises:
            InvalidArgumentError: no option says which.
            InvalidSettingError: a setting of the storage is none.
        """
        name = self.text("path")
        if not name:
            raise InvalidArgumentError(
                "no table is given", remedy='Give its path or name to `load` or `save`, as in `load("main.orders")`'
            )
        return TableSource(name, self.text("warehouse"), self.storage, self.flag("externalPaths"))

    @property
    def storage(self) -> StorageSettings | None:
        """How the object store is reached; None where no option says it."""
        given = {name[len(_STORAGE) :]: text for name, text in self.values.items() if name.startswith(_STORAGE)}
        return storage_settings(given) if given else None


def at_most_one(options: Options, names: Iterable[str]) -> None:
    """Passes where at most one of these options is given.

    Raises:
        InvalidArgumentError: two are.
    """
    given = [name for name in names if options.text(name) is not None]
    if len(given) > 1:
        raise InvalidArgumentError(
            f"the options `{given[0]}` and `{given[1]}` exclude one another", remedy="Leave one out"
        )


def _zone(name: str) -> ZoneInfo | timezone:
    if name.upper() == "UTC":
        return timezone.utc
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise InvalidArgumentError(
            f"the option `timeZone` is `{name}`, not a zone", remedy="Give one, as in `Europe/Berlin`"
        ) from error


def _unknown(name: str, known: tuple[str, ...]) -> InvalidArgumentError:
    found = next((each for each in _ELSEWHERE if each.lower() == name), None)
    if found is not None:
        return InvalidArgumentError(
            f"the option `{found}` is not one of this data source", remedy="Write the rows with `Warehouse.write`"
        )
    return option_names.unknown(name, (*known, f"{_STORAGE}..."), "this data source")
