"""Tables for the tests of commands."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.unit.engine.commands.spark_tables import Tables


@pytest.fixture
def tables(request: pytest.FixtureRequest, spark: SparkSession, warehouse: Path) -> Tables:
    """Tables whose properties the test may give (`BOTH_KINDS`)."""
    return Tables(spark, warehouse, getattr(request, "param", {}))
