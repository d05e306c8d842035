"""Reads the settings of a session."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import SparkSession


def given(spark: SparkSession, names: Iterable[str]) -> dict[str, str]:
    """The values of those settings that have been given one; the others have Spark's own defaults.

    Over Spark Connect in one request; where Spark is this process's, with a call for each.
    """
    if isinstance(spark, SparkSession):
        found = {name: spark.conf.get(name, None) for name in names}
    else:  # a Spark Connect session is a class of its own
        every = spark.conf.getAll
        found = {name: every.get(name) for name in names}
    return {name: value for name, value in found.items() if value is not None}
