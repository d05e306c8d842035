"""A client's session on the Spark Connect server behind the endpoint, and the calls that pass to it as bytes.

The server knows a client's session by ids of its own: the user is the endpoint, so that the server closes its sessions
when it ends. A field that is appended to a message replaces its earlier value, so that messages pass with other ids
and without being parsed, with every field that this version of the protocol does not know.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any, Final

import grpc
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from pyspark.sql import SparkSession
from pyspark.sql.connect.proto import base_pb2 as pb

from dbt.adapters.silt.engine import spark_seams


@dataclass(frozen=True)
class Method:
    """A call of the protocol: the classes of its messages, and whether it takes or returns a stream of them."""

    path: str
    request: type[Message]
    response: type[Message]
    takes_stream: bool
    returns_stream: bool


def _methods() -> Mapping[str, Method]:
    service = pb.DESCRIPTOR.services_by_name["SparkConnectService"]
    return {
        each.name: Method(
            f"/{service.full_name}/{each.name}",
            GetMessageClass(each.input_type),
            GetMessageClass(each.output_type),
            each.client_streaming,
            each.server_streaming,
        )
        for each in service.methods
    }


METHODS: Final = _methods()
"""The calls of the protocol, by name."""

_LOST: Final = (
    "[SILT_SPARK_ENDED] the Spark behind the endpoint has ended, and the session with it. Open a new session; the "
    "history of the table tells whether a statement that was running has been applied"
)
_NO_LIMIT: Final = 10.0**9
"""The seconds that gRPC gives at least for a call without a time limit."""

DETAILS: Final = "grpc-status-details-bin"
"""The metadata of a failed call that describes the failure."""


class Failed(Exception):
    """A failure for a client: the code and text of its status, and the details of Spark's errors.

    Args:
        trailing: further metadata.
    """

    def __init__(self, code: grpc.StatusCode, text: str, trailing: Iterable[tuple[str, bytes]] = ()) -> None:
        super().__init__(text)
        self.code, self.text, self.trailing = code, text, tuple(trailing)


@dataclass(frozen=True)
class Backend:
    """A session on the server.

    Args:
        spark: the engine's session of the same ids, whose channel the calls use.
        client_session: the client's own id of its session.
    """

    spark: SparkSession
    client_session: str

    def pass_on(self, method: Method, request: bytes, context: grpc.ServicerContext) -> bytes:
        """Passes a call on, and returns the answer.

        Raises:
            Failed: if the server refuses it.
        """
        call = self._channel.unary_unary(method.path).future(self._of_server(request), **self._told(context))
        context.add_callback(call.cancel)
        try:
            return bytes(call.result()) + self._of_client(method)
        except grpc.RpcError as error:
            raise failed(error) from error

    def pass_stream(self, method: Method, requests: Iterable[bytes], context: grpc.ServicerContext) -> bytes:
        """Passes a stream of requests on, and returns the answer; raises as `pass_on`."""
        call = self._channel.stream_unary(method.path)
        try:
            answer = call((self._of_server(each) for each in requests), **self._told(context))
        except grpc.RpcError as error:
            raise failed(error) from error
        return bytes(answer) + self._of_client(method)

    def answers(self, method: Method, request: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        """Passes a call on, and yields the answers; raises as `pass_on`."""
        call = self._channel.unary_stream(method.path)(self._of_server(request), **self._told(context))
        context.add_callback(call.cancel)
        ids = self._of_client(method)
        try:
            for each in call:
                yield each + ids
        except grpc.RpcError as error:
            raise failed(error) from error

    @property
    def server_side_session(self) -> str:
        """The id that the server has given to the session."""
        return spark_seams.server_side_session(self.spark)

    @property
    def _channel(self) -> grpc.Channel:
        return spark_seams.connect_channel(self.spark)

    def _told(self, context: grpc.ServicerContext) -> dict[str, Any]:
        """Returns the metadata and the time limit of a call."""
        left = context.time_remaining()
        limit = None if left is None or left > _NO_LIMIT else left
        return {"metadata": spark_seams.connect_metadata(self.spark), "timeout": limit}

    def _of_server(self, request: bytes) -> bytes:
        user, session = spark_seams.connect_ids(self.spark)
        # The fields have the same numbers in all requests (tests/unit/endpoint/connect/test_backend.py).
        ids = pb.ConfigRequest(session_id=session, user_context=pb.UserContext(user_id=user))
        return request + encoded(ids)

    def _of_client(self, method: Method) -> bytes:
        return encoded(method.response(session_id=self.client_session))


def forget_oldest(known: MutableMapping[Any, Any], most: int) -> None:
    """Forgets the entries that were added first, if there are more than allowed."""
    while len(known) > most:
        del known[next(iter(known))]


def encoded(message: Any) -> bytes:
    """Returns a message as bytes."""
    return bytes(message.SerializeToString())


def failed(error: grpc.RpcError) -> Failed:
    """Returns the failure of a call of the server, to be passed on; a client would retry the call of a lost server."""
    if error.code() is grpc.StatusCode.UNAVAILABLE:
        return Failed(grpc.StatusCode.ABORTED, _LOST)
    details = [(key, value) for key, value in error.trailing_metadata() or () if key == DETAILS]
    return Failed(error.code(), error.details() or "", details)
