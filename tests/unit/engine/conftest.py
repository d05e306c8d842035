"""A separate warehouse for each test."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.warehouse import WarehouseSettings
from tests.cloud.servers import ObjectServer
from tests.unit.engine.house import House, opened
from tests.unit.engine.place import Place


@pytest.fixture
def place(warehouse: Path, cloud: ObjectServer | None) -> Place:
    """An empty location."""
    return Place(warehouse, cloud)


@pytest.fixture
def house(spark: SparkSession, place: Place) -> House:
    return opened(spark, place)


@pytest.fixture
def patient_house(spark: SparkSession, place: Place) -> House:
    """A warehouse whose statements are repeated as often as necessary."""
    return opened(spark, place, WarehouseSettings(statement_attempts=50))
