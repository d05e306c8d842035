"""A proxy between dbt and an object store, which passes each request to a listener that may disturb it.

It forwards every byte, including the signed `Host`, so that signatures remain valid.
"""

from __future__ import annotations

import contextlib
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import IO, Final, NoReturn
from urllib.parse import unquote, urlsplit

from tests.cloud.servers import ObjectServer

_PIECE: Final = 1 << 16
_WITHOUT_BODY: Final = (204, 304)


class Dropped(Exception):
    """The connection is to be closed without an answer."""


@dataclass(frozen=True)
class Head:
    """The lines of a request or an answer before its body.

    Attributes:
        raw: with the empty line at the end.
        first: the words of the first line.
        fields: by their names in small letters.
    """

    raw: bytes
    first: tuple[str, ...]
    fields: dict[str, str]

    @classmethod
    def read(cls, source: IO[bytes]) -> Head | None:
        """Reads a head; returns None at the end of the connection."""
        lines = []
        while line := source.readline():
            lines.append(line)
            if not line.strip():
                text = [each.decode("latin-1").strip() for each in lines]
                named = (each.partition(":") for each in text[1:-1])
                return cls(b"".join(lines), tuple(text[0].split(" ", 2)), {n.lower(): v.strip() for n, _, v in named})
        return None

    @property
    def is_chunked(self) -> bool:
        return self.fields.get("transfer-encoding", "").lower() == "chunked"

    def body(self, source: IO[bytes], ends: bool) -> Iterator[bytes]:
        """Yields the body as it is sent, in pieces.

        Args:
            ends: whether a body of unknown length ends with the connection; otherwise it is empty.
        """
        if self.is_chunked:
            yield from _chunks(source)
            return
        length = self.fields.get("content-length")
        left = int(length) if length is not None else (1 << 62 if ends else 0)
        while left and (piece := source.read1(min(left, _PIECE))):  # type: ignore[attr-defined]
            left -= len(piece)
            yield piece


@dataclass
class Passing:
    """A request on its way.

    Attributes:
        method: of HTTP.
        path: the bucket and the key, unquoted, without the query.
        query: quoted.
        by_spark: whether Hadoop's client sent it.
        note: for the listener's use.
    """

    head: Head
    source: IO[bytes]
    kept: list[bytes] | None = None
    note: object = None
    method: str = field(init=False)
    path: str = field(init=False)
    query: str = field(init=False)

    def __post_init__(self) -> None:
        self.method, target = self.head.first[:2]
        parts = urlsplit(f"//{target}" if "://" not in target else target)
        self.path, self.query = unquote(parts.path or parts.netloc).lstrip("/"), parts.query

    @property
    def by_spark(self) -> bool:
        return "Hadoop" in self.head.fields.get("user-agent", "")

    @property
    def awaits_consent(self) -> bool:
        """Whether its body is sent only after an answer to its head."""
        return self.kept is None and self.head.fields.get("expect", "").lower() == "100-continue"

    def keep(self) -> None:
        """Reads the whole body now, so that it can be passed on after its sender has ended."""
        self.kept = list(self.body())

    def body(self) -> Iterator[bytes]:
        return iter(self.kept) if self.kept is not None else self.head.body(self.source, ends=False)


@dataclass(frozen=True)
class Answer:
    """A listener's answer in place of the server's."""

    status: int
    code: str

    @property
    def raw(self) -> bytes:
        body = f"<Error><Code>{self.code}</Code><Message>planted</Message></Error>".encode()
        head = f"HTTP/1.1 {self.status} Planted\r\nContent-Type: application/xml\r\n"
        return f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body

    @property
    def raw_head(self) -> bytes:
        return self.raw.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"


class Listener:
    """Lets every request pass. Its methods are called on the connections' threads; the first two may raise Dropped."""

    def asked(self, passing: Passing) -> Answer | None:
        """Called before a request is passed on; a returned answer replaces the server's."""

    def answered(self, passing: Passing, status: int) -> None:
        """Called when the server has answered and the client has not received the answer."""

    def passed_on(self, passing: Passing, status: int) -> None:
        """Called when the client has received the answer."""


class Proxy:
    """A proxy that listens on a port of its own until it is closed."""

    def __init__(self, server: ObjectServer, listener: Listener) -> None:
        self._upstream = urlsplit(server.endpoint).netloc
        self._listener = listener
        serve = self._serve

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                serve(self.request)

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler, bind_and_activate=False)
        self._server.daemon_threads, self._server.block_on_close = True, False
        self._server.request_queue_size = 128
        self._server.server_bind()
        self._server.server_activate()
        threading.Thread(target=self._server.serve_forever, name="proxy", daemon=True).start()

    @property
    def endpoint(self) -> str:
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _serve(self, client: socket.socket) -> None:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # Either side may close the connection at any time: tests kill dbt.
        with contextlib.suppress(Dropped, OSError), client.makefile("rb") as source:
            while (head := Head.read(source)) is not None:
                self._pass(Passing(head, source), client)

    def _pass(self, passing: Passing, client: socket.socket) -> None:
        own = self._listener.asked(passing)
        if own is not None:
            _answer_in_place(passing, own, client)
        host, _, port = self._upstream.partition(":")
        with socket.create_connection((host, int(port))) as server, server.makefile("rb") as answers:
            server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            answer = _sent(passing, server, answers, client)
            status = int(answer.first[1])
            self._listener.answered(passing, status)
            client.sendall(answer.raw)
            if passing.method != "HEAD" and status not in _WITHOUT_BODY:
                for piece in answer.body(answers, ends=True):
                    client.sendall(piece)
        self._listener.passed_on(passing, status)
        if "content-length" not in answer.fields and not answer.is_chunked and passing.method != "HEAD":
            raise Dropped


@contextmanager
def behind_proxy(server: ObjectServer, listener: Listener) -> Iterator[ObjectServer]:
    """Returns the server as a client of a proxy reaches it; its `delta_rs` options bypass the proxy."""
    proxy = Proxy(server, listener)
    try:
        yield replace(
            server,
            endpoint=proxy.endpoint,
            options={**server.options, "endpoint": proxy.endpoint},
            settings=replace(server.settings, endpoint=proxy.endpoint),
        )
    finally:
        proxy.close()


def _sent(passing: Passing, server: socket.socket, answers: IO[bytes], client: socket.socket) -> Head:
    """Sends a request; returns the head of its answer.

    Raises:
        Dropped: if the server gave no answer.
    """
    server.sendall(passing.head.raw)
    if passing.awaits_consent:
        first = _answer(answers)
        if first.first[1] != "100":
            return first
        client.sendall(first.raw)
    for piece in passing.body():
        server.sendall(piece)
    answer = _answer(answers)
    return _answer(answers) if answer.first[1] == "100" else answer


def _answer(answers: IO[bytes]) -> Head:
    head = Head.read(answers)
    if head is None:
        raise Dropped
    return head


def _answer_in_place(passing: Passing, own: Answer, client: socket.socket) -> NoReturn:
    """Answers as a service that refuses a request: reads the request first, because the client would see a reset
    otherwise.
    """
    if not passing.awaits_consent:
        passing.keep()
    client.sendall(own.raw_head if passing.method == "HEAD" else own.raw)
    raise Dropped


def _chunks(source: IO[bytes]) -> Iterator[bytes]:
    while line := source.readline():
        yield line
        size = int(line.partition(b";")[0], 16)
        if size:
            yield source.read(size + 2)
            continue
        while trailer := source.readline():
            yield trailer
            if not trailer.strip():
                return
