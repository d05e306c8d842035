"""The accelerator of a profile: which Sparks, machines and settings can have it, where its jar is, and its checks."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError, SparkUnavailableError
from dbt.adapters.silt.engine.kernel.storage.urls import Service
from dbt.adapters.silt.session import accelerator as accelerators
from dbt.adapters.silt.session.accelerator import Accelerator, Machine, divided, jar_of, release_for

COMET = Accelerator("comet")
RELEASE = release_for("4.1.4")
LINUX = Machine("Linux", "x86_64", ("glibc", "2.36"), frozenset({"avx2", "bmi2", "fma"}))
SWITCH = "set `accelerator_required: false`"


@pytest.fixture
def accelerable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a Spark 4.1, as far as its version is looked at."""
    (tmp_path / "spark" / "jars").mkdir(parents=True)
    (tmp_path / "spark" / "jars" / "spark-core_2.13-4.1.4.jar").touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "spark"))
    return tmp_path / "spark"


def test_a_spark_without_a_jar_is_refused_with_the_versions_that_have_one() -> None:
    assert release_for("4.1.0") == RELEASE
    for version in ("4.0.1", "4.2.0", "4.3.0", ""):
        with pytest.raises(InvalidSettingError, match=r"its jars are for Spark 4\.1") as refused:
            release_for(version)
        assert "pip install 'pyspark[connect]==4.1.*'" in str(refused.value) and SWITCH in str(refused.value)


@pytest.mark.parametrize(
    ("machine", "problem"),
    [
        (replace(LINUX, system="Darwin", processor="arm64", libc=("", "")), "and this is Darwin on arm64"),
        (replace(LINUX, system="Windows", processor="AMD64", libc=("", "")), "and this is Windows on AMD64"),
        (replace(LINUX, processor="riscv64"), "and this is Linux on riscv64"),
        (replace(LINUX, libc=("glibc", "2.28")), "glibc 2.30 or later, and this system has glibc 2.28"),
        (replace(LINUX, libc=("", "")), "glibc 2.30 or later, and this system has another C library"),
        (replace(LINUX, features=frozenset({"sse4_2", "fma"})), "and this processor lacks avx2, bmi2"),
        (replace(LINUX, processor="aarch64", features=frozenset({"asimd"})), "and this processor lacks atomics"),
    ],
)
def test_a_machine_for_which_the_jar_has_no_library_has_a_reason(machine: Machine, problem: str) -> None:
    said = accelerators.why_not_on(machine)
    assert said is not None and said.endswith(problem)


def test_a_machine_whose_instructions_are_unknown_is_tried() -> None:
    assert accelerators.why_not_on(LINUX) is None
    assert accelerators.why_not_on(replace(LINUX, processor="aarch64", features=frozenset())) is None


def test_a_remote_server_a_cluster_and_an_object_store_have_a_reason() -> None:
    assert accelerators.why_not_here("local[*]", ()) is None
    assert "Spark Connect server" in str(accelerators.why_not_here(None, ()))
    assert "not on `spark://host:7077`" in str(accelerators.why_not_here("spark://host:7077", ()))
    assert "object store" in str(accelerators.why_not_here("local[2]", (Service.AZURE,)))


@pytest.mark.parametrize("master", [None, "yarn"])
def test_a_spark_that_is_elsewhere_is_refused_unless_the_profile_says_otherwise(master: str | None) -> None:
    with pytest.raises(InvalidSettingError, match=SWITCH):
        accelerators.settings(COMET, {}, master, ())
    assert accelerators.settings(replace(COMET, is_required=False), {}, master, ()) == {}


def test_the_memory_of_spark_is_divided() -> None:
    assert divided("4g", None) == {
        "spark.memory.offHeap.enabled": "true",
        "spark.driver.memory": "2048m",
        "spark.memory.offHeap.size": "2048m",
    }
    given = divided("1g", "6g")
    assert (given["spark.driver.memory"], given["spark.memory.offHeap.size"]) == ("1g", "6g")


