"""Connects to Spark Connect's servers: one that a profile names, and the Spark that stays between commands.

Importing this brings gRPC and Spark Connect, and uses neither. PySpark itself asks a server that is gone again and
again, for ten minutes in each statement.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from urllib.parse import urlsplit

import grpc
from pyspark.sql.connect.client import DefaultChannelBuilder
from pyspark.sql.connect.client.retries import DefaultPolicy
from pyspark.sql.connect.session import SparkSession

from dbt.adapters.silt.engine.commands.spark import shown_settings
from dbt.adapters.silt.engine.commands.spark.failures.java_process import End, SparkGone
from dbt.adapters.silt.engine.kernel.errors import SparkUnavailableError
from dbt.adapters.silt.kept_spark.finding import Attached

_OPTIONS = (
    ("grpc.enable_http_proxy", 0),  # whatever proxy the environment names, this machine is reached without
    ("grpc.keepalive_time_ms", 2**31 - 1),  # no network is between: only the server's end ends the connection
)

_PORT = 15002
_CONNECT_SECONDS = 10
_GONE_SECONDS = 30.0
"""For how long a server may be gone, as while a load balancer turns to another, before it counts as gone for good."""
_LONGEST_PAUSE_MS = 5_000
_RETRIES = 150
"""With pauses of five seconds they last as long as PySpark's own, for a server that is there and cannot answer yet."""


class _WhileReachable(DefaultPolicy):
    """Tries again as long as something listens at the server's address."""

    def __init__(self, remote: str, gone_seconds: float = _GONE_SECONDS) -> None:
        super().__init__(max_retries=_RETRIES, max_backoff=_LONGEST_PAUSE_MS)
        self._remote = remote
        self._gone_seconds = gone_seconds
        self._gone_since: float | None = None

    def can_retry(self, e: BaseException) -> bool:
        """Whether to try again after an error.

        Raises:
            SparkUnavailableError: nothing listens there, and has not for a while.
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
                    f"the Spark Connect server {shown} went away in the middle of a statement",
                    remedy="When it is there again, run `dbt retry`: what was committed is skipped",
                ) from error
        return True


def check_reachable(remote: str) -> None:
    """Passes where something listens at a server's address.

    Raises:
        OSError: nothing does.
        ValueError: it is no address.
    """
    url = urlsplit(remote)
    socket.create_connection((url.hostname or "", url.port or _PORT), _CONNECT_SECONDS).close()


def connect_to(remote: str) -> SparkSession:
    """A new session of the server at an address."""
    _use_connect()
    session = SparkSession.builder.remote(remote).create()
    session.client.set_retry_policies([_WhileReachable(remote)])
    return session


class _Channel(DefaultChannelBuilder):
    """A channel to a server of this machine, which asks for a token."""

    def __init__(self, attached: Attached) -> None:
        super().__init__(f"sc://{attached.record.address}", channelOptions=list(_OPTIONS))
        self.set(self.PARAM_USER_ID, attached.lease.name)
        self._token = attached.record.token

    def toChannel(self) -> grpc.Channel:
        credentials = grpc.composite_channel_credentials(
            grpc.local_channel_credentials(), grpc.access_token_call_credentials(self._token)
        )
        return self._secure_channel(f"ipv4:{self.endpoint}", credentials)


class _WhileItLives(DefaultPolicy):
    """Tries again only as long as there is a server: nobody waits for minutes for one that is gone."""

    def __init__(self, ended: Callable[[], End | None]) -> None:
        super().__init__()
        self._ended = ended

    def can_retry(self, e: BaseException) -> bool:
        """Whether to try again after an error.

        Raises:
            SparkGone: in its place, where it is that there is no server any more: only here it is known which one.
        """
        if not super().can_retry(e):
            return False
        end = self._ended()
        if end is not None:
            raise SparkGone(end) from e
        return True


def connect(attached: Attached, ended: Callable[[], End | None]) -> SparkSession:
    """A new session of that Spark.

    Args:
        ended: how it has ended; None while it lives.
    """
    _use_connect()
    session = SparkSession.builder.channelBuilder(_Channel(attached)).create()
    session.client.set_retry_policies([_WhileItLives(ended)])
    return session


def _use_connect() -> None:
    """By this PySpark's functions know whose columns they make."""
    os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"
