"""Listens for HiveServer2's clients on one port: binary with SASL PLAIN, binary without SASL, and HTTP.

The first byte of a connection tells which: a SASL message begins with its status, a call with the version of Thrift's
binary protocol, and a request of HTTP with a letter. With TLS, all three are within it.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import select
import socket
import socketserver
import ssl
import struct
import threading
from http.server import BaseHTTPRequestHandler
from typing import Any, Final

from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TException
from thrift.transport.TTransport import TFileObjectTransport, TMemoryBuffer

from dbt.adapters.silt.endpoint.thrift.service import WRONG_TOKEN, Calls, Door, Service

_START, _OK, _BAD, _ERROR, _COMPLETE = 1, 2, 3, 4, 5
"""The statuses of SASL messages."""

_BINARY: Final = b"\x80"
_PLAIN: Final = b"PLAIN"
_LARGEST_CALL: Final = 16 * 1024 * 1024
_LARGEST_HANDSHAKE: Final = 4096
_MOST_ITEMS: Final = 100_000
_HANDSHAKE_SECONDS: Final = 10.0
_MOST_CONNECTIONS: Final = 200
_BAD_BYTES: Final = (TException, ValueError, TypeError, struct.error, IndexError, KeyError, AttributeError, MemoryError)
"""The errors of reading bytes that are not a call."""


class RefusedError(Exception):
    """The bytes of a client break the protocol, or its token is wrong; the connection is closed."""


class ThriftServer(socketserver.ThreadingTCPServer):
    """The listening port; `serve_forever` runs it, and `shutdown` ends it.

    Args:
        address: host and port; 0 is a free port.
        tls: the certificate, if connections are encrypted.
    """

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], door: Door, tls: ssl.SSLContext | None = None) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self.door, self.tls = door, tls
        self._free = threading.BoundedSemaphore(_MOST_CONNECTIONS)
        super().__init__(address, _Connection)

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serves a connection on a thread of its own, unless there are too many."""
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.door.warn("too_many_connections")
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serves a connection, and makes room for another."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignores a connection that breaks; its sessions are closed."""


