"""Reads the settings of a Spark session: how it parses quotes, and in which process its tasks run."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError
from dbt.adapters.silt.engine.sql.query.quotes import Quotes

_CONSECUTIVE = "spark.sql.legacy.consecutiveStringLiterals.enabled"
_DOUBLED = re.compile(r"''|\"\"")
_ESCAPED = re.compile(r"\\|''|\"\"|[rR]['\"]")


def given(spark: SparkSession, names: Iterable[str]) -> dict[str, str]:
    """Returns the values of the settings that were set; the remaining settings have Spark's own defaults.

    Costs a single request over Spark Connect, or a call for each setting if Spark belongs to this process.
    """
    if isinstance(spark, SparkSession):
        found = {name: spark.conf.get(name, None) for name in names}
    else:  # a Spark Connect session is a class of its own
        every = spark.conf.getAll
        found = {name: every.get(name) for name in names}
    return {name: value for name, value in found.items() if value is not None}


def is_checked(spark: SparkSession, setting: str) -> bool:
    """Returns the value of a setting that switches off a check; checks are on by default.

    Raises:
        InvalidSettingError: if the value is neither true nor false.
    """
    text = (spark.conf.get(setting, "true") or "true").strip().lower()
    if text not in ("true", "false"):
        raise InvalidSettingError(f"`{setting}` cannot be `{text}`", remedy="Set it to true or false")
    return text == "true"


def quotes_for(spark: SparkSession, text: str) -> Quotes:
    """Returns how the session parses the quotes of SQL text; reads only the settings that matter for this text."""
    return Quotes(
        double_quoted_identifiers='"' in text and _has_names_in_double_quotes(spark),
        escaped_string_literals=_ESCAPED.search(text) is not None and _has_plain_backslashes(spark),
        consecutive_string_literals=_DOUBLED.search(text) is not None and _is_on(spark, _CONSECUTIVE),
    )


def _has_names_in_double_quotes(spark: SparkSession) -> bool:
    """Returns whether double quotes enclose names: only if the session is strict (ANSI), as in Spark."""
    return _is_on(spark, "spark.sql.ansi.doubleQuotedIdentifiers") and _is_on(spark, "spark.sql.ansi.enabled", "true")


def _has_plain_backslashes(spark: SparkSession) -> bool:
    return _is_on(spark, "spark.sql.parser.escapedStringLiterals")


def _is_on(spark: SparkSession, key: str, default: str = "false") -> bool:
    return (spark.conf.get(key, default) or default).strip().lower() == "true"


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
