"""A warehouse that this process and Spark do not share is an error; only a Spark in another process is asked."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.commands.spark.shared_storage import SharedStorage
from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.warehouse import Warehouse
from tests.memory_store import MemoryStore

OWN_FOLDER = "/proc/self/cwd/own"
"""Relative to the working directory of the process that reads it."""


@pytest.fixture
def connected(connect_server: str | None, spark: SparkSession) -> SparkSession:
    if connect_server is None:
        pytest.skip("of a server in another process: run with --connect")
    return spark


@pytest.mark.connect(gate=True)
@pytest.mark.skipif(not os.path.exists("/proc/self/cwd"), reason="there are no paths that differ by process")
def test_a_folder_that_the_server_sees_differently_is_refused(
    connected: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        with pytest.raises(InvalidSettingError, match="does not see the warehouse /proc/self/cwd/own of this machine"):
            Warehouse(connected.newSession(), OWN_FOLDER)
        connected.range(1).write.mode("overwrite").parquet(
            f"{OWN_FOLDER}/main/t"
        )  # now the server has a folder of that name
    assert [path.name for path in (tmp_path / "own").iterdir() if not path.name.startswith(".")] == ["main"]


@pytest.mark.connect
def test_a_further_database_is_checked_too(
    connected: SparkSession, warehouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidSettingError, match="does not see the warehouse /proc/self/cwd/own"):
        Warehouse(connected.newSession(), str(warehouse), databases={"other": OWN_FOLDER})


@pytest.mark.connect(gate=True)
def test_a_spark_is_asked_once_and_no_file_is_left_behind(connected: SparkSession, tmp_path: Path) -> None:
    storage = SharedStorage((LocalStore(tmp_path / "a [house]"),))
    storage.check(connected.newSession())
    assert list((tmp_path / "a [house]").iterdir()) == []
    (tmp_path / "a [house]").rmdir()
    storage.check(connected.newSession())
    assert not (tmp_path / "a [house]").exists()


def test_only_a_spark_in_another_process_is_asked(
    spark: SparkSession, connect_server: str | None, pytestconfig: pytest.Config
) -> None:
    storage = SharedStorage((MemoryStore(),))
    if connect_server is None and not pytestconfig.getoption("--cluster"):
        storage.check(spark)
    else:
        with pytest.raises(InvalidSettingError):
            storage.check(spark)
