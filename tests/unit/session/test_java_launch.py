"""When Java is started without Spark's scripts, and that Spark is the same in this case."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.silt.session import java_launch
from dbt.adapters.silt.session.java_launch import CommandLine, Java
from tests.unit.session.processes import run

CONF = {"spark.master": "local[1]", "spark.driver.memory": "1g", "spark.driver.extraJavaOptions": "-Da='b c' -Dd=e"}


@pytest.fixture
def plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of pip's Spark, in an environment without variables of Spark."""
    for name in [*os.environ]:
        if name.startswith(("SPARK_", "PYSPARK_", "HADOOP_", "YARN_")):
            monkeypatch.delenv(name)
    monkeypatch.setattr(java_launch, "spark_home", lambda: tmp_path)
    return tmp_path


def test_a_default_spark_is_started_without_the_scripts(plain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", "/scratch")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    assert not java_launch.needs_scripts(CONF)


@pytest.mark.parametrize(
    "name",
    ["SPARK_HOME", "SPARK_CONF_DIR", "SPARK_SUBMIT_OPTS", "SPARK_DIST_CLASSPATH", "SPARK_NEW", "HADOOP_CONF_DIR"],
)
def test_with_variables_that_the_scripts_read_the_scripts_are_used(
    plain: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "x")
    assert java_launch.needs_scripts(CONF)


def test_with_a_folder_of_settings_the_scripts_are_used(plain: Path) -> None:
    (plain / "conf").mkdir()
    assert java_launch.needs_scripts(CONF)


@pytest.mark.parametrize(
    "added",
    [
        {"spark.driver.extraLibraryPath": "/lib"},
        {"spark.driver.defaultJavaOptions": "-Dx=y"},
        {"spark.submit.deployMode": "client"},
        {"spark.driver.extraJavaOptions": "-Xmx2g"},
    ],
)
def test_with_settings_that_the_scripts_read_the_scripts_are_used(plain: Path, added: dict[str, str]) -> None:
    assert java_launch.needs_scripts(CONF | added)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"class_path": "a"}', "null"])
def test_an_unreadable_note_is_ignored(tmp_path: Path, text: str) -> None:
    assert java_launch.noted(tmp_path / "spark.jsa") is None
    (tmp_path / "spark.json").write_text(text)
    assert java_launch.noted(tmp_path / "spark.jsa") is None


def test_a_note_is_read_back_as_written(tmp_path: Path) -> None:
    (tmp_path / "spark.json").write_text(json.dumps({"class_path": "a:b", "options": ["-Dx=y"]}))
    assert java_launch.noted(tmp_path / "spark.jsa") == CommandLine("a:b", ("-Dx=y",))


def test_the_command_contains_the_users_options_split_as_by_a_shell() -> None:
    command = java_launch._command(Java("/j", 17, "17.0.1"), CommandLine("a:b", ("-Dx=y",)), CONF)
    assert command[:7] == ["/j", "-cp", "a:b", "-Xmx1g", "-Da=b c", "-Dd=e", "-Dx=y"]
    assert command[7] == "org.apache.spark.deploy.SparkSubmit" and command[-1] == "pyspark-shell"
    assert "spark.master=local[1]" in command


def test_the_users_class_path_comes_before_sparks_as_the_scripts_put_it() -> None:
    conf = CONF | {"spark.driver.extraClassPath": "/jars/*"}
    assert java_launch._command(Java("/j", 17, "17.0.1"), CommandLine("a:b", ()), conf)[1:3] == ["-cp", "/jars/*:a:b"]


def test_a_java_process_that_ends_at_once_is_an_error(plain: Path) -> None:
    command = plain / "java"
    command.write_text("#!/bin/sh\nexit 1\n")
    command.chmod(0o755)
    assert java_launch.start(Java(str(command), 17, "17"), CommandLine("a", ()), CONF, None) is None


def test_the_archives_name_changes_with_sparks_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "env"))
    monkeypatch.setattr(java_launch, "spark_home", lambda: tmp_path)
    (tmp_path / "jars").mkdir()
    names = {java_launch.archive_path(Java("/j", 17, "17.0.1"))}
    (tmp_path / "jars" / "a.jar").write_text("a")
    names.add(java_launch.archive_path(Java("/j", 17, "17.0.1")))
    os.utime(tmp_path / "jars" / "a.jar", (1, 1))
    names.add(java_launch.archive_path(Java("/j", 17, "17.0.1")))
    assert len(names) == 3


BOTH_WAYS = """
import json, os, sys
from pathlib import Path
from pyspark.sql import SparkSession
from dbt.adapters.silt.session import java_launch, spark as module
from dbt.adapters.silt.session.spark import SessionSettings, note_launch, open_session, stop_spark

def started(settings):
    session = open_session(settings)
    of_java = session._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments()
    values = {key: value for key, value in session.sparkContext.getConf().getAll() if key not in OWN}
    session.range(3).write.parquet(str(folder / f"rows_{len(found)}"))
    java = module._running.java.pid
    python = [each for each in Path("/proc").glob("[0-9]*/cmdline") if b"pyspark.daemon" in text_of(each, java)]
    return {"options": sorted(each for each in map(str, of_java) if "=/tmp/silt-spark-" not in each),
            "values": values, "scripts": scripts[:], "workers": len(python)}

def text_of(path, parent):
    try:
        of = int(path.with_name("stat").read_text().rpartition(")")[2].split()[1])
        return path.read_bytes() if of == parent else b""
    except OSError:
        return b""

OWN = ("spark.app.id", "spark.app.startTime", "spark.app.submitTime", "spark.driver.port", "spark.sql.warehouse.dir",
       "spark.local.dir", "spark.driver.extraJavaOptions", "spark.repl.local.jars", "spark.submit.pyFiles")
folder, found, scripts = Path(sys.argv[1]), [], []
real = module.spark_seams.launch_java
module.spark_seams.launch_java = lambda *a, **k: (scripts.append(1), real(*a, **k))[1]
archive = folder / "spark.jsa"
module._archive = lambda java: None
settings = SessionSettings(master="local[1]", spark_conf={"spark.driver.memory": "1g"})
found.append(started(settings))
note_launch(archive, [])
stop_spark()
noted = java_launch.noted
java_launch.noted = lambda path: noted(archive)
module._archive = lambda java: archive
module.driver_options = lambda folder, path, real=module.driver_options: real(folder, None)
found.append(started(settings))
stop_spark()
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def both_ways(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The observed state of a Spark that the scripts started, and of a Spark that was started directly."""
    folder = tmp_path_factory.mktemp("both_ways")
    done = run(BOTH_WAYS, folder, str(folder))
    assert (done.stderr, done.returncode) == ("", 0)
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def test_spark_is_the_same_without_the_scripts(both_ways: list[dict[str, Any]]) -> None:
    by_scripts, at_once = both_ways
    assert (by_scripts["scripts"], at_once["scripts"]) == ([1], [1])
    assert by_scripts["options"] == at_once["options"]
    assert by_scripts["values"] == at_once["values"]


def test_no_python_is_started_to_search_for_data_sources(both_ways: list[dict[str, Any]]) -> None:
    assert [each["workers"] for each in both_ways] == [0, 0]
