"""FixedClock: a clock that tests control."""

from __future__ import annotations

import random
import uuid
from dataclasses import dataclass, field


@dataclass
class FixedClock:
    """A clock that is seeded, advances only when it is used, and never waits.

    Args:
        at_ms: start time in milliseconds since 1970-01-01 UTC.
        step_ms: milliseconds that each reading of the time adds.
        seed: seed of the ids and random numbers.
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
