"""Checks the cluster of a `master` when Spark starts: it is reachable, provides executors, and runs the same Spark.

Spark itself waits without end for executors that never come, and reports another version by errors of Java's
serialization, in the middle of a model.
"""

from __future__ import annotations

import re
import socket
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet

import pyspark
from dbt.adapters.events.logging import AdapterLogger
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.commands.spark.failures.causes import first_line
from dbt.adapters.silt.engine.kernel.errors import SparkUnavailableError

logger = AdapterLogger("Silt")

_STANDALONE = re.compile(r"spark://(?P<places>.+)")
_CONNECT_SECONDS = 10
_TELL_SECONDS = 15
_LONGEST_SECONDS = 600
"""A cluster that starts machines on demand takes minutes."""
_TASKS = 8
_VERSIONS = f"""select distinct reflect('org.apache.spark.SparkBuildInfo', 'spark_version') as version
    from range(0, {_TASKS}, 1, {_TASKS})"""


def check_master(master: str) -> None:
    """Checks that a process listens at an address of a `spark://` master; ignores other masters.

    Raises:
        SparkUnavailableError: if no address can be reached.
    """
    found = _STANDALONE.fullmatch(master)
    if found is None:
        return
    failures = [_not_reached(address) for address in found["places"].split(",")]
    if all(failures):
        raise SparkUnavailableError(
            f"no Spark master answers at {master} ({failures[0]})",
            remedy="Check `master` in the profile, that the cluster runs, and that this machine can reach its port",
        )


def check_executors(session: SparkSession, master: str, longest_seconds: float = _LONGEST_SECONDS) -> None:
    """Waits until the cluster runs a task, and checks that its executors run this process's minor version of Spark.

    Raises:
        SparkUnavailableError: if no task ran in time, or the executors run another version.
    """
    with ThreadPoolExecutor(1, "silt-cluster") as pool:
        asked = pool.submit(lambda: [str(row["version"]) for row in session.sql(_VERSIONS).collect()])
        try:
            versions = _await_executors(asked, master, longest_seconds)
        except NotYet:
            session.interruptAll()
            raise SparkUnavailableError(
                f"{master} has provided no executor in {longest_seconds:.0f} seconds",
                remedy="Check that its workers run and have free cores and memory (`spark.executor.memory`, "
                "`spark.executor.cores` and `spark.cores.max` in `spark_conf` set how much is requested), and "
                "that they reach this machine (`spark.driver.host`)",
            ) from None
        except (PySparkException, Py4JError) as error:
            raise SparkUnavailableError(
                f"the executors of {master} cannot run a task ({first_line(error)})",
                remedy=f"Check that they run Spark {session.version}, as this process does, and the workers' logs",
            ) from error
    others = sorted({version for version in versions if _minor(version) != _minor(session.version)})
    if others:
        raise SparkUnavailableError(
            f"{master} runs Spark {others[0]}, but this process runs {session.version}",
            remedy=f"Install the version of the cluster here: `pip install 'pyspark=={_minor(others[0])}.*'`",
        )


def not_taken(master: str, error: PySparkException | Py4JError) -> SparkUnavailableError:
    """Returns the error for an application that ended at its start: only the master's log has the reason."""
    return SparkUnavailableError(
        f"{master} did not accept this application ({first_line(error)})",
        remedy=f"Check that it runs Spark {_minor(pyspark.__version__)}, as this process does, and the master's log; "
        "another minor version of Spark cannot be used",
    )


def _await_executors(asked: Future[list[str]], master: str, longest_seconds: float) -> list[str]:
    waited = 0.0
    while True:
        try:
            return asked.result(min(_TELL_SECONDS, longest_seconds - waited))
        except NotYet:
            waited += _TELL_SECONDS
            if waited >= longest_seconds:
                raise
            logger.info(f"{master} has provided no executor yet, after {waited:.0f} seconds")


def _not_reached(address: str) -> str:
    """Returns why the address cannot be reached, or an empty string if it can."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()
    except ValueError:
        return "the URL of a master is spark://host:port"
    except OSError as error:
        return f"{address}: {error.strerror or error}"
    return ""


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])
