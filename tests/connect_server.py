"""A Spark Connect server of this machine: the server that pip's PySpark contains, in a separate process."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyspark
import yaml

_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
_STARTED = re.compile(r"Spark Connect server started at: \S*:(?P<port>\d+)")
_START_SECONDS = 240
_LOGGING = """\
rootLogger.level = error
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n
logger.server.name = org.apache.spark.sql.connect.service.SparkConnectServer
logger.server.level = info
"""


@contextmanager
def running(folder: Path, conf: Mapping[str, str], options: str = "") -> Iterator[str]:
    """A server that listens on a free port; yields its address, `sc://host:port`.

    Args:
        folder: of its log and working files; created here.
        conf: Spark's settings.
        options: further options of its Java.

    Raises:
        RuntimeError: if it ends, or prints nothing for minutes, before it listens.
    """
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "server.log"
    with log.open("wb") as output:
        server = subprocess.Popen(
            _command(folder, conf, options), cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    try:
        yield f"sc://127.0.0.1:{_port(server, log)}"
    finally:
        server.terminate()
        server.wait()


@contextmanager
def running_for_processes(folder: Path) -> Iterator[str]:
    """A server that many short processes share; yields its address.

    Args:
        folder: of its log and working files; created here.
    """
    conf = {
        "spark.driver.memory": "2g",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.ui.enabled": "false",
    }
    with running(folder, conf, "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC") as address:
        yield address


def use_in_profiles(profiles: Path, remote: str) -> None:
    """Writes the server's address into each target of a profiles.yml, and removes the settings that only a new Spark
    can have.
    """
    content = yaml.safe_load(profiles.read_text(encoding="utf-8"))
    for target in (target for profile in content.values() for target in profile["outputs"].values()):
        del target["master"]
        conf = {name: value for name, value in target["spark_conf"].items() if not name.startswith("spark.driver.")}
        target.update(remote=remote, spark_conf=conf)
    profiles.write_text(yaml.safe_dump(content), encoding="utf-8")


def _command(folder: Path, conf: Mapping[str, str], options: str) -> list[str]:
    logging = folder / "log4j2.properties"
    logging.write_text(_LOGGING)
    every = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={logging.as_uri()} {options}".strip(),
        "spark.sql.warehouse.dir": str(folder / "spark-warehouse"),
        **conf,
    }
    settings = [word for key, value in every.items() for word in ("--conf", f"{key}={value}")]
    submit = Path(pyspark.__file__).with_name("bin") / "spark-submit"
    return [str(submit), "--master", "local[2]", "--class", _SERVER, *settings, "spark-internal"]


def _port(server: subprocess.Popen[bytes], log: Path) -> int:
    """Returns the port that the server listens on, and waits for it."""
    deadline = time.monotonic() + _START_SECONDS
    while server.poll() is None and time.monotonic() < deadline:
        found = _STARTED.search(log.read_text(errors="replace"))
        if found:
            return int(found["port"])
        time.sleep(0.1)
    raise RuntimeError(f"the Spark Connect server did not start:\n{log.read_text(errors='replace')}")
