"""The location of a profile's warehouse, the answers about it without Spark, and the early start of Spark."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from dbt.adapters.silt.credentials import SiltCredentials
from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError
from dbt.adapters.silt.engine.warehouse import Result, Warehouse
from dbt.adapters.silt.runs.response import SiltResponse
from dbt.adapters.silt.session import early_spark
from dbt.adapters.silt.session.environment import Environment, environment_of
from dbt.adapters.silt.session.spark import SessionSettings


def test_a_process_has_one_environment_for_equal_profiles(tmp_path: Path) -> None:
    first = environment_of(SiltCredentials(run_id="R1"), tmp_path)
    assert environment_of(SiltCredentials(run_id="R2"), tmp_path) is first
    assert environment_of(SiltCredentials(schema="other"), tmp_path) is not first
    assert environment_of(SiltCredentials(), tmp_path / "elsewhere") is not first


def test_names_are_answered_without_spark_and_without_creating_files(tmp_path: Path) -> None:
    environment = environment_of(SiltCredentials(databases={"raw": str(tmp_path / "raw")}), tmp_path)
    assert environment.catalog.databases() == ["raw", "silt"]
    assert environment.catalog.schemas("silt") == []
    assert list(tmp_path.iterdir()) == []


def test_every_databases_folder_is_relative_to_the_project(tmp_path: Path) -> None:
    (tmp_path / "landing").mkdir()
    environment = environment_of(SiltCredentials(warehouse="own", databases={"raw": "landing/raw"}), tmp_path)
    for database, folder in (("silt", "own"), ("raw", "landing/raw")):
        environment.catalog.create_schema(database, "main")
        assert (tmp_path / folder / "main").is_dir()


@pytest.mark.parametrize(
    ("warehouse", "reason"),
    [
        ("a_file", "a_file is a file. Move it"),
        ("a_file/house", "a_file is a file. Move it"),
        ("a_link", "a_link is a broken link. Move it"),
    ],
)
def test_an_invalid_warehouse_folder_is_refused_before_spark_is_started(
    tmp_path: Path, warehouse: str, reason: str
) -> None:
    (tmp_path / "a_file").write_text("")
    (tmp_path / "a_link").symlink_to(tmp_path / "nothing")
    location = warehouse if "://" in warehouse else str(tmp_path / warehouse)
    profile = SiltCredentials(warehouse=location, remote="sc://127.0.0.1:1")
    environment = Environment(profile, {"silt": location})
    with pytest.raises(InvalidSettingError, match=reason):
        environment.open(NoRunner())  # type: ignore[arg-type]


def test_a_start_of_spark_that_failed_before_the_connection_is_not_waited_for_again(
    tmp_path: Path,
) -> None:
    (tmp_path / "a_file").write_text("")
    environment = Environment(SiltCredentials(warehouse="a_file"), {"silt": str(tmp_path / "a_file")})
    environment.warm_up()
    (tmp_path / "a_file").unlink()
    with pytest.raises(InvalidSettingError, match="a_file is a file"):
        environment.open(NoRunner())  # type: ignore[arg-type]


def test_a_connection_that_is_no_longer_wanted_does_not_wait_until_spark_has_started(tmp_path: Path) -> None:
    (tmp_path / "a_file").write_text("")
    environment = Environment(SiltCredentials(warehouse="a_file"), {"silt": str(tmp_path / "a_file")})
    checks: list[int] = []

    def check() -> None:
        checks.append(len(checks))
        if len(checks) > 2:
            raise InterruptedError

    with environment._lock:  # as a thread that starts Spark
        with pytest.raises(InterruptedError):
            environment.open(NoRunner(), check_wanted=check)  # type: ignore[arg-type]
    with pytest.raises(InvalidSettingError, match="a_file is a file"):
        environment.open(NoRunner())  # type: ignore[arg-type]


@pytest.mark.parametrize("keep_alive", [None, "15 minutes"])
def test_an_embedded_and_a_kept_spark_start_early(
    keep_alive: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[SessionSettings] = []
    imported = threading.Event()
    monkeypatch.setattr(early_spark, "start_spark", started.append)
    profile = SiltCredentials(keep_alive=keep_alive)
    assert early_spark.start(profile, tmp_path, meanwhile=imported.set) is None
    assert [each.keep_alive for each in started] == [profile.keep_alive_time]
    assert imported.wait(60)


def test_a_server_is_left_to_the_first_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[SessionSettings] = []
    monkeypatch.setattr(early_spark, "start_spark", started.append)
    assert early_spark.start(SiltCredentials(remote="sc://127.0.0.1:1"), tmp_path, meanwhile=list) is None
    assert started == []


def test_the_keeper_of_a_spark_starts_java_without_the_engine() -> None:
    code = "import sys, dbt.adapters.silt.session.keeper; print('dbt.adapters.silt.engine.warehouse' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout.strip() == "False"


class NoRunner:
    """Is never asked to run a statement."""

    def run(self, warehouse: Warehouse, text: str, *_: object, **__: object) -> tuple[Result, SiltResponse]:
        raise AssertionError(f"{text} was run in {warehouse}")

    def job_tags(self) -> tuple[str, ...]:
        return ()
