"""A Hive metastore in a Derby database in a folder, with the classes that Spark contains."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from pyspark.sql import SparkSession


def settings(folder: Path) -> dict[str, str]:
    """Returns Hadoop's settings of a metastore that is created in a folder."""
    return {
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder}/metastore;create=true",
        "datanucleus.schema.autoCreateAll": "true",
        "hive.hmshandler.retry.interval": "50ms",
        "hive.metastore.schema.verification": "false",
        "hive.metastore.warehouse.dir": f"{folder}/hive",
    }


@contextlib.contextmanager
def hadoop_settings(spark: SparkSession, settings_to_set: Mapping[str, str]) -> Iterator[None]:
    """Sets them in Spark while the block runs; Derby's log is not written to the working directory."""
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    system = spark.sparkContext._jvm.java.lang.System  # type: ignore[union-attr]
    system.setProperty("derby.stream.error.file", os.devnull)
    for name, value in settings_to_set.items():
        hadoop.set(name, value)
    try:
        yield
    finally:
        for name in settings_to_set:
            hadoop.unset(name)
