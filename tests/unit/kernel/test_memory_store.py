from __future__ import annotations

import pytest

from dbt.adapters.silt.engine.kernel.clock import FixedClock
from dbt.adapters.silt.engine.kernel.errors import StorageError
from dbt.adapters.silt.engine.kernel.memory_store import Fault, FaultKind, FaultyStore, MemoryStore
from dbt.adapters.silt.engine.kernel.store import PutResult


def test_times_come_from_the_clock() -> None:
    store = MemoryStore(FixedClock(at_ms=1_000, step_ms=5))
    store.put("a", b"")
    store.put("b", b"")
    assert [status.modified_ms for status in store.list_from("")] == [1_005, 1_010]


def test_a_failure_before_leaves_nothing_and_one_after_leaves_the_file() -> None:
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


def test_a_delay_passes_on_the_clock() -> None:
    clock = FixedClock(at_ms=0, step_ms=0)
    store = FaultyStore(MemoryStore(), [Fault("list_from", FaultKind.DELAY, seconds=2.5)], clock=clock)
    assert store.list_from("") == []
    assert clock.now_ms() == 2_500


def test_faults_hold_for_children_and_chance_is_seeded() -> None:
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
