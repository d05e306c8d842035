"""The number of requests that operations on a table's log send, counted by the server."""

from __future__ import annotations

import pytest
from pyroaring import BitMap64

from dbt.adapters.silt.engine.kernel.clock import SystemClock
from dbt.adapters.silt.engine.kernel.files import deletion_vectors
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.maintenance.vacuum import Needed, untracked
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit
from tests.cloud.servers import ObjectServer
from tests.unit.engine.kernel.log_builder import METADATA, PROTOCOL, add


@pytest.fixture
def log(server: ObjectServer) -> DeltaLog:
    """The log of a table of three versions, at an unused location."""
    made = DeltaLog(server.store().never_reused(), "t")
    changes = Changes(Operation("CREATE TABLE"), (), (), METADATA, PROTOCOL)
    commit(made, None, changes, ReadSet(), CommitSettings())
    for name in ("f1", "f2"):
        append(made, name)
    return made


def append(log: DeltaLog, name: str) -> None:
    changes = Changes(Operation("WRITE"), (add(name),))
    commit(log, log.snapshot(), changes, ReadSet(), CommitSettings())


def test_an_unchanged_open_table_is_read_again_with_one_request(server: ObjectServer, log: DeltaLog) -> None:
    held = log.snapshot()
    with server.counted() as counted:
        assert log.snapshot() is held
    assert counted.kinds == {"get": 1}, counted.listed()


def test_an_append_to_an_open_table_sends_five_requests_for_the_log(server: ObjectServer, log: DeltaLog) -> None:
    log.snapshot()
    with server.counted() as counted:
        append(log, "f3")
    # The requests: a look for later commits; the commit; whether the table still exists; the commit's time; the
    # checksum.
    assert counted.kinds == {"get": 2, "head": 1, "put": 2}, counted.listed()


def test_each_commit_of_another_writer_is_read_with_one_request(server: ObjectServer, log: DeltaLog) -> None:
    other = DeltaLog(log.store, "t")
    log.snapshot()
    for name in ("f3", "f4", "f5"):
        append(other, name)
    with server.counted() as counted:
        assert log.snapshot().num_files == 5
    assert counted.kinds["get"] <= 5 and len(counted) <= 7, counted.listed()


def test_the_end_of_a_large_file_is_read_with_one_range_request(server: ObjectServer) -> None:
    store = server.store()
    store.put("large", bytes(5 << 20))
    with server.counted() as counted, store.open_input("large") as file:
        file.seek(-8, 2)
        assert file.read() == bytes(8)
    assert counted.kinds == ({"get": 1} if server.name == "s3" else {"get": 1, "head": 1}), counted.listed()


def test_neighbouring_deletion_vectors_are_read_with_one_range_request(server: ObjectServer) -> None:
    store = server.store()
    vectors = deletion_vectors.write(store, SystemClock(), [BitMap64(range(n, 90_000, 7)) for n in range(20)])
    with server.counted() as counted:
        found = deletion_vectors.read(store, vectors[3:5], "t")
    assert [found[each.unique_id] for each in vectors[3:5]] == [BitMap64(range(n, 90_000, 7)) for n in (3, 4)]
    assert counted.kinds == {"get": 1}, counted.listed()


def test_files_in_many_folders_are_listed_with_one_request(server: ObjectServer) -> None:
    store = server.store()
    for number in range(30):
        store.put(f"w/p={number % 7}/part-{number}", b"x")
    with server.counted() as counted:
        assert len(store.files_below("w")) == 30
    assert counted.kinds == {"list": 1}, counted.listed()


def test_opening_a_table_reads_each_commit_with_one_request(server: ObjectServer, log: DeltaLog) -> None:
    for number in range(5):
        append(log, f"more {number}")
    with server.counted() as counted:
        assert DeltaLog(log.store, "t").snapshot().version == 7
    assert len(counted) == 8 + 5, counted.listed()


def test_a_vacuum_lists_all_folders_of_a_table_with_few_requests(server: ObjectServer, log: DeltaLog) -> None:
    for number in range(20):
        log.store.put(f"folder-{number}/p=1/part-{number}", b"x")
    snapshot = log.snapshot()
    with server.counted() as counted:
        found = untracked(log.store, snapshot, Needed(frozenset(), frozenset()), 1 << 60)
    assert len(found.files) == 20
    assert counted.kinds["list"] <= 4, counted.listed()
