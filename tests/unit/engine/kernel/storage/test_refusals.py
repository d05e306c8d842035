"""A service's refusal is reported with its remedy, by the code of its answer, and without a signature."""

from __future__ import annotations

import http.server
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from dbt.adapters.silt.engine.kernel.errors import (
    NotWrittenError,
    ReadOnlyStorageError,
    StorageError,
    StorageRefusedError,
)
from dbt.adapters.silt.engine.kernel.storage.opening import open_store
from dbt.adapters.silt.engine.kernel.storage.settings import StorageSettings
from dbt.adapters.silt.engine.kernel.storage.storage_errors import first_line, is_signed
from dbt.adapters.silt.engine.kernel.storage.store import Store

AZURE = "abfss://c@acc.dfs.core.windows.net/t"


def settings(port: int, timeout: int = 60) -> StorageSettings:
    return StorageSettings(
        endpoint=f"http://127.0.0.1:{port}", access_key_id="id", secret_access_key="planted", timeout=timeout
    )


@contextmanager
def answering(status: int, code: str) -> Iterator[int]:
    """Runs a service that refuses each request; yields its port."""
    body = f"<Error><Code>{code}</Code><Region>eu-north-1</Region><Message>planted</Message></Error>".encode()

    class Handler(http.server.BaseHTTPRequestHandler):
        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = answer

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize(
    ("status", "code", "said"),
    [
        (404, "NoSuchBucket", "the bucket does not exist .*. Correct the URL"),
        (403, "InvalidAccessKeyId", "does not know the access key .*. Correct `access_key_id`"),
        (403, "SignatureDoesNotMatch", "does not accept the signature .*. Correct `secret_access_key`"),
        (400, "ExpiredToken", "the credentials have expired.*a rerun with the same run id skips committed work"),
        (400, "AuthorizationHeaderMalformed", "in another region, eu-north-1 .*. Set `region`"),
        (403, "RequestTimeTooSkewed", "the clock of this machine"),
        (501, "NotImplemented", "does not support conditional writes"),
        (403, "AccessDenied", "the credentials lack a permission"),
    ],
)
def test_a_refusal_names_the_remedy_to_readers_and_to_writers(status: int, code: str, said: str) -> None:
    with answering(status, code) as port:
        store = open_store(f"s3://bucket-{code.lower()}/t", settings(port))
        for read in (store.list_from, store.list_folders, store.read):
            with pytest.raises(StorageRefusedError, match=said) as refused:
                read("f")
            assert "planted" not in str(refused.value)
        with pytest.raises(NotWrittenError, match=said) as unwritten:
            store.put_if_absent("f", b"x")
    assert isinstance(unwritten.value, ReadOnlyStorageError) == (code == "AccessDenied")


@pytest.mark.parametrize(
    ("status", "said"), [(400, "have expired, or the bucket"), (403, "are wrong or have expired, or lack")]
)
def test_a_refused_head_request_names_the_possible_reasons(status: int, said: str) -> None:
    with answering(status, "NotSeenByHead") as port, pytest.raises(StorageRefusedError, match=f"{said}.*dbt debug"):
        open_store(f"s3://head-{status}/t", settings(port)).status("f")


def test_a_missing_object_is_not_a_refusal() -> None:
    with answering(404, "NoSuchKey") as port:
        assert open_store("s3://some/t", settings(port)).status("f") is None


@pytest.mark.parametrize("listening", [True, False], ids=["hangs", "refuses"])
def test_a_service_that_does_not_answer_is_named_within_seconds(listening: bool) -> None:
    with socket.socket() as sleeper:
        sleeper.bind(("127.0.0.1", 0))
        if listening:
            sleeper.listen()
        port, began = sleeper.getsockname()[1], time.monotonic()
        store: Store = open_store("s3://bucket/t", settings(port, timeout=1))
        with pytest.raises(StorageError, match=rf"http://127\.0\.0\.1:{port} does not answer.*Check `endpoint`"):
            store.list_folders("")
        assert time.monotonic() - began < 150  # the library alone would try for three minutes


def test_the_signature_in_an_azure_address_is_not_shown() -> None:
    signed = Exception("Error performing GET https://acc.blob.core.windows.net/c/t?sv=1&sig=planted in 1ms - no\nmore")
    assert is_signed(signed)
    assert first_line(signed) == "Error performing GET https://acc.blob.core.windows.net/c/t?... in 1ms - no"


def test_a_request_refused_by_azure_shows_no_signature_in_the_error_or_its_cause() -> None:
    with answering(403, "AuthorizationFailure") as port:
        sas = StorageSettings(endpoint=f"http://127.0.0.1:{port}", sas_token="sv=1&sig=the-signature", timeout=60)
        with pytest.raises(StorageRefusedError, match="the credentials lack a permission") as refused:
            open_store(AZURE, sas).list_folders("")
    assert "the-signature" not in f"{refused.value} {refused.value.__cause__}"
