"""Enforced keys of tables that a transaction publishes: two runs that add the same key cannot both be published."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbt.adapters.silt.engine.kernel.errors import ConcurrentKeyError, KeyViolationError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.publication import publication_tables
from dbt.adapters.silt.engine.kernel.publication.publish import OF_STATEMENTS, PublishSettings, find_conflicts, publish
from dbt.adapters.silt.engine.kernel.rows.key_rows import KeyReader
from dbt.adapters.silt.engine.kernel.storage.store import Store
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, CommitInfo
from dbt.adapters.silt.engine.kernel.table.keys import Key, KeyKind, key_properties, unverified_since
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit
from dbt.adapters.silt.engine.kernel.transaction.enforced_keys import NewKeys
from tests.memory_object_store import MemoryObjectStore
from tests.memory_store import MemoryStore
from tests.publication.tables import NAMES, Process
from tests.unit.engine.kernel.log_builder import new_log, put, reopened

SETTINGS = PublishSettings(isolation=OF_STATEMENTS)
KEY = Key(KeyKind.PRIMARY_KEY, ("id",), enforced=True)


@pytest.fixture(params=[MemoryStore, MemoryObjectStore], ids=["folders", "objects"])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    found: Store = request.param()
    for name in NAMES:
        new_log(found.child(f"main/{name}"), configuration=key_properties({"k": KEY}))
    yield found


def file(log: DeltaLog, *ids: int) -> AddFile:
    sink = io.BytesIO()
    pq.write_table(pa.table({"id": list(ids), "day": ["x"] * len(ids)}), sink)
    path = f"{log.clock.new_id()}.parquet"
    log.store.put(path, sink.getvalue())
    return AddFile(path, {}, len(sink.getvalue()), 1, stats=f'{{"numRecords":{len(ids)}}}')


def insert(log: DeltaLog, *ids: int) -> None:
    commit(log, log.snapshot(), Changes(Operation("WRITE"), (file(log, *ids),)), ReadSet(), CommitSettings())


def is_enforced(log: DeltaLog) -> bool:
    snapshot = reopened(log).snapshot()
    return unverified_since(snapshot.transactions, snapshot.version) is None


def test_a_run_on_an_unmoved_base_is_published_and_its_keys_stay_enforced(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = Process(store, 1)
    branch = process.branch()
    for log in branch.values():
        insert(log, 1)
        insert(log, 2)
        with pytest.raises(KeyViolationError):
            insert(log, 1)
    reads = []
    monkeypatch.setattr(KeyReader, "rows", lambda *given: reads.append(given))  # the branch has compared them
    assert publish(process.register, list(branch.values())) == {"a": 1, "b": 1}
    monkeypatch.undo()
    assert reads == []
    assert all(map(is_enforced, process.logs.values()))
    with pytest.raises(KeyViolationError):
        insert(process.logs["a"], 2)


@pytest.mark.parametrize("isolated", [True, False])
def test_of_two_runs_that_add_the_same_key_the_second_is_not_published(store: Store, isolated: bool) -> None:
    first, second = Process(store, 1), Process(store, 2)
    settings = {} if isolated else {"settings": SETTINGS}
    branches = [process.branch() for process in (first, second)]
    for branch, own in zip(branches, (10, 20), strict=True):
        insert(branch["a"], own)
        insert(branch["b"], 5)
    publish(first.register, list(branches[0].values()), **settings)  # type: ignore[arg-type]
    conflicts = find_conflicts(second.register, list(branches[1].values()), SETTINGS)
    assert {name: type(error) for name, error in conflicts.items()} == {"b": ConcurrentKeyError}
    with pytest.raises(ConcurrentKeyError, match=r"the same key as another row under the enforced key `k`.*`id` = 5"):
        publish(second.register, list(branches[1].values()), **settings)  # type: ignore[arg-type]
    assert [reopened(log).snapshot().num_files for log in second.logs.values()] == [1, 1]
    assert all(map(is_enforced, second.logs.values()))


def test_a_run_whose_keys_differ_from_those_of_others_is_published_on_the_moved_base(store: Store) -> None:
    first, second = Process(store, 1), Process(store, 2)
    branch = second.branch()
    for log in branch.values():
        insert(log, 20)
    insert(first.logs["a"], 10)
    assert publish(second.register, list(branch.values()), settings=SETTINGS) == {"a": 2, "b": 1}
    assert all(map(is_enforced, second.logs.values()))


def test_rows_of_another_engine_beside_a_run_are_compared_with_its_rows(store: Store) -> None:
    process = Process(store, 1)
    branch = process.branch()
    for log in branch.values():
        insert(log, 20)
    main = process.logs["a"]
    put(main, 1, CommitInfo(operation="WRITE"), file(main, 20))
    with pytest.raises(ConcurrentKeyError, match="other engines"):
        publish(process.register, list(branch.values()), settings=SETTINGS)


def publish_beside_a_late_writer(store: Store, patch: pytest.MonkeyPatch) -> list[int]:
    process, other = Process(store, 1), Process(store, 2)
    branch = process.branch()
    for log in branch.values():
        insert(log, 20)
    put_of_a_table = publication_tables.ExistingTable.put

    def put_late(table: publication_tables.ExistingTable, settle: Callable[[int], bool]) -> int:
        patch.setattr(publication_tables.ExistingTable, "put", put_of_a_table)
        insert(other.logs[table.log.name], 20)
        return put_of_a_table(table, settle)

    patch.setattr(publication_tables.ExistingTable, "put", put_late)
    publish(process.register, list(branch.values()), settings=SETTINGS)
    return [reopened(log).snapshot().num_files for log in process.logs.values()]


def test_a_key_that_is_added_after_the_check_and_before_the_commit_is_found(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConcurrentKeyError):
        publish_beside_a_late_writer(store, monkeypatch)


def test_without_comparing_the_keys_of_winners_the_late_writer_would_double_a_key(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(NewKeys, "checked", lambda _keys, _winner, pending: pending)
    assert 2 in publish_beside_a_late_writer(store, monkeypatch)


def test_rows_that_another_engine_has_added_before_a_run_are_compared_by_its_first_statement(store: Store) -> None:
    process = Process(store, 1)
    put(process.logs["a"], 1, CommitInfo(operation="WRITE"), file(process.logs["a"], 20))
    branch = process.branch()
    with pytest.raises(KeyViolationError, match="other engines"):
        insert(branch["a"], 20)
    insert(branch["a"], 21)
    insert(branch["b"], 21)
    assert publish(process.register, list(branch.values())) == {"a": 2, "b": 1}
    assert all(map(is_enforced, process.logs.values()))


def test_an_aborted_run_leaves_a_table_whose_keys_the_next_commit_compares(store: Store) -> None:
    process, other = Process(store, 1), Process(store, 2)
    branch = process.branch()
    for log in branch.values():
        insert(log, 20)
    insert(other.logs["b"], 20)
    with pytest.raises(ConcurrentKeyError):
        publish(process.register, list(branch.values()), settings=SETTINGS)
    insert(process.logs["a"], 20)
    assert all(map(is_enforced, process.logs.values()))
    with pytest.raises(KeyViolationError):
        insert(process.logs["a"], 20)
