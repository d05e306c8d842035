"""Gives a Spark of this process the settings by which Hadoop reaches object stores.

They are set in Hadoop's own configuration after the start, so that they appear neither in a command line, which all
users of a machine can read, nor on a page of Spark's UI. Settings that appear there all the same are redacted by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark import SparkContext

from dbt.adapters.silt.engine.commands.spark import hadoop_storage
from dbt.adapters.silt.engine.kernel.storage.urls import Service
from dbt.adapters.silt.session.storage.jars import CLASSES, SparkStorage

_REDACTION = "spark.redaction.regex"


def redaction(given: Mapping[str, str]) -> dict[str, str]:
    """Returns the setting that keeps secrets out of Spark's UI and its event log, combined with the user's own."""
    own = given.get(_REDACTION)
    return {_REDACTION: f"(?:{own})|{hadoop_storage.REDACTED}" if own else hadoop_storage.REDACTED}


def apply(context: SparkContext, storage: SparkStorage) -> None:
    """Sets the entries that differ, and closes connections that were opened with other settings."""
    configuration = context._jsc.hadoopConfiguration()
    changed = {name: value for name, value in storage.hadoop.items() if configuration.get(name) != value}
    if storage.hadoop:
        hadoop_storage.trust(context.applicationId)
    if not changed:
        return
    was_there = any(configuration.get(name) is not None for name in changed)
    for name, value in changed.items():
        configuration.set(name, value)
    if was_there:
        _forget_connections(context)


def lacking(context: SparkContext, storage: SparkStorage) -> list[Service]:
    """Returns the services whose connectors this Spark lacks."""
    jvm: Any = context._jvm
    loadable = jvm.org.apache.spark.util.Utils.classIsLoadable
    return [each for each in storage.services if not any(loadable(name) for name in CLASSES[each])]


def _forget_connections(context: SparkContext) -> None:
    """Closes Hadoop's file systems, which otherwise keep the settings that they were opened with."""
    jvm: Any = context._jvm
    jvm.org.apache.hadoop.fs.FileSystem.closeAll()
