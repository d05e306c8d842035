"""dbt's adapter suite: each of its classes runs in its own project, schema and warehouse, on one Spark."""

from __future__ import annotations

import gc
import logging
import os
import warnings
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from dbt.adapters.factory import reset_adapters

from tests.cloud.servers import ObjectServer
from tests.conftest import SPARK_SETTINGS
from tests.functional import by_silt_dbt, quick_dbt


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.import_plugin("dbt.tests.fixtures.project")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Ignores warnings of dbt's and its dependencies' deprecations, which this project cannot fix."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore"))
        patched = item.get_closest_marker("own_process")
        if patched is not None and config.getoption("--silt-dbt"):
            item.add_marker(pytest.mark.skip(f"in the test's own process alone: {patched.args[0]}"))


@pytest.fixture(scope="class", autouse=True)
def no_adapter_of_another_test() -> None:
    """Resets the adapter: a test that calls dbt without dbt's fixtures leaves its adapter, which the next project
    would use.
    """
    reset_adapters()


@pytest.fixture(scope="class", autouse=True)
def log_files_are_closed() -> Iterator[None]:
    """Closes dbt's log file, which dbt leaves open until the next command; that may belong to a test that allows no
    warnings.
    """
    yield
    for handler in logging.getLogger("file_log").handlers:
        handler.close()


@pytest.fixture(scope="session")
def by_silt_dbt_is_asked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[bool]:
    """Whether the tests' commands are run as `silt dbt`, by a separate command server."""
    if not request.config.getoption("--silt-dbt"):
        yield False
        return
    os.environ["XDG_RUNTIME_DIR"] = str(tmp_path_factory.mktemp("command-server"))
    yield True
    by_silt_dbt.stop()


@pytest.fixture(scope="class", autouse=True)
def quick(request: pytest.FixtureRequest, by_silt_dbt_is_asked: bool) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        quick_dbt.install(patch)
        if request.node.get_closest_marker("manifest") is None:
            quick_dbt.leave_out_the_manifest(patch)
        if by_silt_dbt_is_asked:
            by_silt_dbt.install(patch)
        yield


@pytest.fixture(scope="class")
def dbt_profile_target(silt_target: dict[str, Any]) -> dict[str, Any]:
    return silt_target


@pytest.fixture(scope="class")
def project_root(keep_alive: timedelta | None, tmpdir_factory: Any) -> Any:
    """Replaces dbt's fixture: a folder for each class; with a kept Spark one folder, which is emptied instead."""
    if keep_alive is None:
        return tmpdir_factory.mktemp("project")
    folder = tmpdir_factory.getbasetemp().join("project").ensure(dir=True)
    for each in folder.listdir():
        each.remove()
    return folder


@pytest.fixture(scope="class")
def place(cloud: ObjectServer | None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The location of the project's warehouse: a folder, or with `--cloud` a separate prefix."""
    folder = tmp_path_factory.mktemp("warehouse")
    if cloud is None:
        return {"warehouse": str(folder)}
    return {"warehouse": f"{cloud.base}/{folder.name} é%", "storage": cloud.profile}


@pytest.fixture(scope="class")
def silt_target(
    connect_server: str | None,
    keep_alive: timedelta | None,
    code_generation: dict[str, str],
    place: dict[str, Any],
    master: str,
    cluster_conf: dict[str, str],
    accelerator: str | None,
) -> dict[str, Any]:
    return {
        "type": "silt",
        "threads": 4,
        **place,
        **({"remote": connect_server} if connect_server else {"master": master}),
        **({"accelerator": accelerator} if accelerator else {}),
        **({"keep_alive": f"{keep_alive.total_seconds():.0f} seconds"} if keep_alive else {}),
        "spark_conf": {
            **code_generation,
            **({"spark.driver.memory": SPARK_SETTINGS["spark.driver.memory"]} if accelerator else {}),
            "spark.buffer.pageSize": SPARK_SETTINGS["spark.buffer.pageSize"],
            "spark.driver.extraJavaOptions": SPARK_SETTINGS["spark.driver.extraJavaOptions"],
            "spark.sql.shuffle.partitions": "4",
            "spark.sql.session.timeZone": "UTC",
            **cluster_conf,
        },
    }


@pytest.fixture
def unclosed_pool() -> Iterator[None]:
    """Collects the pool of threads that dbt leaves open after an error of `dbt show`, without its warning."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
