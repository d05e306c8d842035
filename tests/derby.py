"""A Hive metastore in a Derby database of its own: what Spark brings along."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from pyspark.sql import SparkSession


def settings(folder: Path) -> dict[str, str]:
    """Hadoop's settings of a metastore that is made in a folder."""
    return {
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder}/metastore;create=true",
        "datanucleus.schema.autoCreateAll": "true",
        "hive.hmshandler.retry.interval": "50ms",
        "hive.metastore.schema.verification": "false",
        "hive.metastore.warehouse.dir": f"{folder}/hive",
    }


@contextlib.contextmanager
def hadoop_settings(spark: SparkSession, given: Mapping[str, str]) -> Iterator[None]:
    """Spark has them while the block runs; Derby's log is none of the working directory's."""
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    system = spark.sparkContext._jvm.java.lang.System  # type: ignore[union-attr]
    system.setProperty("derby.stream.error.file", os.devnull)
    for name, value in given.items():
        hadoop.set(name, value)
    try:
        yield
    finally:
        for name in given:
            hadoop.unset(name)
