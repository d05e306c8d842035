"""A separate warehouse for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.warehouse import WarehouseSettings
from tests.cloud.servers import ObjectServer
from tests.unit.engine.house import House, close_endpoints, opened
from tests.unit.engine.place import Place

_OBJECT = "the test uses what a session has made by the warehouse as a Python object, which has another session"
_REWRITTEN = "the test rewrites a commit that the endpoint has read"
NOT_AT_ENDPOINT = {
    "test_a_schema_is_dropped_with_its_names_at_the_end": _OBJECT,
    "test_a_query_with_a_collation_makes_a_collated_column": _OBJECT,
    "test_an_unknown_collation_is_refused_by_name": _REWRITTEN,
    "test_a_table_with_a_collated_partition_column_is_refused_by_name": _REWRITTEN,
    "test_tables_can_be_joined_with_tables_of_spark": "the test makes a temporary view in another session",
}
"""Parts of the names of tests that cannot pass with `--endpoint` -> the reason."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skips the tests that cannot pass with `--endpoint`."""
    for item in items if config.getoption("--endpoint") else ():
        for name, reason in NOT_AT_ENDPOINT.items():
            if name in item.name:
                item.add_marker(pytest.mark.skip(reason))


@pytest.fixture
def place(
    request: pytest.FixtureRequest, warehouse: Path, cloud: ObjectServer | None, connect_server: str | None
) -> Iterator[Place]:
    """An empty location; with `--endpoint`, its endpoint ends with the test."""
    if not request.config.getoption("--endpoint"):
        yield Place(warehouse, cloud)
        return
    yield Place(warehouse, cloud, connect_server)
    close_endpoints()


@pytest.fixture
def house(spark: SparkSession, place: Place) -> House:
    return opened(spark, place)


@pytest.fixture
def patient_house(spark: SparkSession, place: Place) -> House:
    """A warehouse whose statements are repeated as often as necessary."""
    return opened(spark, place, WarehouseSettings(statement_attempts=50))
