"""The sessions of clients of Spark Connect: who may open one, and what belongs to one."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import grpc

from dbt.adapters.silt.endpoint.connect.backend import Backend, Failed, forget_oldest
from dbt.adapters.silt.endpoint.connect.limits import LimitedOperations
from dbt.adapters.silt.endpoint.connect.operations import Operations, not_cloned, not_found
from dbt.adapters.silt.endpoint.connect.plans import Plans
from dbt.adapters.silt.endpoint.core.house import Client
from dbt.adapters.silt.endpoint.core.session import Session
from dbt.adapters.silt.endpoint.core.sessions import Sessions
from dbt.adapters.silt.endpoint.core.tokens import Token
from dbt.adapters.silt.engine.kernel.errors import InvalidStatementError
from dbt.adapters.silt.engine.kernel.printable import UUID
from dbt.adapters.silt.session import connect_client

TOKEN: Final = "silt.token"
"""The session's setting that holds the token, for clients that would send it only over TLS."""

_MOST_WAITING: Final = 100
_MOST_SETTINGS: Final = 100
_MOST_KNOWN: Final = 10_000
_TOO_LONG: Final = 4000


@dataclass(frozen=True)
class Key:
    """The name of a session: the user and the session, as the client names them."""

    user: str
    session: str

    @classmethod
    def of(cls, request: Any) -> Key:
        return cls(request.user_context.user_id, request.session_id)


@dataclass
class ConnectSession:
    """A session of a client: its session of the engine, of the server behind the endpoint, and its operations."""

    session: Session
    backend: Backend
    plans: Plans
    limited: LimitedOperations
    operations: Operations = field(default_factory=Operations)


@dataclass
class Door:
    """The open sessions of this door. Thread-safe.

    Args:
        token: what a client must know.
        is_local: whether only programs of this machine can connect, so that the token may be a setting.
    """

    sessions: Sessions
    token: Token
    is_local: bool
    _known: dict[Key, ConnectSession] = field(default_factory=dict)
    _trusted: dict[Key, None] = field(default_factory=dict)
    _waiting: dict[Key, dict[str, str]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _opening: threading.Lock = field(default_factory=threading.Lock)

    def is_allowed(self, key: Key, context: grpc.ServicerContext) -> bool:
        """Returns whether a call has shown the token, or its session has."""
        given = dict(context.invocation_metadata()).get("authorization", "")
        if given:
            return self.token.matches(str(given).removeprefix("Bearer "))
        return key in self._trusted

    def settings_before(self, key: Key, settings: dict[str, str]) -> dict[str, str] | None:
        """Takes settings of a session that has not shown the token, as a setting.

        A client sets its settings one by one, in any order, before its first statement.

        Returns:
            all settings so far, without the token, if it is among them; None if the session must wait for it.

        Raises:
            Failed: if the token is wrong, or the settings are too many or too long.
        """
        with self._lock:
            waiting = {**self._waiting.pop(key, {}), **settings}
            token = waiting.pop(TOKEN, None)
            if token is None and self.is_local and len(waiting) <= _MOST_SETTINGS and _are_short(settings):
                self._waiting[key] = waiting
                forget_oldest(self._waiting, _MOST_WAITING)
                return None
            if token is None or not self.is_local or not self.token.matches(token):
                raise refused()
            self._trusted[key] = None
            forget_oldest(self._trusted, _MOST_KNOWN)
            return waiting

    def find(self, key: Key) -> ConnectSession | None:
        """Returns the session with a name, if it is open."""
        with self._lock:
            known = self._known.get(key)
            if known is None:
                return None
            try:
                self.sessions.get(known.session.id)
            except InvalidStatementError:
                del self._known[key]
                return None
            return known

    def open(self, key: Key, program: str, seen: str) -> ConnectSession:
        """Returns the session with a name, which is opened if it is new.

        Args:
            program: the client's own name.
            seen: the id of the server's session that the client has seen.

        Raises:
            Failed: if the client has used the session before, and it is no longer open.
            SiltError: if it cannot be opened.
        """
        with self._opening:
            known = self.find(key)
            if known is None and seen:
                raise not_found("SESSION_CHANGED", key.session)
            if known is None:
                session = self.sessions.open(Client(key.user, f"connect {program}".strip()))
                known = self.added(key, session)
            elif seen and seen != known.backend.server_side_session:
                raise not_found("SESSION_CHANGED", key.session)
            return known

    def clone(self, key: Key, known: ConnectSession, name: str) -> tuple[str, ConnectSession]:
        """Opens a clone of a session, and returns its id and the clone.

        Args:
            name: the id that the client wants; empty for any.

        Raises:
            Failed: if the id is not a UUID, or another session has it.
            SiltError: as `Sessions.clone`.
        """
        new = Key(key.user, name or str(uuid.uuid4()))
        if not UUID.fullmatch(new.session.lower()):
            raise not_cloned("TARGET_SESSION_ID_FORMAT", f"The session id {name[:100]} is not a UUID")
        with known.session.busy(), self._opening:
            if self.find(new) is not None:
                raise not_cloned("TARGET_SESSION_ID_ALREADY_EXISTS", f"There is a session with the id {name}")
            made = self.added(new, self.sessions.clone(known.session, connect_client.cloned))
            made.plans.pin_as(known.plans)
        if key in self._trusted:
            self._trusted[new] = None
        return new.session, made

    def added(self, key: Key, session: Session) -> ConnectSession:
        """Returns a session of the engine as a session of this door."""
        spark = session.warehouse.spark
        spark.version  # noqa: B018 -- the first call, with which the server names its session
        limited = LimitedOperations(lambda: session.limits, spark.interruptOperation)
        known = ConnectSession(session, Backend(spark, key.session), Plans(session), limited)
        with self._lock:
            self._known[key] = known
        return known

    def close(self, key: Key) -> None:
        """Closes a session, if it is open."""
        with self._lock:
            known = self._known.pop(key, None)
            self._trusted.pop(key, None)
        if known is not None:
            self.sessions.close(known.session.id)


def _are_short(settings: Mapping[str, str]) -> bool:
    return all(len(each) < _TOO_LONG for pair in settings.items() for each in pair)


def refused() -> Failed:
    """Returns the failure of a call without the token."""
    return Failed(
        grpc.StatusCode.UNAUTHENTICATED,
        "[SILT_TOKEN] the token is missing or wrong: put the token of the endpoint into the address, as in "
        f"sc://localhost:15002/;token=..., or into the session's setting `{TOKEN}` on this machine",
    )
