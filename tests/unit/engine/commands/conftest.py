"""Tables for the tests of commands."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.unit.engine.commands.spark_tables import Tables
from tests.unit.engine.place import Place


@pytest.fixture
def tables(request: pytest.FixtureRequest, spark: SparkSession, place: Place) -> Tables:
    """Tables whose properties a test may set (`BOTH_KINDS`)."""
    return Tables(spark, place, getattr(request, "param", {}))
