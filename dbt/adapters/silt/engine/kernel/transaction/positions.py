"""Records in a table up to which version it has consumed the changes of another table (decision 0087).

A position is a transaction identifier of the consuming table: its application id names the table whose changes are
consumed, by id and name, and its version is the last version that was consumed. RESTORE therefore moves it back, and a
table that is dropped loses it. `delta.setTransactionRetentionDuration` must not remove it, whichever program writes the
checkpoint, so its time is on the day that begins with `END_OF_TIME`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.table.actions import SetTransaction

END_OF_TIME: Final = 253_402_214_400_000
"""The time of a position, in milliseconds since 1970: the last day of the year 9999."""

_DAY_MS: Final = 86_400_000
_PREFIX: Final = "silt-changes"


@dataclass(frozen=True)
class Position:
    """A position to commit.

    Attributes:
        consumer: the name of the consuming table.
        app_id: the application id.
        version: the last version that is consumed.
        recorded: the version that the consuming table has for the application id, if any.
        mark: as in `mark_of`.
        recorded_mark: the mark of the recorded version, if it has one.
    """

    consumer: str
    app_id: str
    version: int
    recorded: int | None
    mark: int = 0
    recorded_mark: int | None = None

    @property
    def action(self) -> SetTransaction:
        return SetTransaction(self.app_id, self.version, END_OF_TIME + self.mark)

    @property
    def is_changed(self) -> bool:
        return self.recorded != self.version or self.recorded_mark not in (None, self.mark)

    @property
    def is_advanced(self) -> bool:
        return self.recorded is None or self.recorded < self.version


def mark_of(content: str) -> int:
    """Returns a number for the files of a version, which a position records in its time: a time of the same day.

    A version of the same number in a copy of the table, put in its place, has another mark.
    """
    return 1 + int(content, 16) % (_DAY_MS - 1)


def recorded_mark(position: SetTransaction) -> int | None:
    """Returns the mark of a position; None if an earlier version of the package recorded it without a mark."""
    mark = (position.last_updated or 0) - END_OF_TIME
    return mark if 0 < mark < _DAY_MS else None


def app_id_of(table_id: str, name: str) -> str:
    """Returns the application id of the positions in the changes of a table."""
    return f"{_PREFIX}:{table_id}:{name}"


def is_position(app_id: str) -> bool:
    """Returns whether an application id is that of a position."""
    return app_id.startswith(f"{_PREFIX}:")


def recorded_position(consumer: Snapshot, table_id: str) -> SetTransaction | None:
    """Returns the consumer's position in the changes of a table, under whichever name the table had."""
    found = (each for app_id, each in consumer.transactions.items() if app_id.startswith(f"{_PREFIX}:{table_id}:"))
    return max(found, key=lambda each: each.version, default=None)


def position_in_replaced(consumer: Snapshot, table_id: str, name: str) -> SetTransaction | None:
    """Returns the consumer's position in the changes of another table that had the same name, if any."""
    for app_id, each in consumer.transactions.items():
        is_same_name = is_position(app_id) and app_id.split(":", 2)[2] == name
        if is_same_name and each.version >= 0 and app_id != app_id_of(table_id, name):
            return each
    return None


def has_positions(consumer: Snapshot) -> bool:
    """Returns whether the table has consumed the changes of any table."""
    return any(is_position(app_id) and each.version >= 0 for app_id, each in consumer.transactions.items())
