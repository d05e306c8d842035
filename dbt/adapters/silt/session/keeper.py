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
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError

from dbt.adapters.silt.__version__ import version
from dbt.adapters.silt.kept_spark import inherited_environment, starting
from dbt.adapters.silt.kept_spark.record import Record
from dbt.adapters.silt.kept_spark.watch import RECORD, Reason, Watch, withdraw, write_end
from dbt.adapters.silt.session import class_archive, connect_service
from dbt.adapters.silt.session.connect_service import ConnectService
from dbt.adapters.silt.session.spark import SessionSettings, open_session, stop_spark
from dbt.adapters.silt.session.storage.jars import SparkStorage

_STEP_SECONDS = 0.25
_END_SECONDS = 10


class _Spark:
    """The Spark of this process, as the watch sees it."""

    def __init__(self, service: ConnectService) -> None:
        self._service = service
        self.java = service.java

    def is_alive(self) -> bool:
        return self.java.poll() is None

    def close_sessions(self, user: str) -> None:
        _succeeds(lambda: self._service.close_sessions(user))

    def tidy(self) -> bool:
        return _succeeds(self._service.tidy)


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
    os.environ[connect_service.TOKEN] = token
    try:
        session = open_session(session_settings(given))
    finally:
        del os.environ[connect_service.TOKEN]
    service = ConnectService(session)
    record = _record(session.version, service, token)
    record.write(folder / RECORD)
    spark = _Spark(service)
    return Watch(folder, record, spark, float(given["keep_alive"])), spark


def session_settings(given: Mapping[str, Any]) -> SessionSettings:
    """Returns the settings of an embedded Spark to which other processes can connect."""
    conf = {**connect_service.DEFAULTS, **given["spark_conf"], **connect_service.SETTINGS}
    storage = SparkStorage.from_dict(given["storage"]) if "storage" in given else SparkStorage()
    return SessionSettings(master=given["master"], spark_conf=conf, storage=storage)


def _record(spark: str, service: ConnectService, token: str) -> Record:
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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
