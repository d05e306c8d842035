"""Checks that Spark sees the folders that this process commits to.

A Spark Connect server, or a cluster's executors, may run on another machine, or in a container with mounts of its own.
Data files would then be written to another storage than the commits.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.commands.spark import session_settings
from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError, NotWrittenError
from dbt.adapters.silt.engine.kernel.storage.store import Store
from dbt.adapters.silt.engine.kernel.table.paths import absolute_name, encode_path

_PATTERN_CHARACTERS = re.compile(r"([\[\]{}*?\\])")
_SCHEME_AND_HOST = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/]*")


def spark_path(root: str, log_path: str) -> str:
    """Returns the path for `spark.read.parquet` of a path in the log.

    Args:
        root: the table's folder, an absolute local path or a URI.
    """
    return _PATTERN_CHARACTERS.sub(r"\\\1", absolute_name(root, log_path))


def reported_path(name: str) -> str:
    """Returns `_metadata.file_path` of an unescaped absolute name, without a local file's `file:` and empty host."""
    scheme = _SCHEME_AND_HOST.match(name)
    head = scheme[0] if scheme else ""
    return head + encode_path(name[len(head) :])


_of_this_machine: set[str] = set()


def trust(application: str) -> None:
    """Records that a Spark application is known to see the same files as this process, and needs no check."""
    _of_this_machine.add(application)


@dataclass(frozen=True)
class SharedStorage:
    """Pairs of a folder and a Spark application that certainly sees it.

    Attributes:
        stores: the stores of the folders.
    """

    stores: Sequence[Store]
    _seen_by: set[str] = field(default_factory=set)

    def check(self, spark: SparkSession) -> None:
        """Checks that Spark sees each folder by letting it read a temporary file there, once per application.

        A folder that this process can only read is not checked, because it gets no commits.

        Raises:
            InvalidSettingError: if Spark does not see a folder.
            StorageError: if a folder cannot be created or cleaned up.
        """
        if session_settings.is_in_this_process(spark):
            return
        application = spark.conf.get("spark.app.id") or ""
        if application in self._seen_by or application in _of_this_machine:
            return
        for store in self.stores:
            _check_folder(spark, store)
        self._seen_by.add(application)


def _check_folder(spark: SparkSession, store: Store) -> None:
    content = uuid.uuid4().hex
    name = f"silt-probe-{content}.txt"
    store.make_folder("")
    try:
        store.put_if_absent(name, content.encode())
    except NotWrittenError:
        return
    try:
        seen = _read(spark, store, name)
    finally:
        store.delete(name)
    if seen != [content]:
        raise InvalidSettingError(
            f"the Spark of this session does not see the warehouse {store.root} of this machine",
            remedy="Put the warehouse where both reach it under the same name: into an object store, or a folder "
            "that all machines share",
            details={"folder": store.root},
        )


def _read(spark: SparkSession, store: Store, name: str) -> list[str]:
    """Returns the file's lines as Spark reads them, or an empty list if Spark cannot read the file."""
    try:
        return [row[0] for row in spark.read.text(spark_path(store.root, encode_path(name))).collect()]
    except (PySparkException, Py4JError):
        return []
