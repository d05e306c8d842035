"""Object stores on this machine: S3 by versitygw and Azure's storage by Azurite, which honour conditional writes.

Each server logs the requests that it has answered, so that a test can count them.
"""

from __future__ import annotations

import base64
import collections
import datetime
import hashlib
import hmac
import http
import os
import re
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Final

from dbt.adapters.silt.engine.kernel.storage.object_store import ObjectStore
from dbt.adapters.silt.engine.kernel.storage.settings import StorageSettings
from tests.cloud import install

BUCKET: Final = "warehouse"

_HOST = "127.0.0.1"
_START_SECONDS = 60
_S3_KEY, _S3_SECRET = "silt-access", "silt-secret-key"
_ACCOUNT = "devstoreaccount1"
# The key of every Azurite, from its documentation.
_ACCOUNT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
_S3_LINE = re.compile(r" s3_(?P<operation>\w+) .* /(?P<path>\S*) (?P<status>\d{3}) \S+( \d+){4} ")
_AZURE_LINE = re.compile(r'"(?P<method>[A-Z]+) /[^/ ]*/(?P<path>\S*) HTTP/[\d.]+" (?P<status>\d{3})')
_AZURE_KINDS = ((r"comp=list", "list"), (r"comp=block(list)?\b", "part"), (r"comp=batch", "delete"))


@dataclass(frozen=True)
class Request:
    """A request that a server has answered.

    Attributes:
        kind: `get`, `head`, `list`, `put`, `part` (of an upload in parts), `copy`, `delete` or `other`.
        path: the bucket, the key and the query, quoted.
        status: of HTTP.
        by_spark: whether Spark sent it; False if the server does not log its client.
    """

    kind: str
    path: str
    status: int
    by_spark: bool = False


@dataclass
class Counted:
    """The requests of a block, available after its end."""

    requests: Sequence[Request] = ()

    def __len__(self) -> int:
        return len(self.requests)

    @property
    def kinds(self) -> dict[str, int]:
        return dict(sorted(collections.Counter(each.kind for each in self.requests).items()))

    def of_kernel(self) -> Counted:
        """Returns the requests that Spark did not send."""
        return Counted([each for each in self.requests if not each.by_spark])

    def of_spark(self) -> Counted:
        return Counted([each for each in self.requests if each.by_spark])

    def listed(self) -> str:
        return "\n".join(f"{each.kind:7}{each.status} {each.path}" for each in self.requests)


@dataclass(frozen=True)
class ObjectServer:
    """A running server with the bucket `BUCKET`.

    Attributes:
        name: `s3` or `azure`.
        base: the URL of the bucket, without a slash at its end.
        options: of obstore.
        hadoop: Spark's settings for it.
        log: the file of the requests that it has answered.
        settings: of a warehouse in it.
        delta_rs: options of delta-rs.
        files: the folder in which each object of the bucket is a file; None if objects are not files.
    """

    name: str
    endpoint: str
    base: str
    options: Mapping[str, str]
    hadoop: Mapping[str, str]
    log: Path
    settings: StorageSettings
    delta_rs: Mapping[str, str]
    make_bucket: Callable[[str], None]
    _parse: Callable[[str], Request | None]
    files: Path | None = None
    _numbers: Iterator[int] = field(default_factory=lambda: iter(range(1 << 30)))

    @property
    def profile(self) -> dict[str, object]:
        """Returns the settings as a profile contains them."""
        return {each.name: value for each in fields(self.settings) if (value := getattr(self.settings, each.name))}

    def store(self, prefix: str | None = None) -> ObjectStore:
        """Returns a store at the prefix, or at an unused prefix by default."""
        at = f"store {next(self._numbers)} é%20" if prefix is None else prefix
        return ObjectStore(f"{self.base}/{at}", self.options)

    def url_of(self, folder: Path) -> str:
        """Returns the URL of a folder: at its prefix if it is below the server's files, else at its whole path."""
        return f"{self.base}/{self.prefix_of(folder)}"

    def prefix_of(self, folder: Path) -> str:
        """Returns the prefix of `url_of`."""
        return str(folder.relative_to(self.files or "/"))

    @contextmanager
    def counted(self) -> Iterator[Counted]:
        """Counts the requests that are answered within the block, by any client."""
        counted, start = Counted(), self._size()
        yield counted
        end = self._size()
        with self.log.open("rb") as file:
            file.seek(start)
            lines = file.read(end - start).decode(errors="replace").splitlines()
        counted.requests = [request for line in lines if (request := self._parse(line)) is not None]

    def _size(self) -> int:
        """Returns the log's size when it has not grown for a moment: the server writes it after the answer."""
        size = -1
        while size != (size := self.log.stat().st_size):
            time.sleep(0.1)
        return size


