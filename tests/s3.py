"""An S3 service: moto, served over HTTP on this machine.

Moto checks whether a key exists and then writes it, without a lock: two requests at the same instant may both be told
that they created it (in 3 of 80 races of 16 threads when the interpreter switched often). So no test here sends
concurrent requests for one key; races for a key are tested on stores that decide them.
"""

from __future__ import annotations

import itertools
import logging
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from moto.server import ThreadedMotoServer

from dbt.adapters.silt.engine.kernel.storage.object_store import ObjectStore

BUCKET = "warehouse"


@dataclass(frozen=True)
class S3:
    """A running server with one bucket."""

    endpoint: str
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count())

    @property
    def base(self) -> str:
        """The URL of the bucket."""
        return f"s3://{BUCKET}"

    @property
    def options(self) -> Mapping[str, str]:
        return {
            "endpoint": self.endpoint,
            "region": "us-east-1",
            "access_key_id": "test",
            "secret_access_key": "test",
            "allow_http": "true",
            "max_retries": "1",
        }

    def store(self, prefix: str | None = None) -> ObjectStore:
        """Returns a store at the prefix, or at an unused prefix by default."""
        at = f"store {next(self.numbers)} é%20" if prefix is None else prefix
        return ObjectStore(f"{self.base}/{at}", self.options)


@contextmanager
def running_s3() -> Iterator[S3]:
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        endpoint = f"http://{host}:{port}"
        request = urllib.request.Request(f"{endpoint}/{BUCKET}", method="PUT")
        with urllib.request.urlopen(request, timeout=30):
            pass
        yield S3(endpoint)
    finally:
        server.stop()
