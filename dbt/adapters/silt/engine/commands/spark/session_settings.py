"""Reads the settings of a Spark session, sets the settings that correctness depends on, and rejects other values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError
from dbt.adapters.silt.engine.sql.query.quotes import Quotes

_CONSECUTIVE = "spark.sql.legacy.consecutiveStringLiterals.enabled"
_DOUBLED = re.compile(r"''|\"\"")
_ESCAPED = re.compile(r"\\|''|\"\"|[rR]['\"]")

_IN_THIS_PROCESS = re.compile(r"local(\[.*\])?")
_WITHOUT_RETRIES = re.compile(r"local(\[[^,]*\])?")
"""`local[2, 4]` tries a task four times."""

_OF_CLOUDS = (
    # Spark sets them by itself if it has its module for clouds (spark-hadoop-cloud). They complete a file at its final
    # path, and only if its task and its job succeed.
    "org.apache.spark.internal.io.cloud.BindingParquetOutputCommitter",
    "org.apache.spark.internal.io.cloud.PathOutputCommitProtocol",
)
_LISTING_THRESHOLD = "spark.sql.sources.parallelPartitionDiscovery.threshold"
_LISTING_FILES = "100000"  # a local file system lists this many faster than Spark starts a job for it


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


def is_in_this_process(spark: Any) -> bool:
    """Returns whether driver and executors run on this machine; always False for a Spark Connect session."""
    return _has_master(spark, _IN_THIS_PROCESS)


def runs_tasks_once(spark: Any) -> bool:
    """Returns whether no task runs a second time, neither after a failure nor while a slow task still runs."""
    return _has_master(spark, _WITHOUT_RETRIES)


def _has_master(spark: Any, pattern: re.Pattern[str]) -> bool:
    return isinstance(spark, SparkSession) and bool(pattern.fullmatch(spark.conf.get("spark.master") or ""))


@dataclass(frozen=True)
class _Required:
    """A required value, Spark's own default, the reason, and further values that the user may choose."""

    value: str
    default: str
    why: str
    also: tuple[str, ...] = ()

    def allows(self, value: str) -> bool:
        return value.strip().lower() in (self.value.lower(), *(each.lower() for each in self.also))


_REQUIRED: Mapping[str, _Required] = {
    "spark.sql.parquet.outputTimestampType": _Required(
        "TIMESTAMP_MICROS", "INT96", "timestamps of any other kind have no statistics"
    ),
    "spark.sql.parquet.datetimeRebaseModeInWrite": _Required(
        "CORRECTED", "CORRECTED", "old dates would be written in another calendar"
    ),
    "spark.sql.parquet.writeLegacyFormat": _Required("false", "false", "decimals would have no statistics"),
    "spark.sql.parquet.fieldId.read.enabled": _Required(
        "true", "false", "columns of a table with column mapping by id would not be found"
    ),
    "spark.sql.parquet.fieldId.write.enabled": _Required(
        "true", "true", "columns of a table with column mapping would not be found by their ids"
    ),
    "spark.sql.variant.writeShredding.enabled": _Required(
        "false", "true", "readers of a table may not support shredded variants"
    ),
    "spark.sql.variant.allowReadingShredded": _Required("true", "true", "shredded variants could not be read"),
    "spark.sql.datetime.java8API.enabled": _Required(
        "true", "false", "Parquet's filters would compare old dates and timestamps by another calendar, and lose rows"
    ),
    "spark.sql.files.ignoreMissingFiles": _Required("false", "false", "rows of a missing file would be lost"),
    "spark.sql.files.ignoreCorruptFiles": _Required("false", "false", "rows of a damaged file would be lost"),
    "spark.sql.variable.substitute": _Required(
        "false", "true", "values of variables, such as secrets, would replace parts of names and values"
    ),
    "spark.sql.caseSensitive": _Required("false", "false", "names of a table's columns are case-insensitive"),
    "spark.sql.parquet.output.committer.class": _Required(
        "org.apache.parquet.hadoop.ParquetOutputCommitter",
        "org.apache.parquet.hadoop.ParquetOutputCommitter",
        "files of failed tasks could become visible",
        _OF_CLOUDS[:1],
    ),
    "spark.sql.sources.commitProtocolClass": _Required(
        "org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol",
        "org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol",
        "files of failed tasks could become visible",
        _OF_CLOUDS[1:],
    ),
}


def required() -> dict[str, str]:
    """Returns the settings for a session that is created next."""
    return {key: setting.value for key, setting in _REQUIRED.items()} | {_LISTING_THRESHOLD: _LISTING_FILES}


def configure(spark: SparkSession) -> None:
    """Sets the required settings in an existing session.

    Raises:
        InvalidSettingError: if the session's owner chose another value.
    """
    found_values = given(spark, required())
    for key, setting in _REQUIRED.items():
        found = found_values.get(key) or setting.default
        if not setting.allows(found) and found.lower() != setting.default.lower():
            raise _conflict(key, found, setting)
        if not setting.allows(found):
            spark.conf.set(key, setting.value)
    if found_values.get(_LISTING_THRESHOLD) != _LISTING_FILES:
        spark.conf.set(_LISTING_THRESHOLD, _LISTING_FILES)


def check_session(spark: SparkSession) -> None:
    """Checks that a configured session still has the settings; raises as `check` does."""
    check(given(spark, required()))


def check(settings: Mapping[str, str]) -> None:
    """Checks that no setting contradicts a required value.

    Raises:
        InvalidSettingError: if a setting does.
    """
    for key, value in settings.items():
        setting = _REQUIRED.get(key)
        if setting is not None and not setting.allows(str(value)):
            raise _conflict(key, str(value), setting)


def _conflict(key: str, value: str, setting: _Required) -> InvalidSettingError:
    return InvalidSettingError(
        f"`{key}` cannot be `{value}`: {setting.why}", remedy=f"Leave it out; it is set to {setting.value}"
    )
