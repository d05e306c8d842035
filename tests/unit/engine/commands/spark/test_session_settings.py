"""Settings are read from the session, the required settings are set, and another value is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.commands.spark import session_settings
from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError
from dbt.adapters.silt.engine.warehouse import Warehouse

CODEC, TIMESTAMPS = "spark.sql.parquet.compression.codec", "spark.sql.parquet.outputTimestampType"


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    with_own_settings = spark.newSession()
    session_settings.configure(with_own_settings)
    yield with_own_settings


@pytest.mark.connect
def test_settings_with_a_value_are_read_and_unset_settings_are_omitted(session: SparkSession) -> None:
    session.conf.set(CODEC, "zstd")
    session.conf.unset("spark.sql.ansi.doubleQuotedIdentifiers")
    names = (CODEC, TIMESTAMPS, "spark.sql.ansi.doubleQuotedIdentifiers", "spark.silt.no.such.setting")
    assert session_settings.given(session, names) == {CODEC: "zstd", TIMESTAMPS: "TIMESTAMP_MICROS"}


@pytest.mark.connect(gate=True)
def test_a_configured_session_has_every_required_setting(session: SparkSession) -> None:
    required = session_settings.required()
    assert {name: session.conf.get(name, value) for name, value in required.items()} == required
    assert session_settings.given(session, required).items() <= required.items()


def test_another_value_of_a_required_setting_is_refused_before_files_are_written(
    session: SparkSession, tmp_path: Path
) -> None:
    warehouse = Warehouse(session, str(tmp_path))
    session.conf.set(TIMESTAMPS, "TIMESTAMP_MILLIS")
    with pytest.raises(InvalidSettingError, match="timestamps of any other kind have no statistics"):
        session_settings.configure(session)
    with pytest.raises(InvalidSettingError, match="`TIMESTAMP_MILLIS`"):
        warehouse.sql("create table t as select 1 as id")
    assert not [path for path in tmp_path.glob("main/t/**/*") if path.is_file()]


CLOUDS = {
    "spark.sql.parquet.output.committer.class": "org.apache.spark.internal.io.cloud.BindingParquetOutputCommitter",
    "spark.sql.sources.commitProtocolClass": "org.apache.spark.internal.io.cloud.PathOutputCommitProtocol",
}


def test_the_committers_of_sparks_cloud_module_are_accepted() -> None:
    session_settings.check(CLOUDS)


@pytest.mark.parametrize("name", CLOUDS)
def test_any_other_committer_is_refused(name: str) -> None:
    with pytest.raises(InvalidSettingError, match="files of failed tasks could become visible"):
        session_settings.check({name: "org.example.DirectCommitter"})
