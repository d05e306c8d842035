"""Starts Spark's Java directly, by the command line that Spark's own scripts once built.

`spark-submit` is two shell scripts and an extra Java process, which computes the command line of the Java that is
started. For a given PySpark and Java, that line differs only in its arguments. So the process that creates the
class-data archive notes the line next to it, and a start from the archive needs no script (decision 0053). If a setting
exists that the scripts read, the scripts are run as before.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FunctionType, SimpleNamespace
from typing import IO, Any, Final

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.serializers import UTF8Deserializer, read_int

from dbt.adapters.silt.engine.commands.spark.shown_settings import may_be_secret
from dbt.adapters.silt.session.java import Java, spark_home


@dataclass(frozen=True)
class CommandLine:
    """The parts that Spark's scripts add to a command line that starts Spark.

    Attributes:
        class_path: the class path, with the jars in the order that the class-data archive depends on.
        options: Java's options, except the options passed to the scripts.
    """

    class_path: str
    options: tuple[str, ...]


def note(path: Path, context: SparkContext, given: Sequence[str]) -> None:
    """Writes down how the scripts started the Java of a running Spark.

    Args:
        path: the path of the class-data archive next to the note.
        given: the options that were passed to the scripts.
    """
    assert context._jvm is not None
    language = context._jvm.java.lang
    arguments = [str(each) for each in language.management.ManagementFactory.getRuntimeMXBean().getInputArguments()]
    options = tuple(each for each in arguments if each not in given and not each.startswith("-Xmx"))
    line = CommandLine(str(language.System.getProperty("java.class.path")), options)
    _note_of(path).write_text(json.dumps(asdict(line), indent=1), encoding="utf-8")


def noted(path: Path) -> CommandLine | None:
    """Returns the note next to an archive, or None if it is missing or cannot be read."""
    try:
        found = json.loads(_note_of(path).read_text(encoding="utf-8"))
        return CommandLine(found["class_path"], tuple(found["options"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def needs_scripts(conf: Mapping[str, str]) -> bool:
    """Returns whether a setting exists that Spark's scripts read: in the environment, in its folder, or in `conf`."""
    if any(_is_looked_at(name) for name in os.environ) or (spark_home() / "conf").exists():
        return True
    return "-Xmx" in conf.get("spark.driver.extraJavaOptions", "") or any(key.startswith(_OF_SCRIPTS) for key in conf)


def without_secrets(conf: Mapping[str, str]) -> dict[str, str]:
    """Returns the settings for Java's command line, which every user of the machine can read.

    The other settings reach Spark through the gateway when the context is created. The settings that start Java, or
    load jars and files before that, must be on the command line.
    """
    return {key: value for key, value in conf.items() if key.startswith(_OF_START) or not may_be_secret(key, value)}


def start(java: Java, line: CommandLine, conf: Mapping[str, str], log: IO[bytes] | None) -> Any | None:
    """Starts Java with Spark in it, and connects this process to it.

    Args:
        conf: the settings that Spark is started with, `without_secrets`.
        log: the file for Java's output and standard error; by default this process's own streams.

    Returns:
        The gateway, as pyspark creates it, or None if Java ended instead: the scripts can report why.
    """
    folder = tempfile.mkdtemp()
    try:
        answer = Path(folder, "connection")
        process = _spawn(_command(java, line, conf), answer, log)
        while not answer.exists():
            if process.poll() is not None:
                process.communicate()  # closes its streams
                return None
            time.sleep(_POLL_SECONDS)
        with answer.open("rb") as stream:
            port, secret = read_int(stream), UTF8Deserializer().loads(stream)  # type: ignore[no-untyped-call]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    gateway = _gateway(port, secret)
    gateway.proc = process
    return gateway


_POLL_SECONDS: Final = 0.01
_MAIN: Final = "org.apache.spark.deploy.SparkSubmit"
_OF_START: Final = (
    "spark.driver.",
    "spark.submit.",
    "spark.jars",
    "spark.files",
    "spark.archives",
    "spark.kerberos.",
)
_OF_SCRIPTS: Final = (
    "spark.driver.defaultJavaOptions",
    "spark.driver.extraClassPath",
    "spark.driver.extraLibraryPath",
    "spark.submit.",
)
_LOOKED_AT: Final = ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT")
_NOT_LOOKED_AT: Final = (
    "SPARK_LOCAL_DIRS",
    "SPARK_LOCAL_IP",
    "SPARK_LOCAL_HOSTNAME",
    "SPARK_USER",
    # pyspark itself leaves these in the environment.
    "SPARK_AUTH_SOCKET_TIMEOUT",
    "SPARK_BUFFER_SIZE",
)


def _note_of(path: Path) -> Path:
    return path.with_suffix(".json")


def _is_looked_at(variable: str) -> bool:
    return variable in _LOOKED_AT or (variable.startswith("SPARK_") and variable not in _NOT_LOOKED_AT)


def _command(java: Java, line: CommandLine, conf: Mapping[str, str]) -> list[str]:
    options = shlex.split(conf.get("spark.driver.extraJavaOptions", ""))
    settings = (part for key, value in conf.items() for part in ("--conf", f"{key}={value}"))
    memory = f"-Xmx{conf['spark.driver.memory']}"
    return [java.path, "-cp", line.class_path, memory, *options, *line.options, _MAIN, *settings, "pyspark-shell"]


def _spawn(command: Sequence[str], answer: Path, log: IO[bytes] | None) -> subprocess.Popen[bytes]:
    """Starts the process, which ends when its standard input does, and ignores the terminal's Ctrl-C."""
    home = str(spark_home())
    environment = {
        **os.environ,
        "SPARK_HOME": home,
        "SPARK_CONF_DIR": os.path.join(home, "conf"),
        "SPARK_ENV_LOADED": "1",
        "SPARK_CONNECT_MODE": "0",
        "PYTHONHASHSEED": "0",
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(answer),
    }
    deaf = ["/bin/sh", "-c", 'trap "" INT; exec "$@"', "java", *command]
    return subprocess.Popen(deaf, stdin=subprocess.PIPE, stdout=log, stderr=log, env=environment)


def _gateway(port: int, secret: str) -> Any:
    """Connects pyspark to a running Java.

    pyspark reads the secret from `os.environ`, which every template that dbt renders meanwhile could read, too. So
    pyspark's function gets a separate copy of the environment.
    """
    told = {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
    seen = SimpleNamespace(**{**vars(os), "environ": {**os.environ, **told}})
    launch = FunctionType(launch_gateway.__code__, {**launch_gateway.__globals__, "os": seen})
    launch.__defaults__ = launch_gateway.__defaults__
    return launch(SparkConf(loadDefaults=False))
