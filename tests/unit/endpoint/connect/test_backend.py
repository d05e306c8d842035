"""Messages pass with other ids and without being parsed, for every call that PySpark knows."""

from __future__ import annotations

import threading
from typing import Any

import grpc
import pytest
from pyspark.sql.connect.proto import base_pb2 as pb

from dbt.adapters.silt.endpoint.connect.backend import METHODS, Method, encoded
from dbt.adapters.silt.endpoint.connect.service import serve
from dbt.adapters.silt.endpoint.connect.sessions import Door, Key
from dbt.adapters.silt.endpoint.core.sessions import Sessions
from dbt.adapters.silt.endpoint.core.tokens import Token


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_appended_ids_replace_the_ids_of_a_message_and_nothing_else(method: Method) -> None:
    request: Any = method.request
    more = {"client_type": "a test"} if "client_type" in request.DESCRIPTOR.fields_by_name else {}
    user = pb.UserContext(user_id="ann", user_name="Ann")
    unknown = b"\xf2\x0f\x03abc"  # a field of a later version of the protocol
    raw = encoded(request(session_id="a", user_context=user, **more)) + unknown
    ids = pb.ConfigRequest(session_id="b", user_context=pb.UserContext(user_id="endpoint"))
    changed = request.FromString(raw + encoded(ids))
    assert (changed.session_id, changed.user_context.user_id, changed.user_context.user_name) == (
        "b",
        "endpoint",
        "Ann",
    )
    assert unknown in encoded(changed)
    assert all(getattr(changed, name) == value for name, value in more.items())


def test_every_call_of_the_protocol_of_spark_is_known() -> None:
    assert METHODS.keys() >= {
        *("ExecutePlan", "AnalyzePlan", "Config", "AddArtifacts", "ArtifactStatus", "Interrupt", "ReattachExecute"),
        *("ReleaseExecute", "ReleaseSession", "FetchErrorDetails"),
    }


class SlowDoor(Door):
    """A door that refuses a call after the time of some pings: a client sends at most one each second."""

    def is_allowed(self, key: Key, context: grpc.ServicerContext) -> bool:
        return threading.Event().wait(6)


def test_a_connection_that_sends_pings_is_kept() -> None:
    no_house: Any = None
    door = SlowDoor(Sessions(no_house), Token("a-token-of-the-tests", "the test"), is_local=True)
    server = serve(door, "127.0.0.1", 0)
    pings = (("grpc.keepalive_time_ms", 20), ("grpc.http2.max_pings_without_data", 0))
    with grpc.insecure_channel(f"127.0.0.1:{server.port}", options=pings) as channel:
        with pytest.raises(grpc.RpcError) as raised:
            channel.unary_unary(METHODS["GetStatus"].path)(b"")
    server.stop()
    assert raised.value.code() is grpc.StatusCode.UNAUTHENTICATED  # and not UNAVAILABLE: too many pings
