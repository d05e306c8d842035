"""The process that keeps a Spark between commands: starts it, lets this user's commands use it, and stops it.

`kept_spark/starting.py` starts this process, with the settings on its standard input. Spark's Java ends with this
process, even if it is killed: Java reads from a pipe that closes then.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from dbt.adapters.silt.__version__ import version
from dbt.adapters.silt.engine import spark_seams
from dbt.adapters.silt.kept_spark import inherited_environment, starting
from dbt.adapters.silt.kept_spark.leases import Record
from dbt.adapters.silt.kept_spark.watch import RECORD, Reason, Watch, withdraw, write_end
from dbt.adapters.silt.session import class_archive
from dbt.adapters.silt.session.jars import SparkStorage
from dbt.adapters.silt.session.spark import SessionSettings, open_session, stop_spark

_STEP_SECONDS = 0.25
_END_SECONDS = 10


class _Spark:
    """The Spark of this process, as the watch sees it."""

    def __init__(self, service: _ConnectService) -> None:
        self._service = service
        self.java = service.java

    def is_alive(self) -> bool:
        return self.java.poll() is None

    def close_sessions(self, user: str) -> None:
        _succeeds(lambda: self._service.close_sessions(user))

    def tidy(self) -> bool:
        return _succeeds(self._service.tidy)


_SETTINGS: Mapping[str, str] = {
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.connect.grpc.binding.port": "0",
    # A client may return to its session after its machine slept for a night; sessions of ended processes are closed.
    "spark.connect.session.manager.defaultSessionTimeout": "-1",
    "spark.connect.execute.manager.detachedTimeout": "30d",
}
"""The settings that the service is started with, which override the user's."""

_DEFAULTS: Mapping[str, str] = {
    # The records that Spark keeps of finished work: they would grow for hundreds of runs.
    "spark.connect.execute.manager.abandonedTombstonesSize": "100",
    "spark.sql.connect.ui.retainedSessions": "20",
    "spark.sql.connect.ui.retainedStatements": "20",
    "spark.sql.ui.retainedExecutions": "20",
    "spark.ui.retainedJobs": "100",
    "spark.ui.retainedStages": "100",
    "spark.ui.retainedTasks": "1000",
}
_TOKEN = "spark.connect.authenticate.token"
"""The setting from which the service reads the token when it starts. It is removed then, and is never a variable of the
environment, which a statement can read.
"""
_IN_MEMORY = "InMemoryCatalog"
_SERVICE = "org.apache.spark.sql.connect.service"


class _ConnectService:
    """The service in this process's Spark.

    Args:
        session: a session of an embedded Spark that was started with `_SETTINGS`.
        token: what a client must know.

    Attributes:
        java: Spark's own process.
        application: its id as a Spark application.
        master: the master that runs its tasks.
    """

    def __init__(self, session: SparkSession, token: str) -> None:
        context = session.sparkContext
        self._session = session
        self._java: Any = spark_seams.java(context)
        gateway: Any = spark_seams.gateway()
        self.java: subprocess.Popen[bytes] = gateway.proc
        self.application = str(context.applicationId)
        self.master = context.master
        self._service: Any = getattr(getattr(self._java, f"{_SERVICE}.SparkConnectService$"), "MODULE$")
        settings = spark_seams.scala_context(context).conf()
        settings.set(_TOKEN, token)
        self._service.start(spark_seams.scala_context(context))
        settings.remove(_TOKEN)

    @property
    def port(self) -> int:
        return int(self._service.localPort())

    def close_sessions(self, user: str) -> None:
        """Closes the sessions of a user id: their statements are cancelled, and their resources released."""
        manager = self._service.sessionManager()
        key_of = getattr(self._java, f"{_SERVICE}.SessionKey")
        for each in _elements(manager.listActiveSessions()):
            if each.userId() == user:
                manager.closeSession(key_of(user, each.sessionId()), False)

    def count_sessions(self) -> int:
        return int(self._service.sessionManager().listActiveSessions().size())

    def tidy(self) -> None:
        """Clears state shared by sessions: cached rows, global views, Python workers, names in Spark's own catalog.

        No session may be open.
        """
        shared = spark_seams.java_session(self._session).sharedState()
        self._session.catalog.clearCache()
        shared.globalTempViewManager().clear()
        catalog = shared.externalCatalog().unwrapped()
        if catalog.getClass().getSimpleName() == _IN_MEMORY:  # any other catalog outlives Spark
            _forget_names(catalog)
        _stop_python(self._java, spark_seams.scala_context(self._session.sparkContext).env())
        self._java.java.lang.System.gc()


def _succeeds(call: Callable[[], None]) -> bool:
    """Returns whether the call of Java succeeded; a failure is in Spark's log."""
    try:
        call()
    except (Py4JError, ConnectionError, EOFError):
        traceback.print_exc()
        return False
    return True


def main(arguments: list[str]) -> int:
    """Keeps a Spark until its watch ends it; returns 1 if Spark does not start."""
    [folder] = map(Path, arguments)
    given = json.load(sys.stdin)
    os.set_inheritable(starting.READY, False)
    os.set_inheritable(starting.LIVING, False)
    try:
        watch, spark = _start(folder, given)
    except Exception as error:  # the waiting command reports it
        starting.answer(error)
        return 1
    starting.answer(None)
    class_archive.make_after_this_process()
    reason = _keep(watch)
    _end(folder, reason, spark)
    return 0


def _start(folder: Path, given: Mapping[str, Any]) -> tuple[Watch, _Spark]:
    token = secrets.token_urlsafe(32)
    session = open_session(session_settings(given))
    service = _ConnectService(session, token)
    record = _record(session.version, service, token)
    record.write(folder / RECORD)
    spark = _Spark(service)
    return Watch(folder, record, spark, float(given["keep_alive"])), spark


def session_settings(given: Mapping[str, Any]) -> SessionSettings:
    """Returns the settings of an embedded Spark to which other processes can connect."""
    conf = {**_DEFAULTS, **given["spark_conf"], **_SETTINGS}
    storage = SparkStorage.from_dict(given["storage"]) if "storage" in given else SparkStorage()
    return SessionSettings(master=given["master"], spark_conf=conf, storage=storage)


def _record(spark: str, service: _ConnectService, token: str) -> Record:
    return Record(
        port=service.port,
        token=token,
        keeper=os.getpid(),
        java=service.java.pid,
        started=time.time(),
        spark=spark,
        package=version,
        application=service.application,
        master=str(service.master),
        folder=os.getcwd(),
        machine=inherited_environment.machine(),
    )


def _keep(watch: Watch) -> Reason:
    """Steps the watch until Spark is to end; SIGTERM, as at a shutdown of the system, or SIGINT ends it at once."""
    asked = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: asked.set())
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    while not asked.wait(_STEP_SECONDS):
        reason = watch.step()
        if reason is not None:
            return reason
    return Reason.SIGNALLED


def _end(folder: Path, reason: Reason, spark: _Spark) -> None:
    """Stops Spark; a command that waits at the gate continues when this process has ended."""
    write_end(folder, reason, spark.java.poll())
    withdraw(folder)
    if reason is Reason.DIED:
        return
    if reason in (Reason.FORCED, Reason.SIGNALLED):  # Spark would wait for running jobs
        spark.java.kill()
        spark.java.wait()
        return
    signal.signal(signal.SIGALRM, lambda *_: spark.java.kill())
    signal.alarm(_END_SECONDS)
    with contextlib.suppress(Exception):  # Spark has ended already
        stop_spark()
    signal.alarm(0)


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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