@pytest.mark.parametrize("total", ["1g", "2047m", "1000000k"])
def test_too_little_memory_is_refused_with_the_least_amount(total: str) -> None:
    with pytest.raises(InvalidSettingError, match="too little for an accelerator") as refused:
        divided(total, None)
    assert "`spark.driver.memory` in `spark_conf` to at least 2048m" in str(refused.value)


def test_a_folder_without_the_jar_is_refused_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettingError, match="which `accelerator_jars` names, does not contain") as refused:
        jar_of(RELEASE, replace(COMET, jars=str(tmp_path)), {})
    assert RELEASE.file_name in str(refused.value) and RELEASE.coordinate in str(refused.value)


def test_a_damaged_jar_is_refused_before_spark_loads_it(accelerable: Path, tmp_path: Path) -> None:
    jar = tmp_path / RELEASE.file_name
    jar.write_bytes(b"half a jar")
    asked = replace(COMET, jars=str(tmp_path))
    with pytest.raises(SparkUnavailableError, match="is damaged or another file") as refused:
        accelerators.settings(asked, {"spark.driver.memory": "4g"}, "local[2]", ())
    assert str(jar) in str(refused.value) and RELEASE.sha256 in str(refused.value) and SWITCH in str(refused.value)
    assert accelerators.settings(replace(asked, is_required=False), {}, "local[2]", ()) == {}


def test_another_shuffle_manager_is_refused(accelerable: Path) -> None:
    with pytest.raises(InvalidSettingError, match=r"sets spark\.shuffle\.manager"):
        accelerators.settings(COMET, {"spark.shuffle.manager": "sort"}, "local[2]", ())


REPOSITORY = """
<ivysettings>
  <settings defaultResolver="here"/>
  <resolvers><filesystem name="here"><artifact pattern="{folder}/[artifact]-[revision].[ext]"/></filesystem></resolvers>
</ivysettings>
"""


@pytest.fixture
def ivy(tmp_path: Path) -> dict[str, str]:
    """Settings of Ivy with a folder as its only repository."""
    (tmp_path / "repository").mkdir()
    (tmp_path / "ivysettings.xml").write_text(REPOSITORY.format(folder=tmp_path / "repository"), encoding="utf-8")
    return {"spark.jars.ivy": str(tmp_path / "ivy"), "spark.jars.ivySettings": str(tmp_path / "ivysettings.xml")}


def test_without_a_download_the_error_names_the_jar_and_the_folder_for_it(ivy: dict[str, str]) -> None:
    with pytest.raises(SparkUnavailableError, match=r"cannot be downloaded \(.*unresolved dependency") as refused:
        jar_of(RELEASE, COMET, ivy)
    assert RELEASE.coordinate in str(refused.value) and "`accelerator_jars`" in str(refused.value)


def test_a_downloaded_jar_is_compared_with_its_digest(ivy: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "repository" / RELEASE.file_name).write_bytes(b"another jar")
    with pytest.raises(SparkUnavailableError, match="is damaged or another file") as refused:
        jar_of(RELEASE, COMET, ivy)
    assert f"Delete it, and the folder {tmp_path}/ivy/cache/org.apache.datafusion" in str(refused.value)


def test_a_running_spark_without_it_is_an_error_that_says_so(spark: SparkSession, accelerator: str | None) -> None:
    if accelerator:
        pytest.skip("the tests' Spark has it")
    with pytest.raises(InvalidSettingError, match="this process's Spark was started without it"):
        accelerators.check_running(spark.conf, {"spark.plugins": "org.apache.spark.CometPlugin"})


def test_the_state_is_what_the_running_spark_does(spark: SparkSession, accelerator: str | None, tmp_path: Path) -> None:
    if accelerator is None:
        assert accelerators.state(spark, tmp_path) == "none: Spark runs alone"
        return
    assert accelerators.state(spark, tmp_path) == f"comet {RELEASE.version} is active"
    shutil.rmtree(tmp_path / "probe")
    off = spark.newSession()
    off.conf.set("spark.comet.enabled", "false")
    assert accelerators.state(off, tmp_path) == f"comet {RELEASE.version} is loaded, but not active in this session"
