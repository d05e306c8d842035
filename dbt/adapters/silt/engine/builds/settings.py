"""Reads the settings that determine values: those of a session, and those of a Spark that this machine starts."""

from __future__ import annotations

import hashlib
import itertools
import os
import shlex
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

_OF_SPARK: Final = ("spark.sql.", "spark.comet.")
_ZONE: Final = "spark.sql.session.timeZone"
_OF_THE_MACHINE: Final = (_ZONE, "spark.sql.ansi.enabled")
"""The settings whose defaults depend on the machine that runs Spark."""

_CHANGE_NO_VALUE: Final = (
    *("spark.sql.adaptive.", "spark.sql.artifact.", "spark.sql.autoBroadcastJoinThreshold", "spark.sql.broadcast"),
    *("spark.sql.catalogImplementation", "spark.sql.codegen.", "spark.sql.connect.", "spark.sql.debug."),
    *("spark.sql.execution.arrow.", "spark.sql.files.m", "spark.sql.files.openCostInBytes"),
    *("spark.sql.inMemoryColumnarStorage.", "spark.sql.maxPlanStringLength", "spark.sql.parquet.compression."),
    *("spark.sql.redaction.", "spark.sql.shuffle.", "spark.sql.sources.parallelPartitionDiscovery."),
    *("spark.sql.streaming.", "spark.sql.ui.", "spark.sql.warehouse.dir"),
)
"""Settings, or their prefixes, that determine how Spark computes values, but no value."""

_VARIABLES: Final = (
    *("SPARK_HOME", "SPARK_ANSI_SQL_MODE", "SPARK_SUBMIT_OPTS", "PYSPARK_SUBMIT_ARGS", "TZ"),
    *("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"),
)
"""The environment variables that determine settings of a Spark that this machine starts."""

_FILES: Final = ("spark-defaults.conf", "spark-env.sh", "core-site.xml", "hdfs-site.xml", "hive-site.xml")
_FOLDERS: Final = ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "HIVE_CONF_DIR")
_PROPERTIES: Final = "--properties-file"


def session_settings(conf: Any) -> dict[str, str | None]:
    """Returns the settings of a session that determine values.

    Args:
        conf: the session's `conf`.
    """
    given: Mapping[str, str] = conf.getAll
    own = {name: value for name, value in given.items() if name.startswith(_OF_SPARK)}
    kept = {name: value for name, value in own.items() if not name.startswith(_CHANGE_NO_VALUE)}
    return {**kept, **{name: conf.get(name, None) for name in _OF_THE_MACHINE}}


def machine_settings() -> dict[str, str]:
    """Returns the variables, and the hashes of the files, that configure a Spark that this machine starts."""
    variables = {name: os.environ[name] for name in _VARIABLES if name in os.environ}
    return {**variables, **{str(file): _hash(file.read_bytes()) for file in _files() if file.is_file()}}


def hashes(settings: Mapping[str, str | None]) -> dict[str, str]:
    """Returns a short hash of each value: a log that many can read does not show the values."""
    return {name: _hash(repr(value).encode()) for name, value in sorted(settings.items())}


def differences(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Returns the names of the settings whose values differ."""
    return sorted(name for name in {*before, *now} if before.get(name) != now.get(name))


def _files() -> Iterator[Path]:
    """Yields the files that may configure Spark, Hadoop and Hive, whether they exist or not."""
    folders = [os.environ.get("SPARK_CONF_DIR") or f"{_spark_home()}/conf", *map(os.environ.get, _FOLDERS)]
    yield from (Path(folder, name) for folder in folders if folder for name in _FILES)
    yield from map(Path, _properties_files(os.environ.get("PYSPARK_SUBMIT_ARGS", "")))


def _spark_home() -> str:
    """Returns the folder of the Spark that PySpark starts: by default, PySpark's own folder."""
    spec = find_spec("pyspark")
    return os.environ.get("SPARK_HOME") or next(iter((spec and spec.submodule_search_locations) or ()), "")


def _properties_files(arguments: str) -> Iterator[str]:
    try:
        words = shlex.split(arguments)
    except ValueError:
        return
    for word, following in itertools.pairwise([*words, ""]):
        if word == _PROPERTIES:
            yield following
        elif word.startswith(f"{_PROPERTIES}="):
            yield word.partition("=")[2]


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:8]
