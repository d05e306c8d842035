"""A warehouse of its own for each test."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.warehouse import Warehouse, WarehouseSettings
from tests.unit.engine.house import House


@pytest.fixture
def house(spark: SparkSession, warehouse: Path) -> House:
    return House(Warehouse(spark.newSession(), str(warehouse)), warehouse)


@pytest.fixture
def patient_house(spark: SparkSession, warehouse: Path) -> House:
    """One whose statements are run again as often as it takes."""
    settings = WarehouseSettings(statement_attempts=50)
    return House(Warehouse(spark.newSession(), str(warehouse), settings=settings), warehouse)