class _Connection(BaseHTTPRequestHandler):
    """A connection. Its base reads requests of HTTP."""

    protocol_version = "HTTP/1.1"
    server: ThriftServer
    _service: Service | None = None

    def setup(self) -> None:
        self.request.settimeout(_HANDSHAKE_SECONDS)
        self.request.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.server.tls is not None:
            self.request = self.server.tls.wrap_socket(self.request, server_side=True)
        super().setup()

    def handle(self) -> None:
        try:
            first = self.rfile.peek(1)[:1]  # type: ignore[attr-defined]
            if first == bytes([_START]):
                self._serve_frames(self._sasl_user())
            elif first == _BINARY:
                self._serve_calls()
            elif first.isalpha():
                super().handle()
        except RefusedError as error:
            self.server.door.warn("refused", why=str(error))
        except (OSError, *_BAD_BYTES):
            self.server.door.warn("refused", why="the bytes are not of the protocol")
        finally:
            if self._service is not None:
                self._service.end()

    def finish(self) -> None:
        with contextlib.suppress(OSError):
            super().finish()

    # Binary with SASL

    def _sasl_user(self) -> str:
        """Runs the handshake of SASL PLAIN, and returns the user.

        Raises:
            RefusedError: if the mechanism or the token is not the endpoint's.
        """
        status, mechanism = self._sasl_message()
        if status != _START or mechanism != _PLAIN:
            self._send_sasl(_BAD, b"the endpoint speaks SASL PLAIN: choose the authentication LDAP or NONE")
            raise RefusedError("another mechanism than SASL PLAIN")
        status, given = self._sasl_message()
        parts = given.split(b"\0")
        token = parts[2].decode(errors="replace") if len(parts) == 3 else None
        if status not in (_OK, _COMPLETE) or not self.server.door.token.matches(token):
            self._send_sasl(_ERROR, WRONG_TOKEN.encode())
            raise RefusedError("a wrong token")
        self._send_sasl(_COMPLETE, b"")
        return parts[1].decode(errors="replace")[:200]

    def _sasl_message(self) -> tuple[int, bytes]:
        status, size = struct.unpack(">BI", self._read(5))
        if size > _LARGEST_HANDSHAKE:
            raise RefusedError("a SASL message that is too large")
        return status, self._read(size)

    def _send_sasl(self, status: int, body: bytes) -> None:
        self.wfile.write(struct.pack(">BI", status, len(body)) + body)

    def _serve_frames(self, user: str) -> None:
        calls = self._calls(user)
        while (head := self.rfile.read(4)) and len(head) == 4:
            (size,) = struct.unpack(">I", head)
            if size > _LARGEST_CALL:
                raise RefusedError("a call that is too large")
            answer = _answer(calls, self._read(size))
            self.wfile.write(struct.pack(">I", len(answer)) + answer)

    # Binary without SASL

    def _serve_calls(self) -> None:
        """Serves a connection whose OpenSession call has the token as its password, or as a setting."""
        calls = self._calls(None)
        given = TBinaryProtocol(TFileObjectTransport(self.rfile), strictRead=True, **_LIMITS)
        while self.rfile.peek(1):  # type: ignore[attr-defined]
            out = TMemoryBuffer()
            calls.process(given, TBinaryProtocol(out))
            self.wfile.write(out.getvalue())

    # HTTP

    def do_POST(self) -> None:
        """Answers a call in the body of a request, whose password is the token."""
        user = self._basic_user()
        size = int(self.headers.get("Content-Length") or -1)
        if user is None or not 0 < size <= _LARGEST_CALL:
            self._send_http(401 if user is None else 413, b"")  # PyHive would read a text as an answer
            return
        calls = Calls(Service(self.server.door, user, self._is_gone, keeps_sessions=True))
        try:
            self._send_http(200, _answer(calls, self._read(size)))
        except _BAD_BYTES:
            self._send_http(400, b"the body is not a call")

    def _basic_user(self) -> str | None:
        """Returns the user of the request, or None if its token is wrong."""
        kind, _, given = (self.headers.get("Authorization") or "").partition(" ")
        with contextlib.suppress(binascii.Error, UnicodeDecodeError):
            user, _, token = base64.b64decode(given, validate=True).decode().partition(":")
            if kind.lower() == "basic" and self.server.door.token.matches(token):
                return user[:200]
        self.server.door.warn("refused", why="a wrong token")
        return None

    def _send_http(self, status: int, body: bytes) -> None:
        self.send_response_only(status)
        self.send_header("Content-Type", "application/x-thrift" if status == 200 else "text/plain")
        self.send_header("Content-Length", str(len(body)))
        if status != 200:
            self.send_header("WWW-Authenticate", 'Basic realm="silt endpoint"')
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Logs nothing: the door logs what is unusual."""

    # All

    def _calls(self, user: str | None) -> Calls:
        self.request.settimeout(None)
        self._service = Service(self.server.door, user, self._is_gone)
        return Calls(self._service)

    def _read(self, size: int) -> bytes:
        found = self.rfile.read(size)
        if len(found) < size:
            raise RefusedError("a message that ends too early")
        return found

    def _is_gone(self) -> bool:
        """Returns whether the client has closed the connection; called while it waits for an answer."""
        try:
            if not select.select([self.request], [], [], 0)[0]:
                return False
            return not socket.socket.recv(self.request, 1, socket.MSG_PEEK)
        except OSError:
            return True


_LIMITS: Final = {"string_length_limit": _LARGEST_CALL, "container_length_limit": _MOST_ITEMS}


def _answer(calls: Calls, call: bytes) -> bytes:
    out = TMemoryBuffer()
    given = TBinaryProtocol(TMemoryBuffer(call), strictRead=True, **_LIMITS)
    calls.process(given, TBinaryProtocol(out))
    return bytes(out.getvalue())
