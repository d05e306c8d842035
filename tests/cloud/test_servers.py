"""The servers that replace S3 and Azure's storage decide conditional writes, and log their requests."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from dbt.adapters.silt.engine.kernel.errors import StorageError
from dbt.adapters.silt.engine.kernel.storage.object_store import ObjectStore
from dbt.adapters.silt.engine.kernel.storage.store import PutResult
from tests.cloud.servers import ObjectServer

THREADS = 8


def test_one_of_many_concurrent_creations_of_an_object_succeeds(server: ObjectServer) -> None:
    stores, together = [server.store("race") for _ in range(THREADS)], threading.Barrier(THREADS)

    def create(store: ObjectStore, name: str) -> bool:
        together.wait()
        try:
            return store.put_if_absent(name, b"x") is PutResult.CREATED
        except StorageError:
            return False  # S3 also refuses a write during another write of the key

    with ThreadPoolExecutor(THREADS) as pool:
        for name in map(str, range(20)):
            tasks: list[Callable[[], bool]] = [lambda s=store, n=name: create(s, n) for store in stores]  # type: ignore[misc]
            assert sum(pool.map(lambda task: task(), tasks)) == 1


def test_the_requests_of_a_block_are_counted_by_kind(server: ObjectServer) -> None:
    store = server.store("counted é%20")
    store.put("before", b"x")
    with server.counted() as counted:
        assert store.put_if_absent("a b", b"x") is PutResult.CREATED
        assert store.read("a b") == b"x"
        assert store.status("none") is None
        store.list_from("")
        store.delete("a b")
    assert counted.kinds == {"delete": 1, "get": 1, "head": 1, "list": 1, "put": 1}
    assert len(counted.of_kernel()) == 5
    assert {each.status for each in counted.requests if each.kind == "head"} == {404}


def test_make_bucket_creates_a_bucket(server: ObjectServer) -> None:
    server.make_bucket("another")
    store = ObjectStore(server.base.replace("warehouse", "another", 1), server.options)
    assert store.put_if_absent("a", b"x") is PutResult.CREATED
    assert [file.name for file in store.list_from("")] == ["a"]
