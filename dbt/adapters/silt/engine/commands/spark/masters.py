"""Derives from Spark's master in which process its tasks run, and whether a task may run twice."""

from __future__ import annotations

import re
from typing import Any

from pyspark.sql import SparkSession

_IN_THIS_PROCESS = re.compile(r"local(\[.*\])?")
_WITHOUT_RETRIES = re.compile(r"local(\[[^,]*\])?")
"""`local[2, 4]` tries a task four times."""


def is_in_this_process(spark: Any) -> bool:
    """Returns whether driver and executors run on this machine; always False for a Spark Connect session."""
    return _has_master(spark, _IN_THIS_PROCESS)


def runs_tasks_once(spark: Any) -> bool:
    """Returns whether no task runs a second time, neither after a failure nor while a slow task still runs."""
    return _has_master(spark, _WITHOUT_RETRIES)


def _has_master(spark: Any, pattern: re.Pattern[str]) -> bool:
    return isinstance(spark, SparkSession) and bool(pattern.fullmatch(spark.conf.get("spark.master") or ""))
