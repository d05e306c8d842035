"""A warehouse of its own for each test."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.warehouse import WarehouseSettings
from tests.cloud.servers import ObjectServer
from tests.unit.engine.house import House, opened


@pytest.fixture
def house(spark: SparkSession, warehouse: Path, cloud: ObjectServer | None) -> House:
    return opened(spark, warehouse, None, cloud)


@pytest.fixture
def patient_house(spark: SparkSession, warehouse: Path, cloud: ObjectServer | None) -> House:
    """One whose statements are run again as often as it takes."""
    return opened(spark, warehouse, WarehouseSettings(statement_attempts=50), cloud)
