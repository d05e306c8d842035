"""Time, ids and randomness: injected wherever the engine needs them, so that tests can replay every run."""

from __future__ import annotations

import random
import time
import uuid
from datetime import datetime, timedelta, timezone
from typing import Protocol

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class Clock(Protocol):
    """The source of time, ids and randomness."""

    def now_ms(self) -> int:
        """Returns the milliseconds since 1970-01-01 00:00 UTC."""
        ...

    def sleep(self, seconds: float) -> None:
        """Waits for the given number of seconds."""
        ...

    def new_id(self) -> str:
        """Returns a new universally unique id, in its 36-character form."""
        ...

    def jitter(self) -> float:
        """Returns a random number in [0, 1)."""
        ...


class SystemClock:
    """The machine's clock and randomness."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def new_id(self) -> str:
        return str(uuid.uuid4())

    def jitter(self) -> float:
        return random.random()


def back_off(clock: Clock, times: int, first: float, longest: float) -> None:
    """Waits before another try: exponential back-off with jitter, so that competing writers do not remain in step.

    A wait lasts at least half of the longest wait that is possible for its attempt.

    Args:
        times: number of attempts so far, each of which doubles the wait.
        first: longest first wait, in seconds.
        longest: upper bound of every wait, in seconds.
    """
    clock.sleep(min(longest, first * 2**times) * (0.5 + clock.jitter() / 2))


def utc_moment(milliseconds: int) -> datetime | None:
    """Converts a commit's milliseconds since 1970, or returns None outside the years 1 to 9999 (a wrong time)."""
    try:
        return _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return None


def utc_text(milliseconds: int, zone: str = " UTC", timespec: str = "seconds") -> str:
    """Returns the time of a commit for messages.

    Args:
        zone: text for the zone.
        timespec: as in `datetime.isoformat`.
    """
    moment = utc_moment(milliseconds)
    if moment is None:
        return f"{milliseconds} ms since 1970"
    return moment.replace(tzinfo=None).isoformat(" ", timespec) + zone
