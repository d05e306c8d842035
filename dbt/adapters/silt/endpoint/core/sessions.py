"""The open sessions of all clients, at all doors.

    sessions = Sessions(house, limits)
    session = sessions.open(Client("ann", "thrift"), {"silt.run_id": "nightly-42"})
    operation = Operation(session, "insert into main.orders values (1)")  # runs on a thread of its own
    operation.wait(); operation.result().rows_affected
    session.run("select count(*) from main.orders").rows               # waits
    session.warehouse                                                  # the engine in this session, for a door's use
    sessions.close(session.id)

The statements of a session run one after another; different sessions run at the same time. A door that runs statements
through `session.warehouse` holds `session.busy()` meanwhile, and checks them by `session.check(statement)`.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from dbt.adapters.silt.endpoint.core.house import Client, House, Limits
from dbt.adapters.silt.endpoint.core.session import Session, ended
from dbt.adapters.silt.engine.kernel import errors

_logger = logging.getLogger("dbt.adapters.silt.endpoint")


@dataclass
class Sessions:
    """The open sessions of all doors. Thread-safe.

    Args:
        clock: returns the time in seconds.
    """

    house: House
    limits: Limits = field(default_factory=Limits)
    clock: Callable[[], float] = time.monotonic
    _open: dict[str, Session] = field(default_factory=dict, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def open(self, client: Client, settings: Mapping[str, str] | None = None) -> Session:
        """Opens a session, with settings as by SET.

        Raises:
            UnavailableError: if too many sessions are open.
            SiltError: if a setting is refused.
        """

        def set_all(session: Session) -> None:
            for key, value in (settings or {}).items():
                session.run(_set(key, value))

        return self._begun(client, set_all)

    def clone(self, session: Session, clone: Callable[[SparkSession], SparkSession]) -> Session:
        """Opens a session with the state of another; raises as `open` and `Session.take_over`."""
        return self._begun(session.client, lambda made: made.take_over(session, clone))

    def _begun(self, client: Client, begin: Callable[[Session], None]) -> Session:
        self.expire()
        session = Session(self.house, client, self.limits, self.clock)
        with self._lock:
            if len(self._open) >= self.limits.most_sessions:
                raise errors.UnavailableError(
                    f"{len(self._open)} sessions are open, the most that this endpoint serves",
                    remedy="Close connections that are not used",
                )
            self._open[session.id] = session
        try:
            begin(session)
        except BaseException:
            self.lose(session.id, "the session could not be opened")
            raise
        return session

    def get(self, session_id: str) -> Session:
        """Returns an open session.

        Raises:
            InvalidStatementError: if it is not open.
        """
        with self._lock:
            found = self._open.get(session_id)
        if found is None:
            raise ended()
        found.last_used = self.clock()
        return found

    def close(self, session_id: str, problem: str = "") -> None:
        """Closes a session, if it is open.

        Args:
            problem: why its client has not ended it, as the end of a sentence; its run is then held.

        Raises:
            SiltError: if its run could not be published.
        """
        with self._lock:
            found = self._open.pop(session_id, None)
        if found is not None:
            found.interrupt()
            found.close(problem)

    def lose(self, session_id: str, problem: str) -> None:
        """Closes a session whose client has not ended it; a failure is only logged, because nobody waits for it."""
        try:
            self.close(session_id, problem)
        except errors.SiltError as error:
            _logger.warning("the run of a session that has ended is left: %s", error)

    def expire(self) -> int:
        """Closes the sessions that have been idle for too long; returns their number."""
        now = self.clock()
        with self._lock:
            old = [
                each for each in self._open.values() if each.is_idle and now - each.last_used > self.limits.idle_seconds
            ]
        for each in old:
            self.lose(each.id, "the session was idle for too long")
        return len(old)

    def close_all(self) -> None:
        """Closes all sessions."""
        for each in tuple(self._open):
            self.lose(each, "the endpoint was stopped")

    def __contains__(self, session_id: str) -> bool:
        return session_id in self._open

    def __len__(self) -> int:
        return len(self._open)


def _set(key: str, value: str) -> str:
    """Returns the statement that makes a setting; Spark keeps its value as it is written."""
    if not _KEY.fullmatch(key) or not _VALUE.fullmatch(value):
        raise errors.InvalidSettingError(
            f"the session's setting {key!r} cannot be {value!r}", remedy="Use one line without quotes and semicolons"
        )
    return f"set {key}={value}"


_KEY = re.compile(r"[\w.\-]{1,200}")
_VALUE = re.compile(r"[^\n\r;'\"`]{1,4000}")
