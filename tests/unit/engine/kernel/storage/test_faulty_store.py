"""The faults that a FaultyStore injects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dbt.adapters.silt.engine.kernel.errors import StorageError
from dbt.adapters.silt.engine.kernel.storage.store import FileStatus, ObjectMissing, PutResult
from tests.faulty_store import Fault, FaultKind, FaultyStore
from tests.fixed_clock import FixedClock
from tests.memory_object_store import MemoryObjectStore
from tests.memory_store import MemoryStore


def test_a_failure_before_leaves_no_file_and_a_failure_after_leaves_the_file() -> None:
    store = FaultyStore(
        MemoryStore(),
        [
            Fault("put_if_absent", FaultKind.FAIL_BEFORE, path="*a", times=1),
            Fault("put_if_absent", FaultKind.FAIL_AFTER, path="*b", times=1),
        ],
    )
    store.make_folder("log")
    for name in "ab":
        with pytest.raises(StorageError):
            store.pin("log").put_if_absent(name, b"x")
    assert store.put_if_absent("log/a", b"x") is PutResult.CREATED
    assert store.put_if_absent("log/b", b"x") is PutResult.EXISTS


def test_a_delay_waits_on_the_clock() -> None:
    clock = FixedClock(at_ms=0, step_ms=0)
    store = FaultyStore(MemoryStore(), [Fault("list_from", FaultKind.DELAY, seconds=2.5)], clock=clock)
    assert store.list_from("") == []
    assert clock.now_ms() == 2_500


def test_faults_apply_to_children_and_probabilities_are_seeded() -> None:
    def outcomes(seed: int) -> list[bool]:
        store = FaultyStore(MemoryStore(), [Fault("status", FaultKind.FAIL_BEFORE, probability=0.5)], seed=seed)
        return [fails(store.child("t")) for _ in range(40)]

    assert outcomes(1) == outcomes(1) != outcomes(2)
    assert 5 < sum(outcomes(1)) < 35


def fails(store: FaultyStore) -> bool:
    try:
        store.status("x")
    except StorageError:
        return True
    return False


def late(operation: str, times: int | None = 1, count: int = 1) -> FaultyStore:
    """Creates a store with an existing file, and late answers to one operation."""
    inner = MemoryStore()
    inner.put("before", b"old")
    return FaultyStore(inner, [Fault(operation, FaultKind.LATE, times=times, count=count)])


def names(found: list[FileStatus]) -> list[str]:
    return [status.name for status in found]


def test_a_late_listing_lacks_the_last_writes_and_later_has_them() -> None:
    store = late("list_from", times=2, count=2)
    for name in "bac":
        store.put_if_absent(name, b"x")
    store.put("before", b"new")
    assert names(store.list_from("")) == ["a", "b", "before"]
    store.child("").put("before", b"newer")
    store.put("d", b"x")
    assert names(store.list_from("")) == ["a", "b", "before", "c"]
    assert names(store.list_from("")) == ["a", "b", "before", "c", "d"]


@pytest.mark.parametrize("operation", ["read", "open_input"])
def test_a_late_read_returns_the_content_before_the_last_write(operation: str) -> None:
    def read(path: str) -> bytes:
        if operation == "read":
            return store.read(path)
        with store.open_input(path) as file:
            return file.read()

    store = late(operation)
    store.put("a", b"one")
    with pytest.raises(ObjectMissing):
        read("a")
    assert read("a") == b"one"
    store = late(operation)
    store.put("a", b"one")
    store.put("a", b"two")
    assert [read("a"), read("a")] == [b"one", b"two"]


def test_a_late_status_does_not_find_a_new_file() -> None:
    store = late("status", times=2)
    store.put("a", b"12")
    assert store.status("before") is not None
    assert store.status("a") is None
    status = store.status("a")
    assert status is not None and status.size == 2


def test_a_repeated_write_meets_itself() -> None:
    store = FaultyStore(MemoryStore(), [Fault("put*", FaultKind.TWICE)])
    assert store.put_if_absent("a", b"x") is PutResult.EXISTS
    assert store.pin("").put_if_absent("b", b"x") is PutResult.EXISTS
    store.put("c", b"x")
    assert names(store.list_from("")) == ["a", "b", "c"]


def test_a_repeated_listing_names_every_file_twice_and_not_in_order() -> None:
    store = FaultyStore(MemoryStore(), [Fault("*", FaultKind.TWICE, path="")], seed=1)
    for name in "abcdefgh":
        store.put(name, b"x")
    found = names(store.list_from(""))
    assert sorted(found) == sorted("abcdefgh" * 2)
    assert found != sorted(found)


@pytest.mark.parametrize(("share", "expected"), [(0.0, b""), (0.5, b"0123"), (0.99, b"0123456"), (1.0, b"01234567")])
def test_a_torn_read_returns_the_first_part(share: float, expected: bytes) -> None:
    store = FaultyStore(MemoryStore(), [Fault("*", FaultKind.TORN, share=share)])
    store.put("a", b"01234567")
    assert store.read("a") == expected
    with store.open_input("a") as file:
        assert file.read() == expected


def test_a_wrong_status_belongs_to_no_file() -> None:
    store = FaultyStore(MemoryStore(), [Fault("status", FaultKind.WRONG)])
    store.put("a", b"x")
    assert store.status("a") != store.inner.status("a")
    assert store.status("b") is None


def bucket(*faults: Fault) -> FaultyStore:
    """An object store with the file `a/old`, whose requests have faults."""
    inner = MemoryObjectStore()
    inner.put("a/old", b"old")
    return FaultyStore(inner, faults)


@pytest.mark.parametrize(
    ("operation", "request_of"),
    [
        ("fetch", lambda store: store.fetch("a/old")),
        ("read_ranges", lambda store: store.read_ranges("a/old", [(0, 1)])),
        ("files_below", lambda store: store.files_below("a")),
        ("files_below", lambda store: store.tree()),
        ("list_from", lambda store: next(store.files_in_order("a"))),
        ("delete_all", lambda store: store.delete_all(["a/old", "a/new"])),
    ],
)
def test_an_operation_on_many_files_is_one_request_to_an_object_store(
    operation: str, request_of: Callable[[FaultyStore], Any]
) -> None:
    store = bucket(Fault(operation, FaultKind.FAIL_BEFORE, times=1))
    with pytest.raises(StorageError):
        request_of(store)
    request_of(store)


def test_an_operation_on_many_files_is_many_requests_to_folders() -> None:
    inner = MemoryStore()
    for name in "abc":
        inner.put(name, b"x")
    store = FaultyStore(inner, [Fault("delete", FaultKind.FAIL_BEFORE, path="b")])
    with pytest.raises(StorageError):
        store.delete_all(["a", "b", "c"])
    assert [file.name for file in inner.list_from("")] == ["b", "c"]


def test_a_late_fetch_returns_the_content_before_the_last_write() -> None:
    store = bucket(Fault("fetch", FaultKind.LATE, times=2))
    store.put("a/old", b"newer")
    found = store.fetch("a/old")
    assert found is not None and (found[0].size, found[1]) == (3, b"old")
    store.put("a/new", b"new")
    assert store.fetch("a/new") is None
    assert store.fetch("a/new") == (store.status("a/new"), b"new")


def test_a_late_listing_of_a_tree_lacks_the_last_write() -> None:
    store = bucket(Fault("files_below", FaultKind.LATE, times=1))
    store.put("a/new", b"new")
    assert [file.path for file in store.files_below("")] == ["a/old"]
    assert [file.path for file in store.files_below("")] == ["a/new", "a/old"]
