"""Sets the settings of a Spark session that correctness depends on, for all tables, and rejects other values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.commands.spark import session_settings
from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError


@dataclass(frozen=True)
class _Required:
    """A required value, Spark's own default, the reason, and further values that the user may choose."""

    value: str
    default: str
    why: str
    also: tuple[str, ...] = ()

    def allows(self, value: str) -> bool:
        return value.strip().lower() in (self.value.lower(), *(each.lower() for each in self.also))


_OF_CLOUDS = (
    # Spark sets them by itself if it has its module for clouds (spark-hadoop-cloud). They complete a file at its final
    # path, and only if its task and its job succeed.
    "org.apache.spark.internal.io.cloud.BindingParquetOutputCommitter",
    "org.apache.spark.internal.io.cloud.PathOutputCommitProtocol",
)
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

_LISTING_THRESHOLD = "spark.sql.sources.parallelPartitionDiscovery.threshold"
_LISTING_FILES = "100000"  # a local file system lists this many faster than Spark starts a job for it


def required() -> dict[str, str]:
    """Returns the settings for a session that is created next."""
    return {key: setting.value for key, setting in _REQUIRED.items()} | {_LISTING_THRESHOLD: _LISTING_FILES}


def configure(spark: SparkSession) -> None:
    """Sets the required settings in an existing session.

    Raises:
        InvalidSettingError: if the session's owner chose another value.
    """
    given = session_settings.given(spark, required())
    for key, setting in _REQUIRED.items():
        found = given.get(key) or setting.default
        if not setting.allows(found) and found.lower() != setting.default.lower():
            raise _conflict(key, found, setting)
        if not setting.allows(found):
            spark.conf.set(key, setting.value)
    if given.get(_LISTING_THRESHOLD) != _LISTING_FILES:
        spark.conf.set(_LISTING_THRESHOLD, _LISTING_FILES)


def check_session(spark: SparkSession) -> None:
    """Checks that a configured session still has the settings; raises as `check` does."""
    check(session_settings.given(spark, required()))


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
