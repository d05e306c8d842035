"""dbt's own adapter suite: each class of it works in a project, a schema and a warehouse of its own, on one Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dbt.adapters.factory import reset_adapters

from tests.conftest import SPARK_SETTINGS
from tests.functional import quick_dbt


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.import_plugin("dbt.tests.fixtures.project")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Ignores warnings: those of dbt's and its dependencies' deprecations are not this project's to mend."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore"))


@pytest.fixture(scope="class", autouse=True)
def no_adapter_of_another_test() -> None:
    """A test that calls dbt without dbt's fixtures leaves its adapter, which the next project would be given."""
    reset_adapters()


@pytest.fixture(scope="class", autouse=True)
def quick(request: pytest.FixtureRequest) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        quick_dbt.install(patch)
        if request.node.get_closest_marker("manifest") is None:
            quick_dbt.leave_out_the_manifest(patch)
        yield


@pytest.fixture(scope="class")
def dbt_profile_target(silt_target: dict[str, Any]) -> dict[str, Any]:
    return silt_target


@pytest.fixture(scope="class")
def silt_target(
    connect_server: str | None, code_generation: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    return {
        "type": "silt",
        "threads": 4,
        "warehouse": str(tmp_path_factory.mktemp("warehouse")),
        **({"remote": connect_server} if connect_server else {"master": "local[2]"}),
        "spark_conf": {
            **code_generation,
            "spark.buffer.pageSize": SPARK_SETTINGS["spark.buffer.pageSize"],
            "spark.driver.extraJavaOptions": SPARK_SETTINGS["spark.driver.extraJavaOptions"],
            "spark.sql.shuffle.partitions": "4",
            "spark.sql.session.timeZone": "UTC",
        },
    }
