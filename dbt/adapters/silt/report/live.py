"""Keeps the data of a served page new: read again at a request, but not more often than it takes to be of use."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from dbt.adapters.silt.report.document import Document

_SHARE: Final = 4
"""How many times longer nothing is read than the last reading took, so that a large warehouse is not read all day."""


@dataclass(frozen=True)
class Data:
    """The data at one moment.

    Attributes:
        tag: differs where the content does, except for the moment that it was read.
    """

    json: bytes
    tag: str


class LiveData:
    """The data of one page. Safe to share between threads.

    Args:
        read: reads everything, given the moment as milliseconds since 1970-01-01 UTC.
        clock: gives seconds that only grow.
        now_ms: gives the moment.
        least: seconds between two readings, at least.
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
        """Returns the newest data, read again where it is due; several requests at once read once.

        Raises:
            StorageError: the storage does not say which tables there are.
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
        # The moment is the first field, and is different each time.
        content = made.json.replace(f'"made":{moment}', "", 1)
        tag = f'"{hashlib.sha256(content.encode()).hexdigest()[:32]}"'
        same = self._data is not None and self._data.tag == tag
        return self._data if same and self._data is not None else Data(made.json.encode(), tag)
