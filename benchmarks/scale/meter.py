"""Counts the requests of `ObjectStore`, and how many of them are sequential.

The store is the product's own, in obstore's memory or on a local disk. Each call of the client counts as one request to
a service, and a listing as one request for each thousand names. A pool of threads sends sixteen requests at a time
while its caller waits, so `n` of its requests between two of the caller's count as `n / 16`, rounded up.
"""

from __future__ import annotations

import contextlib
import math
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final
from unittest import mock

import obstore

from dbt.adapters.silt.engine.kernel.storage import object_store

AT_ONCE: Final = 16
PAGE: Final = 1000
_POOL: Final = "ThreadPoolExecutor"
_BYTES_BETWEEN_RANGES: Final = 1 << 20

Listener = Callable[["Request"], None]


@dataclass(frozen=True)
class Request:
    """A request.

    Attributes:
        kind: `get`, `head`, `put`, `list`, `delete` or `copy`.
        key: of the object, or the prefix of a listing.
        sent: bytes that were sent.
        received: bytes of the response, except of listings.
        is_parallel: whether a thread of a pool sent it.
    """

    kind: str
    key: str
    sent: int = 0
    received: int = 0
    is_parallel: bool = False


@dataclass(frozen=True)
class Cost:
    """The requests to the store.

    Attributes:
        kinds: the number of requests of each kind.
        depth: the number of sequential requests.
    """

    kinds: Counter[str]
    depth: int
    sent: int
    received: int

    @property
    def requests(self) -> int:
        return self.kinds.total()

    def seconds(self, latency: float) -> float:
        """Returns the waiting time if each request takes `latency` seconds and bytes take no time."""
        return self.depth * latency


class Meter:
    """The requests since its creation or last reset, in order."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self._listeners: list[Listener] = []
        self._lock = threading.Lock()

    def note(self, kind: str, key: str, sent: int = 0, received: int = 0) -> None:
        is_parallel = threading.current_thread().name.startswith(_POOL)
        request = Request(kind, key, sent, received, is_parallel)
        with self._lock:
            self.requests.append(request)
        for listener in self._listeners:
            listener(request)

    def tell(self, listener: Listener) -> None:
        """Calls the listener before each request, in the thread that sends it."""
        self._listeners.append(listener)

    def reset(self) -> None:
        self.requests = []

    def cost(self) -> Cost:
        found = self.requests
        return Cost(
            Counter(request.kind for request in found),
            depth(found),
            sum(request.sent for request in found),
            sum(request.received for request in found),
        )


def depth(requests: Sequence[Request]) -> int:
    """The number of sequential requests."""
    serial, burst = 0, 0
    for request in requests:
        if request.is_parallel:
            burst += 1
        else:
            serial, burst = serial + 1 + math.ceil(burst / AT_ONCE), 0
    return serial + math.ceil(burst / AT_ONCE)


@contextlib.contextmanager
def metered() -> Iterator[Meter]:
    """Counts the requests of every `ObjectStore` of this process."""
    meter = Meter()
    with mock.patch.object(object_store, "obstore", _Client(meter)):
        yield meter


class _Client:
    """The module obstore, each of whose calls is recorded before it runs."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter

    def __getattr__(self, name: str) -> Any:
        return getattr(obstore, name)

    def get(self, client: Any, key: str, options: Any = None) -> Any:
        # The response is known only afterwards, but the listener must be called before.
        self._meter.note("get", key)
        found = obstore.get(client, key, options=options)
        first, end = found.range
        self._received(key, end - first)
        return found

    def get_ranges(self, client: Any, key: str, *, starts: Sequence[int], ends: Sequence[int]) -> Any:
        for length in _merged(sorted(zip(starts, ends, strict=True))):
            self._meter.note("get", key, received=length)
        return obstore.get_ranges(client, key, starts=starts, ends=ends)

    def head(self, client: Any, key: str) -> Any:
        self._meter.note("head", key)
        return obstore.head(client, key)

    def put(self, client: Any, key: str, data: bytes, **options: Any) -> Any:
        self._meter.note("put", key, sent=len(data))
        return obstore.put(client, key, data, **options)

    def copy(self, client: Any, source: str, target: str) -> None:
        self._meter.note("copy", target)
        obstore.copy(client, source, target)

    def delete(self, client: Any, keys: str | Sequence[str]) -> None:
        each = [keys] if isinstance(keys, str) else keys
        for start in range(0, len(each), PAGE):
            self._meter.note("delete", each[start])
        obstore.delete(client, keys)

    def list(self, client: Any, prefix: str | None = None, *, offset: str | None = None, chunk_size: int) -> Any:
        """Each page is requested after the previous page was consumed; the last page may be empty."""
        chunks = iter(obstore.list(client, prefix, offset=offset, chunk_size=chunk_size))
        size = PAGE
        while size == PAGE:
            self._meter.note("list", prefix or "")
            chunk: Sequence[Any] = next(chunks, [])
            size = len(chunk)
            yield chunk

    def list_with_delimiter(self, client: Any, prefix: str | None = None) -> Any:
        found = obstore.list_with_delimiter(client, prefix)
        for _ in range(max(1, math.ceil((len(found["objects"]) + len(found["common_prefixes"])) / PAGE))):
            self._meter.note("list", prefix or "")
        return found

    def _received(self, key: str, length: int) -> None:
        """Adds the response's bytes to this thread's last request of the key."""
        requests = self._meter.requests
        for place in range(len(requests) - 1, -1, -1):
            each = requests[place]
            if each.key == key and each.kind == "get" and not each.received:
                requests[place] = Request(each.kind, key, each.sent, length, each.is_parallel)
                return


def _merged(ranges: Sequence[tuple[int, int]]) -> Iterator[int]:
    """Returns the lengths of the requested ranges; ranges near each other are combined."""
    start, end = ranges[0]
    for first, last in ranges[1:]:
        if first - end > _BYTES_BETWEEN_RANGES:
            yield end - start
            start, end = first, last
        end = max(end, last)
    yield end - start
