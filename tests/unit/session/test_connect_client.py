"""How often a request to an unresponsive Spark Connect server is repeated."""

from __future__ import annotations

import socket

import grpc
import pytest

from dbt.adapters.silt.engine.kernel.errors import SparkUnavailableError
from dbt.adapters.silt.session import connect_client


class Unanswered(grpc.RpcError):  # type: ignore[misc]  # grpc has no types
    """The exception of gRPC for a server that does not answer."""

    def __init__(self, code: grpc.StatusCode) -> None:
        super().__init__()
        self._code = code

    def code(self) -> grpc.StatusCode:
        return self._code

    def trailing_metadata(self) -> tuple[()]:
        return ()

    def details(self) -> str:
        return ""


UNAVAILABLE = Unanswered(grpc.StatusCode.UNAVAILABLE)


def test_requests_to_a_listening_server_are_repeated_and_to_a_stopped_server_only_briefly() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        remote = f"sc://127.0.0.1:{server.getsockname()[1]}/;token=s3cret"
        policy, patient = (connect_client._WhileReachable(remote, seconds) for seconds in (0.0, 60.0))
        assert policy.can_retry(UNAVAILABLE)
        assert not policy.can_retry(Unanswered(grpc.StatusCode.UNAUTHENTICATED))
    assert patient.can_retry(UNAVAILABLE)
    with pytest.raises(SparkUnavailableError, match=r"was lost during a statement.*`dbt retry`") as raised:
        policy.can_retry(UNAVAILABLE)
    assert "s3cret" not in str(raised.value)