@contextmanager
def running_s3(folder: Path, *options: str) -> Iterator[ObjectServer]:
    """An S3 by versitygw.

    Args:
        folder: of its objects and logs.
        options: further options of its storage.

    Raises:
        install.NotInstalled: if it is missing and cannot be installed.
    """
    data, log, port = folder / "data", folder / "access.log", _free_port()
    (data / BUCKET).mkdir(parents=True)
    log.touch()
    endpoint = f"http://{_HOST}:{port}"
    listening = [str(install.versitygw()), "--port", f"{_HOST}:{port}", "--quiet", "--access-log", str(log)]
    environment = {**os.environ, "ROOT_ACCESS_KEY": _S3_KEY, "ROOT_SECRET_KEY": _S3_SECRET}
    with _running([*listening, "posix", *options, str(data)], folder, folder / "output.log", environment, port):
        yield ObjectServer(
            name="s3",
            endpoint=endpoint,
            base=f"s3://{BUCKET}",
            options={
                "endpoint": endpoint,
                "region": "us-east-1",
                "access_key_id": _S3_KEY,
                "secret_access_key": _S3_SECRET,
                "allow_http": "true",
                "max_retries": "1",
            },
            hadoop=_s3a(endpoint),
            log=log,
            settings=StorageSettings(
                endpoint=endpoint, region="us-east-1", access_key_id=_S3_KEY, secret_access_key=_S3_SECRET
            ),
            delta_rs={
                "aws_endpoint_url": endpoint,
                "aws_region": "us-east-1",
                "aws_access_key_id": _S3_KEY,
                "aws_secret_access_key": _S3_SECRET,
                "aws_allow_http": "true",
                "conditional_put": "etag",
            },
            files=data / BUCKET,
            make_bucket=lambda name: (data / name).mkdir(exist_ok=True),
            _parse=_s3_request,
        )


@contextmanager
def running_azure(folder: Path) -> Iterator[ObjectServer]:
    """Azure's storage by Azurite, which keeps its objects in memory; otherwise as `running_s3`."""
    log, port = folder / "access.log", _free_port()
    endpoint = f"http://{_HOST}:{port}/{_ACCOUNT}"
    listening = ["--inMemoryPersistence", "--blobHost", _HOST, "--blobPort", str(port), "--skipApiVersionCheck"]
    command = [*install.azurite(), *listening, "--disableTelemetry"]
    with _running(command, folder, log, {**os.environ}, port):

        def make_bucket(name: str) -> None:
            _make_container(endpoint, name)

        make_bucket(BUCKET)
        yield ObjectServer(
            name="azure",
            endpoint=endpoint,
            base=f"abfs://{BUCKET}@{_ACCOUNT}.dfs.core.windows.net",
            options={
                "endpoint": endpoint,
                "account_name": _ACCOUNT,
                "account_key": _ACCOUNT_KEY,
                "allow_http": "true",
                "max_retries": "1",
            },
            hadoop=_abfs(port),
            log=log,
            settings=StorageSettings(endpoint=f"http://{_HOST}:{port}", account_key=_ACCOUNT_KEY),
            delta_rs={
                "azure_storage_account_name": _ACCOUNT,
                "azure_storage_account_key": _ACCOUNT_KEY,
                "azure_storage_endpoint": endpoint,
                "azure_allow_http": "true",
            },
            make_bucket=make_bucket,
            _parse=_azure_request,
        )


