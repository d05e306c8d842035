"""The times of a MemoryStore; behaviour of all stores is tested in test_store."""

from __future__ import annotations

from tests.fixed_clock import FixedClock
from tests.memory_store import MemoryStore


def test_times_come_from_the_clock() -> None:
    store = MemoryStore(FixedClock(at_ms=1_000, step_ms=5))
    store.put("a", b"")
    store.put("b", b"")
    assert [status.modified_ms for status in store.list_from("")] == [1_005, 1_010]
