"""A warehouse of its own for each test."""

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
    """A place where nothing is yet."""
    return Place(warehouse, cloud)


@pytest.fixture
def house(spark: SparkSession, place: Place) -> House:
    return opened(spark, place)


@pytest.fixture
def patient_house(spark: SparkSession, place: Place) -> House:
    """One whose statements are run again as often as it takes."""
    return opened(spark, place, WarehouseSettings(statement_attempts=50))
