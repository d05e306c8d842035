from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.unit.commands.spark_tables import Tables


@pytest.fixture
def tables(spark: SparkSession, warehouse: Path) -> Tables:
    return Tables(spark, warehouse)
