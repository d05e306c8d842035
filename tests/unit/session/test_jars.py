"""The jars that Spark needs for object stores: which are missing, where they come from, and the errors without them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError
from dbt.adapters.silt.engine.kernel.storage.urls import Service
from dbt.adapters.silt.session import jars
from dbt.adapters.silt.session.jars import SparkStorage

S3 = SparkStorage(services=(Service.S3,))


@pytest.fixture
def spark_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Spark with Hadoop 3.5.0, as pip installs it."""
    for name in ("SPARK_DIST_CLASSPATH", "SPARK_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "hadoop-client-api-3.5.0.jar").touch()
    return tmp_path


def test_missing_jars_are_requested_from_ivy_without_the_large_bundle(spark_home: Path, tmp_path: Path) -> None:
    given = {"spark.jars.ivy": str(tmp_path / "ivy"), "spark.jars.packages": "com.example:own:1"}
    found = jars.settings(S3, given, spark_home)
    packages = found["spark.jars.packages"].split(",")
    assert packages[:2] == ["com.example:own:1", "org.apache.hadoop:hadoop-aws:3.5.0"]
    assert "software.amazon.awssdk:s3:2.35.4" in packages
    assert "software.amazon.awssdk:bundle" in found["spark.jars.excludes"]


def test_jars_that_ivy_has_downloaded_are_passed_to_spark_without_a_request(spark_home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "ivy" / "jars"
    folder.mkdir(parents=True)
    for each in jars.all_coordinates(Service.S3, "3.5.0"):
        group, artifact, version = each.split(":")
        (folder / f"{group}_{artifact}-{version}.jar").touch()
    given = {"spark.jars.ivy": str(tmp_path / "ivy"), "spark.jars": "/own.jar"}
    found = jars.settings(S3, given, spark_home)
    assert set(found) == {"spark.jars"}
    assert found["spark.jars"].split(",")[0] == "/own.jar"
    assert set(found["spark.jars"].split(",")[1:]) == {str(file) for file in folder.iterdir()}
    next(folder.iterdir()).unlink()
    assert "spark.jars.packages" in jars.settings(S3, given, spark_home)


def test_a_folder_in_the_profile_is_used_unchanged_and_must_contain_jars(spark_home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    storage = SparkStorage(services=(Service.S3,), jars=str(folder))
    with pytest.raises(InvalidSettingError, match="which `storage_jars` names, contains no jars"):
        jars.settings(storage, {}, spark_home)
    (folder / "b.jar").touch()
    (folder / "a.jar").touch()
    assert jars.settings(storage, {}, spark_home) == {"spark.jars": f"{folder}/a.jar,{folder}/b.jar"}


@pytest.mark.parametrize(
    "given",
    [
        {"spark.jars.packages": "org.apache.hadoop:hadoop-aws:3.5.0"},
        {"spark.jars": "/x/hadoop-aws-3.5.0.jar"},
        {"spark.driver.extraClassPath": "/x/hadoop-aws.jar"},
    ],
)
def test_a_connector_that_the_user_provides_is_not_added_again(spark_home: Path, given: dict[str, str]) -> None:
    assert jars.settings(S3, given, spark_home) == {}


def test_a_spark_with_the_connector_needs_no_jars(spark_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (spark_home / "jars" / "hadoop-aws-3.5.0.jar").touch()
    assert jars.settings(S3, {}, spark_home) == {}
    azure = SparkStorage(services=(Service.AZURE,))
    assert (
        "hadoop-azure:3.5.0" in jars.settings(azure, {"spark.jars.ivy": "/nowhere"}, spark_home)["spark.jars.packages"]
    )
    monkeypatch.setenv("SPARK_DIST_CLASSPATH", "/usr/lib/hadoop/*")
    assert jars.settings(azure, {}, spark_home) == {}


def test_an_unknown_release_of_hadoop_resolves_its_own_dependencies(tmp_path: Path) -> None:
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "hadoop-client-api-3.9.1.jar").touch()
    found = jars.settings(S3, {"spark.jars.ivy": "/nowhere"}, tmp_path)
    assert (found["spark.jars.packages"], found["spark.jars.excludes"]) == ("org.apache.hadoop:hadoop-aws:3.9.1", "")


def test_without_a_download_the_error_lists_the_exact_jars(spark_home: Path) -> None:
    said = str(jars.not_brought(S3, spark_home, "the download failed"))
    assert all(each in said for each in jars.all_coordinates(Service.S3, "3.5.0"))
    assert said.endswith("set `storage_jars` in the profile to a folder with them.")


def test_google_storage_uses_a_hadoop_release_that_has_its_connector(tmp_path: Path) -> None:
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "hadoop-client-api-3.4.2.jar").touch()
    with pytest.raises(
        InvalidSettingError, match=r"Hadoop 3\.4\.2, which this Spark uses, has no connector for Google"
    ):
        jars.settings(SparkStorage(services=(Service.GOOGLE,)), {}, tmp_path)


def test_storage_settings_survive_the_transfer_to_a_keeper_and_their_text_contains_no_secret() -> None:
    made = SparkStorage({"fs.s3a.secret.key": "planted"}, (Service.S3, Service.AZURE), "/jars")
    assert SparkStorage.from_dict(made.to_dict()) == made
    assert "planted" not in repr(made)
