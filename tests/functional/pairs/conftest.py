"""A program that uses the warehouse of a project without dbt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.warehouse import Warehouse, WarehouseSettings
from tests.cloud.servers import ObjectServer


@pytest.fixture(scope="class")
def program(
    spark: SparkSession, place: dict[str, Any], cloud: ObjectServer | None, project: Any, landing: Path
) -> Warehouse:
    """The warehouse in a session of its own, which may read the files of the project's source."""
    settings = WarehouseSettings(file_locations={f"{landing}/*.csv"})
    storage: dict[str, Any] = {} if cloud is None else {"storage": cloud.settings}
    return Warehouse(spark.newSession(), place["warehouse"], settings=settings, **storage)
