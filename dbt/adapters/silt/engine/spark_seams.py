"""Holds every private name of PySpark and py4j that the package uses, so that a new Spark fails here first.

`tests/unit/engine/test_spark_seams.py` tries each of them on the installed Spark. No other module may use a private
name of PySpark.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from types import FunctionType, SimpleNamespace
from typing import Any, Final

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.serializers import UTF8Deserializer, read_int
from pyspark.sql import SparkSession

ANSWER_VARIABLE: Final = "_PYSPARK_DRIVER_CONN_INFO_PATH"
"""The environment variable that tells a starting Java the file for its port and its secret."""


def java(context: SparkContext) -> Any:
    """Returns the packages and classes of the context's Java."""
    return context._jvm


def scala_context(context: SparkContext) -> Any:
    """Returns Java's `SparkContext`."""
    return context._jsc.sc()


def hadoop_configuration(context: SparkContext) -> Any:
    """Returns the configuration that Hadoop's file systems of the context use."""
    return context._jsc.hadoopConfiguration()


def java_session(session: SparkSession) -> Any:
    """Returns Java's `SparkSession`."""
    return session._jsparkSession


def active_context() -> SparkContext | None:
    """Returns the context of this process, if its Spark runs, even if another program started it."""
    return SparkContext._active_spark_context


def gateway() -> Any | None:
    """Returns the connection to the Java of this process, or None if no Java was started."""
    return SparkContext._gateway


def forget_java() -> None:
    """Lets the next context of this process start a Java instead of using the current one."""
    SparkContext._gateway = SparkContext._jvm = None


def launch_java(conf: SparkConf, streams: Mapping[str, Any]) -> Any:
    """Starts Java by Spark's scripts, and returns the gateway, whose attribute `proc` is the process.

    Args:
        streams: arguments of `subprocess.Popen`.
    """
    return launch_gateway(conf, popen_kwargs=dict(streams))


def java_answer(path: Path) -> tuple[int, str]:
    """Reads the port and the secret that a Java has written to the file `ANSWER_VARIABLE`."""
    with path.open("rb") as stream:
        return read_int(stream), UTF8Deserializer().loads(stream)


def connect_to_java(port: int, secret: str) -> Any:
    """Connects PySpark to a running Java, and returns the gateway.

    PySpark reads the secret from `os.environ`, which every template that dbt renders meanwhile could read, too. So
    PySpark's function gets a separate copy of the environment.
    """
    told = {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
    seen = SimpleNamespace(**{**vars(os), "environ": {**os.environ, **told}})
    launch = FunctionType(launch_gateway.__code__, {**launch_gateway.__globals__, "os": seen})
    launch.__defaults__ = launch_gateway.__defaults__
    return launch(SparkConf(loadDefaults=False))


def java_error(error: BaseException) -> Any | None:
    """Returns the Java exception from which PySpark made an error, or None if it was not made from one."""
    return getattr(error, "_origin", None)


@contextlib.contextmanager
def active_session(session: Any) -> Iterator[None]:
    """Makes a Spark Connect session the active session of this thread.

    PySpark's client assigns rows that it keeps on the server to the thread's active session, whichever session
    requested them; only the requesting session can read them. PySpark has no public method to set the active session.
    """
    thread = type(session)._active_session
    before = getattr(thread, "session", None)
    thread.session = session
    try:
        yield
    finally:
        thread.session = before


def secure_channel(builder: Any, address: str, credentials: Any) -> Any:
    """Opens a channel of Spark Connect to an address with the options of a channel builder."""
    return builder._secure_channel(address, credentials)


def connect_channel(session: Any) -> Any:
    """Returns the channel of a session of Spark Connect."""
    return session.client._channel


def connect_metadata(session: Any) -> list[tuple[str, str]]:
    """Returns the metadata of each call that a session of Spark Connect makes."""
    return list(session.client._builder.metadata())


def connect_ids(session: Any) -> tuple[str, str]:
    """Returns the user id and the session id that a session of Spark Connect sends to its server."""
    return session.client._user_id or "", session.client._session_id


def server_side_session(session: Any) -> str:
    """Returns the id that a server of Spark Connect has given to a session; empty before its first answer."""
    return session.client._server_session_id or ""


def relation_of(frame: Any) -> Any:
    """Returns the message that describes the rows of a DataFrame of Spark Connect."""
    return frame._plan.plan(frame.sparkSession.client)


def frame_of(session: Any, relation: Any) -> Any:
    """Returns the DataFrame of a session of Spark Connect over the rows that a message describes."""
    plan, frame = import_module("pyspark.sql.connect.plan"), import_module("pyspark.sql.connect.dataframe")
    return frame.DataFrame(plan.CachedRelation(relation), session)


def read_deep_messages() -> None:
    """Lets this process read messages of protobuf that are nested more deeply than 100 levels, as Spark does."""
    import_module("google._upb._message").SetAllowOversizeProtos(True)
