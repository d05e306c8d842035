"""Caches the data of a served page; re-reads it on request, but not more often than is useful."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from dbt.adapters.silt.report.document import Document

_SHARE: Final = 4
"""The pause after a reading, in multiples of its duration, so that a large warehouse is not read constantly."""


@dataclass(frozen=True)
class Data:
    """The data at a point in time.

    Attributes:
        tag: identifies the content, except for the time at which it was read.
    """

    json: bytes
    tag: str


class LiveData:
    """The data of a page. Thread-safe.

    Args:
        read: reads all data, given the current time in milliseconds since 1970-01-01 UTC.
        clock: returns monotonic seconds.
        now_ms: returns the current time in milliseconds since 1970-01-01 UTC.
        least: the minimum number of seconds between two readings.
    """

    def __init__(
        self,
        read: Callable[[int], Document],
        clock: Callable[[], float],
        now_ms: Callable[[], int],
        least: float = 2,
    ) -> None:
        self._read, self._clock, self._now_ms, self._least = read, clock, now_ms, least
        self._lock = threading.Lock()
        self._data: Data | None = None
        self._due = 0.0

    def data(self) -> Data:
        """Returns the newest data, re-read if it is due; concurrent requests cause a single reading.

        Raises:
            StorageError: if the storage cannot list the tables.
        """
        with self._lock:
            started = self._clock()
            if self._data is None or started >= self._due:
                self._data = self._renewed()
                ended = self._clock()
                self._due = ended + max(self._least, _SHARE * (ended - started))
            return self._data

    def _renewed(self) -> Data:
        moment = self._now_ms()
        made = self._read(moment)
        # The time of reading is the first field, and always differs.
        content = made.json.replace(f'"made":{moment}', "", 1)
        tag = f'"{hashlib.sha256(content.encode()).hexdigest()[:32]}"'
        same = self._data is not None and self._data.tag == tag
        return self._data if same and self._data is not None else Data(made.json.encode(), tag)
