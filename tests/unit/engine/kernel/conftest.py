"""Fixtures of the kernel's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.s3 import S3, running_s3


@pytest.fixture(scope="session")
def s3() -> Iterator[S3]:
    with running_s3() as server:
        yield server
