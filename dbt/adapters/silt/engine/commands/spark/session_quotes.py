"""Reads from a Spark session how it reads what stands between quotes."""

from __future__ import annotations

import re

from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.sql.query.quotes import SPARKS_DEFAULT, Quotes

_MATTERS = re.compile(r"[\"\\\\]|''|[rR]'")


def quotes_for(spark: SparkSession, text: str) -> Quotes:
    """How the session reads the quotes of the text; it is asked only where that matters."""
    return quotes_of(spark) if _MATTERS.search(text) else SPARKS_DEFAULT


def quotes_of(spark: SparkSession) -> Quotes:
    """How the session reads quotes. Names are in double quotes only where the session is strict (ANSI), as in Spark."""
    return Quotes(
        double_quoted_identifiers=_is_on(spark, "spark.sql.ansi.doubleQuotedIdentifiers", "false")
        and _is_on(spark, "spark.sql.ansi.enabled", "true"),
        escaped_string_literals=_is_on(spark, "spark.sql.parser.escapedStringLiterals", "false"),
        consecutive_string_literals=_is_on(spark, "spark.sql.legacy.consecutiveStringLiterals.enabled", "false"),
    )


def _is_on(spark: SparkSession, key: str, default: str) -> bool:
    return (spark.conf.get(key, default) or default).strip().lower() == "true"
