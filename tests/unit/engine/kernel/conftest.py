"""Fixtures of the kernel's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cloud.servers import ObjectServer
from tests.s3 import S3, running_s3


@pytest.fixture(scope="session")
def s3(cloud: ObjectServer | None) -> Iterator[S3 | ObjectServer]:
    """The server of `--cloud`, or the moto server by default."""
    if cloud is not None:
        yield cloud
        return
    with running_s3() as server:
        yield server
