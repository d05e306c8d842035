"""The documents of publications: what has begun, and the only decision about it."""

from __future__ import annotations

import json

import pytest

from dbt.adapters.silt.engine.kernel.errors import CorruptLogError, StorageError
from dbt.adapters.silt.engine.kernel.publication.documents import Begun, Documents, Part, Status, new_publication
from tests.faulty_store import Fault, FaultKind, FaultyStore
from tests.fixed_clock import FixedClock
from tests.memory_store import MemoryStore

PART = Part("silt.main.a", "main/a", "an-id", 3, "{}", ("f1",), transactions=True)
READ = Part("silt.main.b", "main/b", "another-id", 5, None, whole_table=True)
BEGUN = Begun(7, 1_000, (PART, READ))


def documents(*faults: Fault) -> Documents:
    return Documents(FaultyStore(MemoryStore(), faults), FixedClock())


def test_what_has_begun_is_read_back() -> None:
    found = documents()
    assert (found.begun(7), found.decision(7)) == (None, None)
    found.begin(BEGUN)
    assert found.begun(7) == BEGUN
    assert BEGUN.written == (PART,)
    with pytest.raises(StorageError, match="exists"):
        found.begin(BEGUN)


@pytest.mark.parametrize(("first", "second"), [tuple(Status), tuple(reversed(Status))])
def test_only_the_first_decision_counts(first: Status, second: Status) -> None:
    found = documents()
    found.begin(BEGUN)
    assert found.decide(BEGUN, first, {"silt.main.a": 4}).status is first
    assert found.decide(BEGUN, second, {"silt.main.a": 4}).status is first
    found.forget_beginning(7)
    decision = found.decision(7)
    assert decision is not None and found.begun(7) is None
    assert decision.versions == ({"silt.main.a": 4} if first is Status.PUBLISHED else {})


def test_the_decision_is_a_public_document() -> None:
    found = documents()
    found.begin(BEGUN)
    found.decide(BEGUN, Status.PUBLISHED, {"silt.main.a": 4})
    body = json.loads(found.store.read("_publications/7.json"))
    assert body.pop("time") > 0
    assert body == {
        "format": 1,
        "id": "7",
        "status": "published",
        "tables": [
            {"table": "silt.main.a", "location": "main/a", "tableId": "an-id", "base": 3, "version": 4},
        ],
    }


def test_a_lost_answer_to_a_decision_is_found_out() -> None:
    found = documents(Fault("put_if_absent", FaultKind.FAIL_AFTER, "_publications/7.json", times=1))
    found.begin(BEGUN)
    assert found.decide(BEGUN, Status.ABORTED, {}).status is Status.ABORTED


def test_a_decision_that_cannot_be_written_is_an_error() -> None:
    found = documents(Fault("put_if_absent", FaultKind.FAIL_BEFORE, "_publications/7.json"))
    found.begin(BEGUN)
    with pytest.raises(StorageError):
        found.decide(BEGUN, Status.ABORTED, {})


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"status": "other", "tables": []}', b"\xff"])
def test_a_damaged_document_is_an_error_that_names_it(data: bytes) -> None:
    found = documents()
    found.begin(BEGUN)
    for path in ("_publications/7.json", "_publications/7.begun.json"):
        found.store.put(path, data)
    with pytest.raises(CorruptLogError, match=r"_publications/7\.json"):
        found.decision(7)
    with pytest.raises(CorruptLogError, match=r"_publications/7\.begun\.json"):
        found.begun(7)


@pytest.mark.parametrize("location", ["../other", "/etc", "a/../../b", "", "a//b", ".", 3])
def test_a_table_outside_of_the_database_is_refused(location: object) -> None:
    found = documents()
    found.begin(BEGUN)
    found.decide(BEGUN, Status.ABORTED, {})
    for path in ("_publications/7.json", "_publications/7.begun.json"):
        text = found.store.read(path).replace(b'"main/a"', json.dumps(location).encode())
        found.store.put(path, text)
    with pytest.raises(CorruptLogError):
        found.decision(7)
    with pytest.raises(CorruptLogError):
        found.begun(7)


def test_ids_ascend_with_time_and_fit_into_63_bits() -> None:
    clock = FixedClock(4_000_000_000_000)
    first, second = new_publication(clock), new_publication(clock)
    assert first < second < 1 << 63
