"""Bytes that are no call, calls with foreign handles, and clients that vanish do not disturb the others."""

from __future__ import annotations

import logging
import random
import socket
import struct
import time

import pytest
from pyhive import exc, hive
from TCLIService import TCLIService, ttypes
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TApplicationException, TMessageType
from thrift.transport.TTransport import TMemoryBuffer

from dbt.adapters.silt.endpoint.thrift.server import ThriftServer
from tests.unit.endpoint.thrift.conftest import TOKEN, connect, rows

PLAIN = struct.pack(">BI", 1, 5) + b"PLAIN"
LOGIN = PLAIN + struct.pack(">BI", 2, len(TOKEN) + 5) + f"\0ann\0{TOKEN}".encode()


def sent(server: ThriftServer, data: bytes) -> bytes:
    """Sends bytes, and returns what the server answers until it closes the connection."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as client:
        client.sendall(data)
        client.shutdown(socket.SHUT_WR)
        answer = b""
        while part := client.recv(65536):
            answer += part
        return answer


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0",
        b"\x16\x03\x01\x00\xa5\x01",
        b"\x01\xff\xff\xff\xff" + b"x" * 100,
        struct.pack(">BI", 1, 6) + b"GSSAPI",
        PLAIN + struct.pack(">BI", 2, 3) + b"a\0b",
        PLAIN + struct.pack(">BI", 9, 0),
        LOGIN + b"\xff\xff\xff\xff",
        LOGIN + struct.pack(">I", 12) + b"\x80\x01\x00\x01\xff\xff\xff\xffxxxx",
        LOGIN + struct.pack(">I", 4) + b"\x00\x00",
        b"\x80\x01\x00\x01\x7f\xff\xff\xff",
        b"\x80\x01\x00\x01\x00\x00\x00\x0bOpenSession\x00\x00\x00\x01\x0f\x00\x01\x0c\x7f\xff\xff\xff",
        b"GET / HTTP/1.1\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n",
        b"POST / HTTP/1.1\r\nAuthorization: Basic ////\r\nContent-Length: 3\r\n\r\nabc",
    ],
)
def test_bytes_that_are_no_call_end_only_their_connection(server: ThriftServer, data: bytes) -> None:
    assert len(sent(server, data)) < 1000
    with connect(server) as connection:
        assert rows(connection, "select 1") == [(1,)]


def test_random_bytes_after_the_handshake_end_only_their_connection(server: ThriftServer) -> None:
    chance = random.Random(7)
    for _ in range(200):
        body = chance.randbytes(chance.randrange(60))
        head = b"\x80\x01\x00\x01\x00\x00\x00\x0bOpenSession\x00\x00\x00\x01" if chance.random() < 0.5 else b""
        sent(server, LOGIN + struct.pack(">I", len(head + body)) + head + body)
    assert len(server.door.sessions) == 0
    with connect(server) as connection:
        assert rows(connection, "select 1") == [(1,)]


def test_unknown_handles_are_refused(server: ThriftServer) -> None:
    with connect(server) as connection:
        identifier = ttypes.THandleIdentifier(b"\0" * 16, b"\0" * 16)
        session, operation = ttypes.TSessionHandle(identifier), ttypes.TOperationHandle(identifier, 0, True)
        client = connection.client
        answers = [
            client.ExecuteStatement(ttypes.TExecuteStatementReq(session, "select 1")),
            client.GetTables(ttypes.TGetTablesReq(session)),
            client.FetchResults(ttypes.TFetchResultsReq(operation, 0, 10)),
            client.GetOperationStatus(ttypes.TGetOperationStatusReq(operation)),
            client.CloseOperation(ttypes.TCloseOperationReq(operation)),
        ]
        assert {each.status.statusCode for each in answers} == {ttypes.TStatusCode.ERROR_STATUS}


def test_a_client_that_closes_its_session_cannot_use_it_again(server: ThriftServer) -> None:
    with connect(server) as connection:
        other = connect(server)
        handle = other.sessionHandle
        other.close()
        answer = connection.client.ExecuteStatement(ttypes.TExecuteStatementReq(handle, "select 1"))
        assert "the session does not exist" in answer.status.errorMessage


def test_an_unknown_call_is_answered_and_logged_once(server: ThriftServer, caplog: pytest.LogCaptureFixture) -> None:
    with connect(server) as connection, caplog.at_level(logging.WARNING, "dbt.adapters.silt.endpoint"):
        protocol = TBinaryProtocol(connection._transport)
        for _ in range(2):
            protocol.writeMessageBegin("SetClientInfo", TMessageType.CALL, 1)
            TCLIService.GetLog_args().write(protocol)
            protocol.writeMessageEnd()
            protocol.trans.flush()
            _, kind, _ = protocol.readMessageBegin()
            assert kind == TMessageType.EXCEPTION
            answer = TApplicationException()
            answer.read(protocol)
            protocol.readMessageEnd()
            assert answer.type == TApplicationException.UNKNOWN_METHOD
        assert rows(connection, "select 1") == [(1,)]
    assert caplog.messages == ['{"door": "thrift", "event": "unknown_call", "name": "SetClientInfo"}']


def test_a_client_that_vanishes_in_the_middle_of_a_statement_commits_nothing(server: ThriftServer) -> None:
    with connect(server) as other:
        rows(other, "create table t (id bigint)")
        connection = connect(server)
        slow = "insert into t select a.id from range(1e7) a join range(1e6) b on a.id * b.id % 7 = 3"
        request = ttypes.TExecuteStatementReq(connection.sessionHandle, slow, runAsync=False)
        connection.client.send_ExecuteStatement(request)
        raw: socket.socket = connection._transport._trans.handle
        raw.shutdown(socket.SHUT_RDWR)
        raw.close()
        until = time.monotonic() + 60
        while len(server.door.sessions) > 1:
            assert time.monotonic() < until
        assert rows(other, "select count(*) from t") == [(0,)]


def test_a_session_of_an_old_client_is_refused(server: ThriftServer) -> None:
    with connect(server) as connection:
        request = ttypes.TOpenSessionReq(ttypes.TProtocolVersion.HIVE_CLI_SERVICE_PROTOCOL_V1, configuration={})
        answer = connection.client.OpenSession(request)
        assert "Hive 0.14" in answer.status.errorMessage


def test_the_call_of_a_client_without_the_token_is_refused_before_it_runs(server: ThriftServer) -> None:
    with connect(server) as other:
        stolen = other.sessionHandle
        with pytest.raises(Exception):  # noqa: B017
            hive.connect("127.0.0.1", server.port, auth="NOSASL", username="eve")
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as raw:
            out = TMemoryBuffer()
            TCLIService.Client(TBinaryProtocol(out)).send_ExecuteStatement(
                ttypes.TExecuteStatementReq(stolen, "create table eve (id int)")
            )
            raw.sendall(out.getvalue())
            assert b"has not sent the token" in raw.recv(65536)
        assert rows(other, "show tables") == []


def test_the_results_of_an_expired_session_are_forgotten(server: ThriftServer) -> None:
    with connect(server) as connection, connection.cursor() as cursor:
        cursor.execute("select 1")
        server.door.forget_ended()
        assert cursor.fetchall() == [(1,)]
        with connection.cursor() as other:
            other.execute("select 2")
            assert server.door.running
            server.door.sessions.close_all()
            server.door.forget_ended()
            assert not server.door.running
            with pytest.raises(exc.OperationalError, match="the operation does not exist"):
                other.fetchall()
            other._operationHandle = None
        cursor._operationHandle = None
