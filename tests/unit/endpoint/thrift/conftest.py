"""A Thrift door in the tests' process, and clients of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from pyhive import hive

from dbt.adapters.silt.endpoint.core.house import Limits
from dbt.adapters.silt.endpoint.core.sessions import Sessions
from dbt.adapters.silt.endpoint.core.tokens import Token
from dbt.adapters.silt.endpoint.thrift.server import ThriftServer
from dbt.adapters.silt.endpoint.thrift.service import Door

TOKEN = "correct-horse-battery-staple"


@pytest.fixture
def server_of(sessions_of: Callable[..., Sessions]) -> Iterator[Callable[..., ThriftServer]]:
    """Starts a door with limits; it ends with the test."""
    with ExitStack() as stack:

        def started(limits: Limits | None = None, **fields: Any) -> ThriftServer:
            server = ThriftServer(("127.0.0.1", 0), Door(sessions_of(limits, **fields), Token(TOKEN, "the test")))
            thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
            thread.start()
            stack.callback(thread.join)
            stack.callback(server.server_close)
            stack.callback(server.shutdown)
            return server

        yield started


@pytest.fixture
def server(server_of: Callable[..., ThriftServer]) -> ThriftServer:
    return server_of()


def connect(server: ThriftServer, **given: Any) -> hive.Connection:
    """Connects by PyHive, by default by SASL PLAIN with the token."""
    login = {"auth": "LDAP", "username": "ann", "password": TOKEN}
    return hive.connect("127.0.0.1", server.port, **(login | given))


def rows(connection: hive.Connection, text: str) -> list[tuple[Any, ...]]:
    """Runs a statement, and returns its rows."""
    with connection.cursor() as cursor:
        cursor.execute(text)
        return cursor.fetchall() if cursor.description else []
