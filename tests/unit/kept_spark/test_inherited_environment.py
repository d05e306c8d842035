"""Commands share a Spark if each of them would start the same Spark."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from importlib import metadata
from pathlib import Path

import pytest

from dbt.adapters.silt.kept_spark import inherited_environment
from dbt.adapters.silt.kept_spark.inherited_environment import environment_of_server, name_of

SETTINGS = {"master": "local[2]", "spark_conf": {"spark.driver.memory": "2g"}}


def name(settings: object = None, environment: dict[str, str] | None = None) -> str:
    given = settings if isinstance(settings, dict) else SETTINGS
    return name_of(given, inherited_environment.read({"PATH": os.environ["PATH"], **(environment or {})}))


def test_the_same_settings_in_the_same_environment_have_the_same_name() -> None:
    again = {"spark_conf": {"spark.driver.memory": "2g"}, "master": "local[2]"}
    assert name() == name(again)
    assert name() == name(environment={"EDITOR": "vi", "DBT_TARGET": "dev", "SPARK_CONNECT_MODE_ENABLED": "1"})


@pytest.mark.parametrize(
    "settings",
    [
        {"master": "local[3]", "spark_conf": {"spark.driver.memory": "2g"}},
        {"master": "local[2]", "spark_conf": {"spark.driver.memory": "3g"}},
        {"master": "local[2]", "spark_conf": {}},
    ],
)
def test_other_settings_have_another_name(settings: dict[str, object]) -> None:
    assert name(settings) != name()


@pytest.mark.parametrize(
    "variable", ["TZ", "LANG", "LC_ALL", "SPARK_CONF_DIR", "AWS_SESSION_TOKEN", "PYTHONPATH", "HADOOP_CONF_DIR"]
)
def test_a_variable_that_spark_reads_changes_the_name(variable: str) -> None:
    assert name(environment={variable: "x"}) != name()


def test_another_folder_umask_package_or_pyspark_changes_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {name()}
    with monkeypatch.context() as patch:
        patch.chdir(tmp_path)
        names.add(name())
    with monkeypatch.context() as patch:
        patch.setattr(inherited_environment, "version", "99.0.0")
        names.add(name())
    with monkeypatch.context() as patch:
        patch.setattr(metadata, "version", lambda package: "99.0.0")
        names.add(name())
    before = os.umask(0o027)
    try:
        names.add(name())
    finally:
        os.umask(before)
    assert len(names) == 5


def test_the_name_reveals_no_value() -> None:
    found = name(environment={"AWS_SECRET_ACCESS_KEY": "hunter2"})
    assert len(found) == 16
    assert set(found) <= set("0123456789abcdef")


def test_a_server_gets_the_environment_without_dbts_secrets_and_connection_settings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DBT_ENV_SECRET_TOKEN", "x")
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    monkeypatch.setenv("SPARK_REMOTE", "sc://elsewhere")
    monkeypatch.setenv("SPARK_CONF_DIR", "/conf")
    given = environment_of_server()
    assert given["SPARK_CONF_DIR"] == "/conf"
    assert not {"DBT_ENV_SECRET_TOKEN", "SPARK_CONNECT_MODE_ENABLED", "SPARK_REMOTE"} & set(given)


_NAME = """
from dbt.adapters.silt.kept_spark.inherited_environment import name_of, read
print(name_of({}, read()))
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment, in which scripts may name Python in several ways."""
    folder = tmp_path_factory.mktemp("venv")
    venv.create(folder, symlinks=True)
    return folder


def name_in(python: Path, **variables: str) -> str:
    """Returns the name of the Spark of a command that is started by this Python, with this process's packages."""
    path = os.pathsep.join(each for each in sys.path if each)
    given = {"PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": path, "LANG": "C.UTF-8"}
    program = [str(python), "-c", _NAME]
    return subprocess.run(program, env={**given, **variables}, capture_output=True, text=True, check=True).stdout


def test_scripts_that_name_the_same_python_differently_have_the_same_name(environment: Path) -> None:
    link = environment / "bin" / "py"
    link.symlink_to("python3")
    moved = environment.parent / "linked"
    moved.symlink_to(environment)
    names = {name_in(environment / "bin" / each) for each in ("python", "python3", "py")}
    names.add(name_in(moved / "bin" / "python"))
    assert len(names) == 1


def test_a_variable_that_names_the_same_python_does_not_change_the_name(environment: Path) -> None:
    folder = environment / "bin"
    named = {name_in(folder / "python", PYSPARK_PYTHON=each) for each in ("python3", str(folder / "python"))}
    assert named == {name_in(folder / "python3")}
    assert name_in(folder / "python", PYSPARK_PYTHON=os.path.realpath(folder / "python")) not in named


def test_another_virtual_environment_has_another_name(environment: Path, tmp_path: Path) -> None:
    venv.create(tmp_path, symlinks=True)
    assert name_in(tmp_path / "bin" / "python") != name_in(environment / "bin" / "python")
