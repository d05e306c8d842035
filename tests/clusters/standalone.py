"""A standalone cluster of this machine: a master and workers of pip's PySpark.

They listen on addresses of the loopback interface, a different one for each worker, as on several machines: Spark
starts no speculative copy of a task on the host that already runs it.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyspark

DRIVER: Final[Mapping[str, str]] = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
"""The address at which executors of this machine reach the driver."""

SMALL: Final[Mapping[str, str]] = {
    **DRIVER,
    "spark.executor.memory": "1g",
    "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m",
}
"""Settings of a driver whose executors start quickly and use a whole worker."""

_HOST = "127.0.0.1"
_PACKAGE = "org.apache.spark.deploy"
_EXECUTOR = b"CoarseGrainedExecutorBackend"
_MASTER_STARTED = re.compile(r"Starting Spark master at (?P<url>spark://\S+)")
_WORKER_STARTED = re.compile(r"Successfully registered with master")
_START_SECONDS = 300
_OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"


@dataclass(frozen=True)
class Cluster:
    """A running cluster.

    Attributes:
        master: its address, `spark://host:port`.
        folder: of its logs and of the files of executors.
        workers: their process ids.
    """

    master: str
    folder: Path
    workers: Sequence[int]

    def executors(self) -> list[int]:
        """Returns the process ids of the running executors."""
        found = []
        for worker in self.workers:
            with contextlib.suppress(OSError):
                children = Path(f"/proc/{worker}/task").glob("*/children")
                pids = {int(pid) for each in children for pid in each.read_text().split()}
                found += [pid for pid in pids if _EXECUTOR in _command_line(pid)]
        return sorted(found)


@contextlib.contextmanager
def running(folder: Path, workers: int = 2, cores: int = 1, memory: str = "1g") -> Iterator[Cluster]:
    """A running cluster.

    Args:
        folder: for logs and working files; created here.
        workers: the number of workers, each with its own address.
        cores, memory: of each worker.

    Raises:
        RuntimeError: if a process ends, or prints nothing for minutes, before it is ready.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as started:
        master = started.enter_context(
            _process(folder / "master.log", "master.Master", ["--host", _HOST, "--port", "0", "--webui-port", "0"])
        )
        url = _wait_for(_MASTER_STARTED, master, folder / "master.log")["url"]
        pids = []
        for number in range(workers):
            log = folder / f"worker-{number}.log"
            work = folder / f"work-{number}"
            size = ["--cores", str(cores), "--memory", memory, "--work-dir", str(work), "--webui-port", "0"]
            worker = started.enter_context(
                _process(log, "worker.Worker", ["--host", f"127.0.0.{number + 1}", *size, url])
            )
            _wait_for(_WORKER_STARTED, worker, log)
            pids.append(worker.pid)
        yield Cluster(url, folder, tuple(pids))


@contextlib.contextmanager
def _process(log: Path, name: str, arguments: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    command = [str(Path(pyspark.__file__).with_name("bin") / "spark-class"), f"{_PACKAGE}.{name}", *arguments]
    environment = {
        **os.environ,
        "SPARK_DAEMON_JAVA_OPTS": _OPTIONS,
        "SPARK_DAEMON_MEMORY": "256m",
        # The cluster replaces killed executors without a limit.
        "SPARK_MASTER_OPTS": "-Dspark.deploy.maxExecutorRetries=-1",
        "SPARK_NO_DAEMONIZE": "1",
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.wait()


def _wait_for(pattern: re.Pattern[str], process: subprocess.Popen[bytes], log: Path) -> re.Match[str]:
    deadline = time.monotonic() + _START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        found = pattern.search(log.read_text(errors="replace"))
        if found:
            return found
        time.sleep(0.1)
    raise RuntimeError(f"a process of the cluster did not start:\n{log.read_text(errors='replace')}")


def _command_line(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""
