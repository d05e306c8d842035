"""The proxy changes nothing that passes through it, and its listener may answer, drop and wait."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from dbt.adapters.silt.engine.kernel.errors import StorageError, StorageRefusedError
from dbt.adapters.silt.engine.kernel.storage.object_store import ObjectStore
from dbt.adapters.silt.engine.kernel.storage.store import PutResult
from tests.cloud import faults as of
from tests.cloud.faults import Faults
from tests.cloud.proxy import behind_proxy
from tests.cloud.servers import ObjectServer

LARGE = 20 << 20


@pytest.fixture
def faults() -> Faults:
    return Faults()


@pytest.fixture
def store(server: ObjectServer, faults: Faults) -> Iterator[ObjectStore]:
    if server.name != "s3":
        pytest.skip("in Azure's addresses the account would be the proxy's")
    with behind_proxy(server, faults) as behind:
        yield behind.store()


def test_large_and_empty_objects_and_unusual_names_pass_through_the_proxy_unchanged(store: ObjectStore) -> None:
    data = os.urandom(LARGE)
    for name, content in {"a b/é%20+&=?": data, "empty": b""}.items():
        store.put(name, content)
        assert store.read(name) == content
    assert store.read_ranges("a b/é%20+&=?", [(5, 9), (LARGE - 3, LARGE)]) == [data[5:9], data[-3:]]


def test_concurrent_requests_each_get_their_own_answer(store: ObjectStore) -> None:
    names = [f"n{number}" for number in range(40)]
    with ThreadPoolExecutor(16) as pool:
        results = list(pool.map(lambda name: store.put_if_absent(name, name.encode() * 1000), names * 2))
        assert list(pool.map(store.read, names)) == [name.encode() * 1000 for name in names]
    assert (results.count(PutResult.CREATED), results.count(PutResult.EXISTS)) == (40, 40)


def test_a_refused_request_does_not_reach_the_server(store: ObjectStore, faults: Faults) -> None:
    faults.refuse(of.change, of.DENIED)
    with pytest.raises(StorageError, match="lack a permission"):
        store.put_if_absent("x", b"1")
    faults.expire_at(of.every)
    for ask in (store.status, store.read):
        with pytest.raises(StorageRefusedError, match="expired"):
            ask("x")
    faults.release()
    assert store.status("x") is None


def test_an_answer_can_be_lost_after_the_server_has_done_the_request(store: ObjectStore, faults: Faults) -> None:
    faults.lose_answer_of(of.change)
    with pytest.raises(StorageError, match="does not answer"):
        store.put_if_absent("x", b"1")
    assert faults.met == 1
    assert store.read("x") == b"1"
