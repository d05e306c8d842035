"""Faults of a service and of its network, as a proxy causes them: no server produces them on demand."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Final, TypeAlias

from tests.cloud.proxy import Answer, Dropped, Listener, Passing

Which: TypeAlias = Callable[[Passing], bool]

EXPIRED: Final = Answer(403, "ExpiredToken")
SLOW_DOWN: Final = Answer(503, "SlowDown")
DENIED: Final = Answer(403, "AccessDenied")

_COMMIT: Final = re.compile(r"/_delta_log/(?!0{20}\.)\d{20}\.json")
_CHANGES: Final = ("PUT", "POST", "DELETE")


def every(passing: Passing) -> bool:
    return True


def commit(passing: Passing) -> bool:
    """The write of a version after the first."""
    return passing.method == "PUT" and _COMMIT.search(passing.path) is not None


def upload(passing: Passing) -> bool:
    """Spark's write of a data file."""
    return passing.by_spark and passing.method == "PUT" and passing.path.endswith(".parquet")


def data_read(passing: Passing) -> bool:
    return passing.by_spark and passing.method == "GET" and passing.path.endswith(".parquet")


def spark(passing: Passing) -> bool:
    return passing.by_spark


def look(passing: Passing) -> bool:
    """A request whose answer has no body, and so no error code."""
    return passing.method == "HEAD" and not passing.by_spark


def change(passing: Passing) -> bool:
    return passing.method in _CHANGES


def names(passing: Passing) -> bool:
    """The replacement of a database's names."""
    return passing.method == "PUT" and passing.path.endswith("/_catalog.json")


class Faults(Listener):
    """Passes every request on until a fault is set; refused and hanging requests never reach the server."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.heal()

    def heal(self) -> None:
        """Ends all faults."""
        with self._lock:
            self._refused: Which = lambda passing: False
            self._answer = EXPIRED
            self._left = 0
            self._is_from_then_on = False
            self._lost: Which = lambda passing: False
            self._hanging: Which = lambda passing: False
            self._is_held = threading.Event()
            self.met = 0

    def refuse(self, which: Which, answer: Answer, times: int = 1 << 30) -> None:
        """Refuses so many of the requests."""
        self._refused, self._answer, self._left = which, answer, times

    def expire_at(self, which: Which) -> None:
        """Ends the credentials' lifetime just before the first such request: from then on each request is refused."""
        self._refused, self._answer, self._left, self._is_from_then_on = which, EXPIRED, 1 << 30, True

    def lose_answer_of(self, which: Which) -> None:
        """Closes the connection after the server has done the first such request, without its answer."""
        self._lost = which

    def lose_answer_and_expire_at(self, which: Which) -> None:
        """Loses the first such answer, and refuses each request from then on."""
        self._lost, self._is_from_then_on = which, True

    def hang_at(self, which: Which) -> None:
        """Accepts such requests and never answers them."""
        self._hanging = which

    def asked(self, passing: Passing) -> Answer | None:
        if self._hanging(passing):
            self._count()
            self._is_held.wait()
            raise Dropped
        with self._lock:
            if not self._left or not self._refused(passing):
                return None
            self.met, self._left = self.met + 1, self._left - 1
            if self._is_from_then_on:
                self._refused = every
            return self._answer

    def answered(self, passing: Passing, status: int) -> None:
        with self._lock:
            if not self._lost(passing):
                return
            self._lost, self.met = lambda passing: False, self.met + 1
            if self._is_from_then_on:
                self._refused, self._answer, self._left = every, EXPIRED, 1 << 30
        raise Dropped

    def release(self) -> None:
        """Closes the hanging connections."""
        held = self._is_held
        self.heal()
        held.set()

    def _count(self) -> None:
        with self._lock:
            self.met += 1
