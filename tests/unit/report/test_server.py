"""The server of the page: which requests it accepts, its responses, and when it reads the data again."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError, StorageError
from dbt.adapters.silt.report.document import Document
from dbt.adapters.silt.report.server import HOST, LiveData, ReportServer


@dataclass
class Reader:
    """Counts its calls, each of which may return other content or fail."""

    content: str = "{}"
    error: StorageError | None = None
    moments: list[int] = field(default_factory=list)

    def __call__(self, moment: int) -> Document:
        self.moments.append(moment)
        if self.error is not None:
            raise self.error
        return Document(f'{{"made":{moment},"content":{json.dumps(self.content)}}}', 0, 0, (), ())


@dataclass
class Clock:
    """A clock that changes only when a test sets it."""

    seconds: float = 0.0

    def __call__(self) -> float:
        return self.seconds

    def now_ms(self) -> int:
        return int(self.seconds * 1000)


@pytest.fixture
def reader() -> Reader:
    return Reader()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def server(reader: Reader, clock: Clock) -> Iterator[ReportServer]:
    with ReportServer(0, LiveData(reader, clock, clock.now_ms)) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def ask(server: ReportServer, path: str, method: str = "GET", **headers: str) -> tuple[http.client.HTTPResponse, str]:
    """Sends a request and returns the response and its body; underscores in header names become hyphens."""
    connection = http.client.HTTPConnection(HOST, server.server_port, timeout=300)
    connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer, body


def test_the_address_with_the_secret_returns_the_page_and_its_data(server: ReportServer, reader: Reader) -> None:
    reader.content = "of the warehouse"
    answer, body = ask(server, f"/{server.token}/")
    assert answer.status == 200 and "of the warehouse" in body and "connect-src 'self'" in body
    answer, body = ask(server, f"/{server.token}/data.json")
    assert json.loads(body)["content"] == "of the warehouse"
    assert answer.headers["Cache-Control"] == "no-store" and answer.headers["X-Frame-Options"] == "DENY"


@pytest.mark.parametrize(
    "path",
    ["/", "/data.json", "/wrong/", "/wrong/data.json", "/{token}", "/{token}/other", "/{token}/../data.json"],
)
def test_any_other_address_returns_not_found_without_the_secret(server: ReportServer, path: str) -> None:
    answer, body = ask(server, path.format(token=server.token))
    assert answer.status == 404
    assert server.token not in body


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example"])
def test_a_request_with_another_host_name_is_refused(server: ReportServer, host: str) -> None:
    answer, body = ask(server, f"/{server.token}/", Host=host)
    assert answer.status == 403 and "made" not in body


def test_unchanged_data_is_not_sent_again(server: ReportServer, reader: Reader, clock: Clock) -> None:
    path = f"/{server.token}/data.json"
    tag = ask(server, path)[0].headers["ETag"]
    clock.seconds = 10
    answer, body = ask(server, path, If_None_Match=tag)
    assert (answer.status, body, len(reader.moments)) == (304, "", 2)
    reader.content, clock.seconds = "new", 20
    answer, body = ask(server, path, If_None_Match=tag)
    assert answer.status == 200 and json.loads(body) == {"made": 20_000, "content": "new"}


def test_data_is_not_read_again_before_the_interval_has_passed(
    server: ReportServer, reader: Reader, clock: Clock
) -> None:
    for seconds in (0, 1.5, 1.9):
        clock.seconds = seconds
        ask(server, f"/{server.token}/data.json")
    assert reader.moments == [0]


def test_a_failed_read_returns_the_error_and_the_next_request_reads_again(server: ReportServer, reader: Reader) -> None:
    reader.error = StorageError("it is away")
    answer, body = ask(server, f"/{server.token}/data.json")
    assert answer.status == 503 and "it is away" in body
    reader.error = None
    assert ask(server, f"/{server.token}/data.json")[0].status == 200


@pytest.mark.parametrize("path", ["/{token}/", "/{token}/data.json", "/wrong/"])
def test_head_returns_the_headers_of_get_without_a_body(server: ReportServer, path: str) -> None:
    path = path.format(token=server.token)
    (head, nothing), (get, body) = ask(server, path, "HEAD"), ask(server, path)
    assert (head.status, head.headers["Content-Length"], nothing) == (get.status, str(len(body.encode())), "")


def test_connections_that_send_nothing_do_not_keep_the_owner_out(server: ReportServer) -> None:
    with contextlib.ExitStack() as idle:
        for _ in range(200):
            idle.enter_context(socket.create_connection((HOST, server.server_port)))
        assert ask(server, f"/{server.token}/data.json")[0].status == 200


def test_other_methods_are_refused(server: ReportServer) -> None:
    connection = http.client.HTTPConnection(HOST, server.server_port, timeout=300)
    connection.request("POST", f"/{server.token}/", body=b"{}")
    assert connection.getresponse().status == 501
    connection.close()


def test_data_that_is_slow_to_read_is_read_less_often(reader: Reader, clock: Clock) -> None:
    def slow(moment: int) -> Document:
        clock.seconds += 5
        return reader(moment)

    live = LiveData(slow, clock, clock.now_ms)
    live.data()
    clock.seconds = 24
    live.data()
    assert len(reader.moments) == 1
    clock.seconds = 25
    live.data()
    assert len(reader.moments) == 2


@pytest.mark.parametrize("port", [-1, 70_000])
def test_an_invalid_port_is_named_in_the_error(port: int, reader: Reader, clock: Clock) -> None:
    with pytest.raises(InvalidSettingError, match=f"port {port} .*--port"):
        ReportServer(port, LiveData(reader, clock, clock.now_ms))


def test_a_port_in_use_is_named_in_the_error(server: ReportServer, reader: Reader, clock: Clock) -> None:
    with pytest.raises(InvalidSettingError, match=f"port {server.server_port} .*in use.*--port"):
        ReportServer(server.server_port, LiveData(reader, clock, clock.now_ms))


def test_two_servers_have_different_secrets(server: ReportServer, reader: Reader, clock: Clock) -> None:
    with ReportServer(0, LiveData(reader, clock, clock.now_ms)) as other:
        assert other.token != server.token and len(other.token) >= 32
