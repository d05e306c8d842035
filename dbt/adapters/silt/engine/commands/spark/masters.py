"""Tells from Spark's master where its tasks run, and whether one may run twice."""

from __future__ import annotations

import re
from typing import Any

from pyspark.sql import SparkSession

_IN_THIS_PROCESS = re.compile(r"local(\[.*\])?")
_WITHOUT_RETRIES = re.compile(r"local(\[[^,]*\])?")
"""`local[2, 4]` tries a task four times."""


def is_in_this_process(spark: Any) -> bool:
    """Whether driver and executors run where this process does; a Spark Connect session never says so."""
    return _has_master(spark, _IN_THIS_PROCESS)


def runs_tasks_once(spark: Any) -> bool:
    """Whether no task is run a second time, neither after a failure nor while a slow one still runs."""
    return _has_master(spark, _WITHOUT_RETRIES)


def _has_master(spark: Any, pattern: re.Pattern[str]) -> bool:
    return isinstance(spark, SparkSession) and bool(pattern.fullmatch(spark.conf.get("spark.master") or ""))
