"""The settings of which a change builds a node again."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbt.adapters.silt.engine.builds import settings

VARIABLES = (
    *("SPARK_SUBMIT_OPTS", "JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "PYSPARK_SUBMIT_ARGS", "TZ"),
    *("SPARK_HOME", "SPARK_ANSI_SQL_MODE"),
)


class Conf:
    """A session's settings."""

    def __init__(self, **given: str) -> None:
        self.getAll = {f"spark.sql.{name}": value for name, value in given.items()}

    def get(self, name: str, default: str | None) -> str | None:
        return self.getAll.get(name, default)


@pytest.mark.parametrize("name", VARIABLES)
def test_each_variable_that_configures_spark_counts(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(name, raising=False)
    before = settings.machine_settings()
    monkeypatch.setenv(name, "-Dspark.sql.ansi.enabled=false")
    assert settings.machine_settings() != before


@pytest.mark.parametrize("variable", ["SPARK_CONF_DIR", "HADOOP_CONF_DIR", "HIVE_CONF_DIR"])
@pytest.mark.parametrize("name", ["spark-defaults.conf", "spark-env.sh", "hive-site.xml", "core-site.xml"])
def test_each_file_that_configures_spark_counts(
    tmp_path: Path, variable: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, str(tmp_path))
    before = settings.machine_settings()
    (tmp_path / name).write_text("spark.sql.ansi.enabled false")
    one = settings.machine_settings()
    (tmp_path / name).write_text("spark.sql.ansi.enabled true")
    assert len({str(each) for each in (before, one, settings.machine_settings())}) == 3


def test_the_settings_of_the_spark_that_pyspark_starts_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)
    monkeypatch.delenv("SPARK_HOME", raising=False)
    (tmp_path / "pyspark" / "conf").mkdir(parents=True)
    monkeypatch.setattr(settings, "find_spec", lambda _: PySpark([str(tmp_path / "pyspark")]))
    before = settings.machine_settings()
    (tmp_path / "pyspark" / "conf" / "spark-defaults.conf").write_text("spark.sql.ansi.enabled false")
    assert settings.machine_settings() != before
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert len(settings.machine_settings()) == len(before) + 1, "the variable alone: another Spark is started"


class PySpark:
    def __init__(self, folders: list[str]) -> None:
        self.submodule_search_locations = folders


@pytest.mark.parametrize("arguments", ["--properties-file {} pyspark-shell", "--properties-file={} pyspark-shell"])
def test_a_file_of_properties_counts(tmp_path: Path, arguments: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.conf"
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", arguments.format(file))
    before = settings.machine_settings()
    file.write_text("spark.sql.ansi.enabled false")
    assert settings.machine_settings() != before


def test_settings_of_sessions_count_unless_they_change_no_value() -> None:
    before = settings.session_settings(Conf())
    for name in (
        "legacy.sizeOfNull",
        "decimalOperations.allowPrecisionLoss",
        "session.timeZone",
        "files.ignoreMissingFiles",
    ):
        assert settings.session_settings(Conf(**{name: "true"})) != before, name
    for name in (
        "shuffle.partitions",
        "warehouse.dir",
        "adaptive.enabled",
        "files.maxPartitionBytes",
        "ui.retainedExecutions",
    ):
        assert settings.session_settings(Conf(**{name: "1"})) == before, name


def test_a_difference_is_named_and_no_value_is_recorded() -> None:
    before = settings.hashes({"a": "secret", "b": None, "c": "1"})
    assert "secret" not in str(before)
    assert settings.differences(before, settings.hashes({"a": "secret", "b": "2", "d": "1"})) == ["b", "c", "d"]
