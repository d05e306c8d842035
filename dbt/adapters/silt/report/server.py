"""Serves the report's page, and reads its data again on request, but at most once per interval."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import secrets
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError, SiltError
from dbt.adapters.silt.report.document import Document
from dbt.adapters.silt.report.page import page

_SHARE: Final = 4
"""The pause after a reading, in multiples of its duration, so that a large warehouse is not read constantly."""


@dataclass(frozen=True)
class Data:
    """The data at a point in time.

    Attributes:
        tag: identifies the content, except for the time at which it was read.
    """

    json: bytes
    tag: str


class LiveData:
    """The data of a page. Thread-safe.

    Args:
        read: reads all data, given the current time in milliseconds since 1970-01-01 UTC.
        clock: returns monotonic seconds.
        now_ms: returns the current time in milliseconds since 1970-01-01 UTC.
        least: the minimum number of seconds between two readings.
    """

    def __init__(
        self,
        read: Callable[[int], Document],
        clock: Callable[[], float],
        now_ms: Callable[[], int],
        least: float = 2,
    ) -> None:
        self._read, self._clock, self._now_ms, self._least = read, clock, now_ms, least
        self._lock = threading.Lock()
        self._data: Data | None = None
        self._due = 0.0

    def data(self) -> Data:
        """Returns the newest data, re-read if it is due; concurrent requests cause a single reading.

        Raises:
            StorageError: if the storage cannot list the tables.
        """
        with self._lock:
            started = self._clock()
            if self._data is None or started >= self._due:
                self._data = self._renewed()
                ended = self._clock()
                self._due = ended + max(self._least, _SHARE * (ended - started))
            return self._data

    def _renewed(self) -> Data:
        moment = self._now_ms()
        made = self._read(moment)
        # The time of reading is the first field, and always differs.
        content = made.json.replace(f'"made":{moment}', "", 1)
        tag = f'"{hashlib.sha256(content.encode()).hexdigest()[:32]}"'
        same = self._data is not None and self._data.tag == tag
        return self._data if same and self._data is not None else Data(made.json.encode(), tag)


HOST: Final = "127.0.0.1"
_DATA: Final = "data.json"
_MOST_AT_ONCE: Final = 32
"""Concurrent connections, so that clients cannot fill this process with threads. A further connection takes the place
of the oldest connection that has not sent the secret.
"""
_SECONDS: Final = 15.0
"""The maximum duration of a connection, from the first byte of its request to the last byte of the answer."""
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class ReportServer(ThreadingHTTPServer):
    """The server of a page.

    Args:
        port: 0 selects a free port.
        live: the page's data.

    Raises:
        InvalidSettingError: if the port cannot be used.
    """

    daemon_threads = True

    def __init__(self, port: int, live: LiveData) -> None:
        self.live = live
        self._begun: dict[socket.socket, float] = {}
        self._known: set[socket.socket] = set()
        self._lock = threading.Lock()
        self.token = secrets.token_urlsafe(24)
        try:
            super().__init__((HOST, port), _Handler)
        except (OSError, OverflowError) as error:
            problem = getattr(error, "strerror", None) or error
            raise InvalidSettingError(
                f"port {port} of {HOST} cannot be used: {problem}",
                remedy="Choose another port with `--port`; 0 chooses a free port",
            ) from error

    @property
    def url(self) -> str:
        """The page's address, with its secret."""
        return f"http://{HOST}:{self.server_port}/{self.token}/"

    def is_host(self, named: str | None) -> bool:
        """Returns whether a request's Host header names this server."""
        return named in (f"{HOST}:{self.server_port}", f"localhost:{self.server_port}")

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answers in a new thread, unless too many connections with the secret are open."""
        with self._lock:
            is_taken = len(self._begun) < _MOST_AT_ONCE or self._gives_place()
            if is_taken:
                self._begun[request] = time.monotonic()
        if is_taken:
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def _gives_place(self) -> bool:
        """Ends the oldest connection without the secret, if any; returns whether it did."""
        oldest = next((each for each in self._begun if each not in self._known), None)
        if oldest is None:
            return False
        del self._begun[oldest]
        with contextlib.suppress(OSError):  # it has ended meanwhile
            oldest.shutdown(socket.SHUT_RDWR)
        return True

    def note_secret(self, request: socket.socket) -> None:
        """Notes that a connection has sent the secret, so that no other connection takes its place."""
        with self._lock:
            self._known.add(request)

    def shutdown_request(self, request: Any) -> None:
        """Closes a connection."""
        with self._lock:
            self._begun.pop(request, None)
            self._known.discard(request)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Ends connections that take too long: an endless request, or an answer that the client does not read."""
        before = time.monotonic() - _SECONDS
        with self._lock:
            for request in [each for each, begun in self._begun.items() if begun < before]:
                with contextlib.suppress(OSError):  # it has ended meanwhile
                    request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignores errors: a browser that disconnects during an answer is not a problem."""


class _Handler(BaseHTTPRequestHandler):
    """Answers a request."""

    server: ReportServer
    server_version = "silt"
    sys_version = ""
    timeout = _SECONDS

    def do_HEAD(self) -> None:
        """Answers as to GET, without the page or its data."""
        self.do_GET()

    def do_GET(self) -> None:
        """Answers with the page or its data."""
        if not self.server.is_host(self.headers.get("Host")):
            return self._answer(HTTPStatus.FORBIDDEN, b"this server has another name\n")
        token, slash, rest = self.path.removeprefix("/").partition("/")
        known = hmac.compare_digest(token.encode(), self.server.token.encode())
        if not known or not slash or rest not in ("", _DATA):
            return self._answer(HTTPStatus.NOT_FOUND, b"not found: the address is as `silt serve` printed it\n")
        self.server.note_secret(self.connection)
        try:
            data = self.server.live.data()
        except SiltError as error:
            return self._answer(HTTPStatus.SERVICE_UNAVAILABLE, f"{error}\n".encode())
        if rest == "":
            return self._answer(HTTPStatus.OK, page(data.json.decode(), _DATA).encode(), "text/html")
        if self.headers.get("If-None-Match") == data.tag:
            return self._answer(HTTPStatus.NOT_MODIFIED, b"", tag=data.tag)
        return self._answer(HTTPStatus.OK, data.json, "application/json", data.tag)

    def log_message(self, format: str, *args: Any) -> None:
        """Prints nothing, as the address is a secret."""

    def _answer(self, status: HTTPStatus, body: bytes, kind: str = "text/plain", tag: str | None = None) -> None:
        self.send_response(status)
        more = {} if tag is None else {"ETag": tag}
        headers = {**_HEADERS, **more, "Content-Type": f"{kind}; charset=utf-8", "Content-Length": str(len(body))}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
