"""Reads the settings of a Spark session, and how it reads text between quotes."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.sql.query.quotes import Quotes

_CONSECUTIVE = "spark.sql.legacy.consecutiveStringLiterals.enabled"
_DOUBLED = re.compile(r"''|\"\"")
_ESCAPED = re.compile(r"\\|''|\"\"|[rR]['\"]")


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


def quotes_for(spark: SparkSession, text: str) -> Quotes:
    """How the session reads the quotes of the text; it is asked for those settings only that matter to it."""
    return Quotes(
        double_quoted_identifiers='"' in text and _has_names_in_double_quotes(spark),
        escaped_string_literals=_ESCAPED.search(text) is not None and _has_plain_backslashes(spark),
        consecutive_string_literals=_DOUBLED.search(text) is not None and _is_on(spark, _CONSECUTIVE),
    )


def _has_names_in_double_quotes(spark: SparkSession) -> bool:
    """Only where the session is strict (ANSI), as in Spark."""
    return _is_on(spark, "spark.sql.ansi.doubleQuotedIdentifiers") and _is_on(spark, "spark.sql.ansi.enabled", "true")


def _has_plain_backslashes(spark: SparkSession) -> bool:
    return _is_on(spark, "spark.sql.parser.escapedStringLiterals")


def _is_on(spark: SparkSession, key: str, default: str = "false") -> bool:
    return (spark.conf.get(key, default) or default).strip().lower() == "true"
