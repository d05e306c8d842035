"""Lets Spark Connect's clients use the Spark of this process, and cleans up after them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.sql import SparkSession

SETTINGS: Mapping[str, str] = {
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.connect.grpc.binding.port": "0",
    # A client may return to its session after its machine slept for a night; sessions of ended processes are closed.
    "spark.connect.session.manager.defaultSessionTimeout": "-1",
    "spark.connect.execute.manager.detachedTimeout": "30d",
}
"""The settings that the service is started with, which override the user's."""

DEFAULTS: Mapping[str, str] = {
    # The records that Spark keeps of finished work: they would grow for hundreds of runs.
    "spark.connect.execute.manager.abandonedTombstonesSize": "100",
    "spark.sql.connect.ui.retainedSessions": "20",
    "spark.sql.connect.ui.retainedStatements": "20",
    "spark.sql.ui.retainedExecutions": "20",
    "spark.ui.retainedJobs": "100",
    "spark.ui.retainedStages": "100",
    "spark.ui.retainedTasks": "1000",
}

TOKEN = "SPARK_CONNECT_AUTHENTICATE_TOKEN"
"""The environment variable from which Spark's Java reads the token: unlike a setting, no page shows it."""

_IN_MEMORY = "InMemoryCatalog"
_SERVICE = "org.apache.spark.sql.connect.service"


class ConnectService:
    """The service in this process's Spark.

    Args:
        session: a session of an embedded Spark that was started with `SETTINGS`.

    Attributes:
        java: Spark's own process.
        application: its id as a Spark application.
        master: the master that runs its tasks.
    """

    def __init__(self, session: SparkSession) -> None:
        context = session.sparkContext
        assert context._jvm is not None
        self._session = session
        self._jvm: Any = context._jvm
        gateway: Any = context._gateway
        self.java: subprocess.Popen[bytes] = gateway.proc
        self.application = str(context.applicationId)
        self.master = context.master
        self._service: Any = getattr(getattr(self._jvm, f"{_SERVICE}.SparkConnectService$"), "MODULE$")
        self._service.start(context._jsc.sc())

    @property
    def port(self) -> int:
        return int(self._service.localPort())

    def close_sessions(self, user: str) -> None:
        """Closes the sessions of a user id: their statements are cancelled, and their resources released."""
        manager = self._service.sessionManager()
        key_of = getattr(self._jvm, f"{_SERVICE}.SessionKey")
        for each in _elements(manager.listActiveSessions()):
            if each.userId() == user:
                manager.closeSession(key_of(user, each.sessionId()), False)

    def count_sessions(self) -> int:
        return int(self._service.sessionManager().listActiveSessions().size())

    def tidy(self) -> None:
        """Clears state shared by sessions: cached rows, global views, Python workers, names in Spark's own catalog.

        No session may be open.
        """
        shared = self._session._jsparkSession.sharedState()
        self._session.catalog.clearCache()
        shared.globalTempViewManager().clear()
        catalog = shared.externalCatalog().unwrapped()
        if catalog.getClass().getSimpleName() == _IN_MEMORY:  # any other catalog outlives Spark
            _forget_names(catalog)
        _stop_python(self._jvm, self._session.sparkContext._jsc.sc().env())
        self._jvm.java.lang.System.gc()


def _elements(sequence: Any) -> Iterator[Any]:
    """Yields the elements of a Scala sequence."""
    yield from (sequence.apply(index) for index in range(sequence.size()))


def _forget_names(catalog: Any) -> None:
    """Removes the databases, tables and functions from Spark's in-memory catalog; touches no file."""
    field = catalog.getClass().getDeclaredField("catalog")
    field.setAccessible(True)
    databases = field.get(catalog)
    default = databases.apply("default")
    default.tables().clear()
    default.functions().clear()
    databases.clear()
    databases.update("default", default)


def _stop_python(jvm: Any, environment: Any) -> None:
    """Stops the workers of Python functions: the modules that they have imported may have changed."""
    # By name: py4j cannot list the methods of this class, since some of their types are in packages that Spark omits.
    field = jvm.java.lang.Class.forName("org.apache.spark.SparkEnv").getDeclaredField("pythonWorkers")
    field.setAccessible(True)
    factories = field.get(environment)
    for factory in _elements(factories.values().toSeq()):
        factory.stop()
    factories.clear()
