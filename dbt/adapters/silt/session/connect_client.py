"""Connects to Spark Connect servers: the server that a profile names, or a kept Spark.

Imports gRPC and Spark Connect in advance, without using them. PySpark itself retries for ten minutes in each statement
if the server no longer exists.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import grpc
from pyspark.sql.connect.client import DefaultChannelBuilder
from pyspark.sql.connect.client.retries import DefaultPolicy
from pyspark.sql.connect.session import SparkSession

from dbt.adapters.silt.engine import spark_seams
from dbt.adapters.silt.engine.commands.spark import shown_settings
from dbt.adapters.silt.engine.commands.spark.failures.java_process import End, SparkGone
from dbt.adapters.silt.engine.kernel.errors import SparkUnavailableError
from dbt.adapters.silt.kept_spark.finding import Attached

_OPTIONS = (
    ("grpc.enable_http_proxy", 0),  # this machine is reached without a proxy, even if the environment names a proxy
    ("grpc.keepalive_time_ms", 2**31 - 1),  # without a network in between, the connection ends only with the server
)

_PORT = 15002
_CONNECT_SECONDS = 10
_GONE_SECONDS = 30.0
"""The time after which an unreachable server counts as lost; until then, a load balancer may be switching."""
_LONGEST_PAUSE_MS = 5_000
_RETRIES = 150
"""With pauses of five seconds, the retries last as long as PySpark's own, for a server that cannot answer yet."""


class _WhileReachable(DefaultPolicy):
    """Retries as long as a process listens at the server's address."""

    def __init__(self, remote: str, gone_seconds: float = _GONE_SECONDS) -> None:
        super().__init__(max_retries=_RETRIES, max_backoff=_LONGEST_PAUSE_MS)
        self._remote = remote
        self._gone_seconds = gone_seconds
        self._gone_since: float | None = None

    def can_retry(self, e: BaseException) -> bool:
        """Returns whether to retry after an error.

        Raises:
            SparkUnavailableError: if the address has been unreachable for `gone_seconds`.
        """
        if not super().can_retry(e):
            return False
        try:
            check_reachable(self._remote)
            self._gone_since = None
        except OSError as error:
            now = time.monotonic()
            self._gone_since = self._gone_since or now
            if now - self._gone_since >= self._gone_seconds:
                shown = shown_settings.remote(self._remote)
                raise SparkUnavailableError(
                    f"the connection to the Spark Connect server {shown} was lost during a statement",
                    remedy="When the server runs again, run `dbt retry`: it skips committed work",
                ) from error
        return True


def check_reachable(remote: str) -> None:
    """Checks that a process listens at a server's address.

    Raises:
        OSError: if the address cannot be reached.
        ValueError: if it is not an address.
    """
    url = urlsplit(remote)
    socket.create_connection((url.hostname or "", url.port or _PORT), _CONNECT_SECONDS).close()


def connect_to(remote: str) -> SparkSession:
    """Creates a session of the server at an address."""
    _use_connect()
    session = SparkSession.builder.remote(remote).create()
    session.client.set_retry_policies([_WhileReachable(remote)])
    return session


class _Channel(DefaultChannelBuilder):
    """A channel to a server of this machine that requires a token."""

    def __init__(self, attached: Attached) -> None:
        super().__init__(f"sc://{attached.record.address}", channelOptions=list(_OPTIONS))
        self.set(self.PARAM_USER_ID, attached.lease.name)
        self._token = attached.record.token

    def toChannel(self) -> grpc.Channel:
        credentials = grpc.composite_channel_credentials(
            grpc.local_channel_credentials(), grpc.access_token_call_credentials(self._token)
        )
        return spark_seams.secure_channel(self, f"ipv4:{self.endpoint}", credentials)


class _WhileItLives(DefaultPolicy):
    """Retries only while the server runs: it does not wait for a server that has ended."""

    def __init__(self, ended: Callable[[], End | None]) -> None:
        super().__init__()
        self._ended = ended

    def can_retry(self, e: BaseException) -> bool:
        """Returns whether to retry after an error.

        Raises:
            SparkGone: if the server has ended; raised here because only this policy knows which server it was.
        """
        if not super().can_retry(e):
            return False
        end = self._ended()
        if end is not None:
            raise SparkGone(end) from e
        return True


def connect(attached: Attached, ended: Callable[[], End | None]) -> SparkSession:
    """Creates a session of a kept Spark.

    Args:
        ended: returns how that Spark has ended, or None while it runs.
    """
    _use_connect()
    session = SparkSession.builder.channelBuilder(_Channel(attached)).create()
    session.client.set_retry_policies([_WhileItLives(ended)])
    return session


def cloned(session: Any) -> Any:
    """Creates a session with the state of another session: its settings, temporary views and functions."""
    made = session.cloneSession()
    made.client.set_retry_policies(session.client.get_retry_policies())
    return made


def _use_connect() -> None:
    """Makes PySpark's functions create columns of Spark Connect, and its DataFrames know their attributes.

    A DataFrame of Spark Connect otherwise has a column of any name that code asks for, so that a python model which
    tests `hasattr(frame, "df")` fails only with `keep_alive` or `remote`.
    """
    os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"
    os.environ.setdefault("PYSPARK_VALIDATE_COLUMN_NAME_LEGACY", "1")
