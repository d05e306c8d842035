"""The documentation's pages share the Spark of their process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from dbt_common.tests import enable_test_caching
from pyspark.sql import SparkSession

from tests.documentation.runner import session_of_page


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Ignores warnings of dbt's and its dependencies' deprecations, which this project cannot fix."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore"))


@pytest.fixture(scope="session", autouse=True)
def macros_that_are_parsed_once() -> None:
    """Makes dbt cache the parsed macros by their text, as dbt's own tests do."""
    enable_test_caching()


@pytest.fixture
def page_session(spark: SparkSession) -> Iterator[SparkSession]:
    """A separate session for a page."""
    with session_of_page(spark) as session:
        yield session
