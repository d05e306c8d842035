"""The server of the tests on object stores."""

from __future__ import annotations

import pytest

from tests.cloud.servers import ObjectServer


@pytest.fixture
def server(cloud: ObjectServer | None) -> ObjectServer:
    assert cloud is not None, "tests/cloud is collected with --cloud only"
    return cloud
