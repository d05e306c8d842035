"""The data source, registered in the tests' session."""

from __future__ import annotations

import pytest

from dbt.adapters.silt import engine as silt
from tests.unit.engine.datasource.tables import Tables
from tests.unit.engine.house import House


@pytest.fixture
def tables(house: House) -> Tables:
    silt.DataSource.register(house.warehouse.spark)
    return Tables(house)
