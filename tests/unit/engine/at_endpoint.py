"""A house whose statements a client of Spark Connect sends through `silt endpoint`, for `--endpoint`.

The house keeps a warehouse of this process on the same files, for tests that look at logs.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession

from dbt.adapters.silt.credentials import SiltCredentials
from dbt.adapters.silt.endpoint.connect.service import Server, serve
from dbt.adapters.silt.endpoint.connect.sessions import Door
from dbt.adapters.silt.endpoint.core.house import House as Served
from dbt.adapters.silt.endpoint.core.sessions import Sessions
from dbt.adapters.silt.endpoint.core.tokens import Token
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.session.environment import environment_of
from tests.unit.engine.house import House, opened
from tests.unit.engine.place import Place

_TOKEN = "a-token-of-the-tests"
_CODE = re.compile(r"\[(SILT_\w+)\] ")
_open = contextlib.ExitStack()


def close() -> None:
    """Ends the sessions of the clients, and the endpoints."""
    _open.close()


def _end(session: SparkSession) -> None:
    """Ends the session of a client. `stop` would hold a lock of PySpark that the endpoint, in this process, needs."""
    client: Any = session.client
    atexit.unregister(client._on_exit)
    client.release_session()
    client.close()


@functools.cache
def server(location: str, behind: str) -> Server:
    """Starts an endpoint in this process, once for each warehouse, until `close`.

    Args:
        behind: the address of the Spark Connect server behind it.
    """
    trusts: dict[str, Any] = {
        "stored_code": True,
        "external_paths": True,
        "python_functions": True,
    }  # as a program trusts itself
    profile = SiltCredentials(warehouse=location, remote=behind, **trusts)
    house = Served(environment_of(profile, Path(location).parent), (profile.database, profile.schema))
    started = serve(Door(Sessions(house), Token(_TOKEN, "the tests"), is_local=True), "127.0.0.1", 0)
    _open.callback(started.stop)
    return started


class HouseAtEndpoint(House):
    """A house in a session of a client."""

    def __init__(self, house: House, place: Place) -> None:
        super().__init__(house.warehouse, house.root)
        assert place.behind is not None
        self.place = place
        address = f"sc://localhost:{server(place.location, place.behind).port}/;token={_TOKEN}"
        self.client: SparkSession = SparkSession.builder.remote(address).create()
        _open.callback(_end, self.client)  # a session that nothing refers to closes its client

    def sql(self, text: str, txn: tuple[str, int] | None = None) -> DataFrame:
        if txn is not None:
            pytest.skip("a client of an endpoint names its run, and no unit of work")
        with _as_errors_of_the_engine():
            return self.client.sql(text)

    def fetched(self, text: str) -> list[Row]:
        with _as_errors_of_the_engine():
            return self.sql(text).collect()

    def another(self) -> House:
        return opened(self.warehouse.spark, self.place)

    def in_one_cut(self) -> House:
        pytest.skip("the statements of a client are independent of each other")


@contextlib.contextmanager
def _as_errors_of_the_engine() -> Iterator[None]:
    """Raises the error of the engine that a client was told of."""
    try:
        yield
    except PySparkException as error:
        found = _CODE.search(str(error))
        kind = None if found is None else _kinds().get(found[1])
        if found is None or kind is None:
            raise
        raise _told(kind, str(error)[found.start() :]) from error


def _told(kind: type[errors.SiltError], message: str) -> errors.SiltError:
    """Returns an error with a message."""
    made = kind.__new__(kind)
    errors.SiltError.__init__(made, message)
    made.args = (message,)
    return made


@functools.cache
def _kinds() -> dict[str, type[errors.SiltError]]:
    found: dict[str, type[errors.SiltError]] = {}
    left: list[Any] = [errors.SiltError]
    while left:
        kind = left.pop()
        found.setdefault(kind.code, kind)
        left += kind.__subclasses__()
    return found
