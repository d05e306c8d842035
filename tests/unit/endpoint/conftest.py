"""Warehouses whose sessions clients use, on the tests' Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from dbt.adapters.silt.credentials import SiltCredentials
from dbt.adapters.silt.endpoint.core.house import Client, House, Limits
from dbt.adapters.silt.endpoint.core.session import Session
from dbt.adapters.silt.endpoint.core.sessions import Sessions
from dbt.adapters.silt.session.environment import environment_of

ANN = Client("ann", "test")


@pytest.fixture
def house_of(spark: SparkSession, tmp_path: Path) -> Callable[..., House]:
    """Opens the warehouse of the test with the fields of a profile."""

    def opened(**fields: Any) -> House:
        credentials = SiltCredentials(warehouse=str(tmp_path / "warehouse"), **fields)
        return House(environment_of(credentials, tmp_path), (credentials.database, credentials.schema))

    return opened


@pytest.fixture
def sessions_of(house_of: Callable[..., House]) -> Iterator[Callable[..., Sessions]]:
    """Opens sessions with limits; they are closed after the test."""
    made: list[Sessions] = []

    def opened(limits: Limits | None = None, **fields: Any) -> Sessions:
        made.append(Sessions(house_of(**fields), limits or Limits()))
        return made[-1]

    yield opened
    for each in made:
        each.close_all()


@pytest.fixture
def sessions(sessions_of: Callable[..., Sessions]) -> Sessions:
    return sessions_of()


@pytest.fixture
def session(sessions: Sessions) -> Session:
    return sessions.open(ANN)
