"""Time, ids and chance, injected wherever the engine needs them, so that every run can be replayed."""

from __future__ import annotations

import random
import time
import uuid
from dataclasses import dataclass, field
from typing import Protocol


class Clock(Protocol):
    """Where time, ids and chance come from."""

    def now_ms(self) -> int:
        """Milliseconds since 1970-01-01 00:00 UTC."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait for that many seconds."""
        ...

    def new_id(self) -> str:
        """A new universally unique id, in its 36-character form."""
        ...

    def jitter(self) -> float:
        """A random number in [0, 1)."""
        ...


class SystemClock:
    """The machine's own clock and randomness."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def new_id(self) -> str:
        return str(uuid.uuid4())

    def jitter(self) -> float:
        return random.random()


@dataclass
class FixedClock:
    """A clock for tests: seeded, moving only when told to, never waiting.

    Args:
        at_ms: the time it starts at, milliseconds since 1970-01-01 UTC.
        step_ms: how far each look at the time moves it.
        seed: seeds the ids and the chance.
    """

    at_ms: int = 1_700_000_000_000
    step_ms: int = 1
    seed: int = 0
    _random: random.Random = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def now_ms(self) -> int:
        self.at_ms += self.step_ms
        return self.at_ms

    def sleep(self, seconds: float) -> None:
        self.at_ms += int(seconds * 1000)

    def new_id(self) -> str:
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def jitter(self) -> float:
        return self._random.random()


def back_off(clock: Clock, times: int, first: float, longest: float) -> None:
    """Waits before another try: twice as long after each, less up to a half by chance, so that no two stay in step.

    Args:
        times: how often it was waited before.
        first: the longest first wait, in seconds.
        longest: the bound of every wait, in seconds.
    """
    clock.sleep(min(longest, first * 2**times) * (0.5 + clock.jitter() / 2))
