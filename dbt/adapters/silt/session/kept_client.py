"""Connects to the Spark that stays between commands. Importing this brings gRPC and Spark Connect, and uses neither."""

from __future__ import annotations

import os
from collections.abc import Callable

import grpc
from pyspark.sql.connect.client import DefaultChannelBuilder
from pyspark.sql.connect.client.retries import DefaultPolicy
from pyspark.sql.connect.session import SparkSession

from dbt.adapters.silt.engine.commands.spark.java_process import End, SparkGone
from dbt.adapters.silt.kept_spark.finding import Attached

_OPTIONS = (
    ("grpc.enable_http_proxy", 0),  # whatever proxy the environment names, this machine is reached without
    ("grpc.keepalive_time_ms", 2**31 - 1),  # no network is between: only the server's end ends the connection
)


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
    os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"  # by this PySpark's functions know whose columns they make
    session = SparkSession.builder.channelBuilder(_Channel(attached)).create()
    session.client.set_retry_policies([_WhileItLives(ended)])
    return session
