"""An endpoint with a client, shared by the tests of a module."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import kept_sparks
from tests.unit.endpoint.connect import programs
from tests.unit.endpoint.connect.programs import Program


@pytest.fixture(scope="package")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of the Sparks that the endpoints keep; they end with the tests."""
    folder = tmp_path_factory.mktemp("endpoint-sparks")
    yield folder
    kept_sparks.stop_all(folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the endpoint's project."""
    return tmp_path_factory.mktemp("endpoint")


@pytest.fixture(scope="module")
def endpoint(folder: Path, cache: Path) -> Iterator[Program]:
    with programs.endpoint(folder, cache) as started:
        yield started  # type: ignore[misc]


@pytest.fixture(scope="module")
def client(endpoint: Program, cache: Path) -> Iterator[Program]:
    with programs.client(endpoint, cache) as started:
        yield started  # type: ignore[misc]