def _s3a(endpoint: str) -> Mapping[str, str]:
    settings = {
        "endpoint": endpoint,
        "endpoint.region": "us-east-1",
        "access.key": _S3_KEY,
        "secret.key": _S3_SECRET,
        "path.style.access": "true",
        "connection.ssl.enabled": "false",
        "bucket.probe": "0",
    }
    implementation = {"spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem"}
    return implementation | {f"spark.hadoop.fs.s3a.{name}": value for name, value in settings.items()}


def _abfs(port: int) -> Mapping[str, str]:
    settings = {
        "abfs.endpoint": f"{_HOST}:{port}",
        "always.use.https": "false",
        "account.hns.enabled": "false",
        "fns.account.service.type": "BLOB",
        "account.auth.type": "SharedKey",
        # Spark's client requires a library for TLS, though nothing here is encrypted.
        "networking.library": "JDK_HTTP_URL_CONNECTION",
        f"account.key.{_ACCOUNT}.dfs.core.windows.net": _ACCOUNT_KEY,
        f"account.key.{_ACCOUNT}.blob.core.windows.net": _ACCOUNT_KEY,
    }
    return {f"spark.hadoop.fs.azure.{name}": value for name, value in settings.items()}


def _s3_request(line: str) -> Request | None:
    found = _S3_LINE.search(line)
    if found is None:
        return None
    by_spark = " Hadoop " in line
    return Request(_s3_kind(found["operation"]), found["path"], int(found["status"]), by_spark)


def _s3_kind(operation: str) -> str:
    if operation.startswith("List") and "Upload" not in operation and "Parts" not in operation:
        return "list"
    if "Multipart" in operation or operation.startswith("UploadPart"):
        return "part"
    known = {"GetObject": "get", "HeadObject": "head", "PutObject": "put", "CopyObject": "copy"}
    return known.get(operation) or ("delete" if operation.startswith("Delete") else "other")


def _azure_request(line: str) -> Request | None:
    found = _AZURE_LINE.search(line)
    if found is None:
        return None
    kind = next((kind for pattern, kind in _AZURE_KINDS if re.search(pattern, found["path"])), None)
    known = {"GET": "get", "HEAD": "head", "PUT": "put", "DELETE": "delete"}
    return Request(kind or known.get(found["method"], "other"), found["path"], int(found["status"]))


@contextmanager
def _running(
    command: Sequence[str], folder: Path, output: Path, environment: Mapping[str, str], port: int
) -> Iterator[None]:
    with output.open("wb") as file:
        server = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT
        )
    try:
        _wait_for(server, port, output)
        yield
    finally:
        server.terminate()
        server.wait()


def _wait_for(server: subprocess.Popen[bytes], port: int, output: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while server.poll() is None and time.monotonic() < deadline:
        with closing(socket.socket()) as client:
            client.settimeout(1)
            if client.connect_ex((_HOST, port)) == 0:
                return
        time.sleep(0.05)
    raise RuntimeError(f"{server.args!r} did not start:\n{output.read_text(errors='replace')}")


def _free_port() -> int:
    with closing(socket.socket()) as found:
        found.bind((_HOST, 0))
        return int(found.getsockname()[1])


def _make_container(endpoint: str, name: str) -> None:
    """Creates a container if it does not exist, by one signed request: obstore creates no containers."""
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%a, %d %b %Y %H:%M:%S GMT")
    version = "2021-08-06"
    headers = f"x-ms-date:{now}\nx-ms-version:{version}"
    signed = f"PUT{12 * chr(10)}{headers}\n/{_ACCOUNT}/{_ACCOUNT}/{name}\nrestype:container"
    digest = hmac.new(base64.b64decode(_ACCOUNT_KEY), signed.encode(), hashlib.sha256).digest()
    request = urllib.request.Request(f"{endpoint}/{name}?restype=container", method="PUT")
    request.add_header("x-ms-date", now)
    request.add_header("x-ms-version", version)
    request.add_header("Authorization", f"SharedKey {_ACCOUNT}:{base64.b64encode(digest).decode()}")
    request.add_header("Content-Length", "0")
    try:
        urllib.request.urlopen(request, timeout=30).close()
    except urllib.error.HTTPError as error:
        if error.code != http.HTTPStatus.CONFLICT:  # it exists
            raise
