"""Changes of a branch as commits of their tables: what they contain, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from dbt.adapters.silt.engine.kernel.errors import (
    CommitStateUnknownError,
    ConcurrentModificationError,
    DataFileMissingError,
    StorageError,
)
from dbt.adapters.silt.engine.kernel.publication.branch_changes import changes_on, new_files
from dbt.adapters.silt.engine.kernel.publication.publish import OF_STATEMENTS, PublishSettings, publish
from dbt.adapters.silt.engine.kernel.storage.store import Store
from dbt.adapters.silt.engine.kernel.table.actions import DeletionVector, SetTransaction
from dbt.adapters.silt.engine.kernel.table.paths import commit_path
from dbt.adapters.silt.engine.kernel.transaction.branch_log import BranchLog
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit
from tests.faulty_store import Fault, FaultKind, FaultyStore
from tests.memory_object_store import MemoryObjectStore
from tests.memory_store import MemoryStore
from tests.publication.tables import Process, create
from tests.unit.engine.kernel.log_builder import add, paths

VECTOR = DeletionVector("i", "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", 40, 6)
WRITE = Operation("WRITE", {"mode": "Append"}, {"numFiles": "1"})


def process(*faults: Fault, store: Store | None = None) -> Process:
    inner = store or MemoryStore()
    create(inner)
    return Process(FaultyStore(inner, faults), 1)


def append(log: BranchLog, path: str) -> None:
    log.store.put(path, b"data")
    commit(log, log.snapshot(), Changes(WRITE, (add(path),)), ReadSet(), CommitSettings())


def replace_all(log: BranchLog, path: str) -> None:
    log.store.put(path, b"data")
    base = log.snapshot()
    removes = tuple(each.remove(1) for each in base.add_files())
    commit(log, base, Changes(WRITE, (add(path),), removes), ReadSet(whole_table=True), CommitSettings())


def info(running: Process, name: str, version: int) -> dict[str, Any]:
    line = running.store.read(f"main/{name}/{commit_path(version)}").splitlines()[0]
    found: dict[str, Any] = json.loads(line)["commitInfo"]
    return found


def test_the_only_table_of_a_branch_gets_an_ordinary_commit() -> None:
    running = process()
    log = running.branch()["a"]
    append(log, "x")
    assert publish(running.register, [log], settings=PublishSettings(("app", 3))) == {"a": 2}
    assert (info(running, "a", 2)["operation"], "publication" in info(running, "a", 2)) == ("WRITE", False)
    assert running.logs["a"].snapshot().holds(("app", 3))


def test_the_only_table_of_a_branch_names_no_version_of_the_branch_among_the_versions_that_were_read() -> None:
    running = process()
    log = running.branch()["a"]
    append(log, "x")
    base = log.snapshot()
    log.store.put("y", b"data")
    settings = CommitSettings(read_versions={"a": [1, base.version], "other": [7]})
    commit(log, base, Changes(WRITE, (add("y"),)), ReadSet(), settings)
    publish(running.register, [log])
    assert info(running, "a", 2)["readVersions"] == {"a": [1], "other": [7]}


def test_files_that_a_later_statement_removes_are_not_in_the_commit() -> None:
    running = process()
    log = running.branch()["a"]
    append(log, "x")
    replace_all(log, "y")
    found = changes_on(log)
    assert found is not None
    assert [each.path for each in found.changes.adds] == ["y"]
    assert [each.path for each in found.changes.removes] == ["old"]
    assert found.changes.operation == Operation("TRANSACTION", {"operations": '["WRITE","WRITE"]'})


def test_another_process_sees_the_branch_by_its_folder() -> None:
    running = process()
    log = running.branch()["a"]
    append(log, "x")
    other = BranchLog(Process(running.store, 2).logs["a"], log._branched.branch)
    running.write("a", "mains")
    append(other, "z")
    assert paths(log) == paths(other) == {"old", "x", "z"}
    assert paths(running.logs["a"]) == {"old", "mains"}


def test_a_published_table_records_the_units_of_work_of_its_statements() -> None:
    running = process()
    branch = running.branch()
    for log in branch.values():
        changes = Changes(WRITE, transactions=(SetTransaction("unit", 5),))
        commit(log, log.snapshot(), changes, ReadSet(), CommitSettings(commit_info={"dbt": {"run": "r"}}))
    publish(running.register, list(branch.values()))
    assert all(log.snapshot().holds(("unit", 5)) for log in running.logs.values())
    assert info(running, "b", 2)["dbt"] == {"run": "r"}


@pytest.mark.parametrize("store", [MemoryStore(), MemoryObjectStore()], ids=["folders", "objects"])
def test_a_missing_file_is_found_before_anything_is_put(store: Store) -> None:
    running = process(store=store)
    branch = running.branch()
    for name, log in branch.items():
        append(log, f"new-{name}")
    branch["b"].store.delete("new-b")
    with pytest.raises(DataFileMissingError):
        publish(running.register, list(branch.values()))
    assert {log.snapshot().version for log in running.logs.values()} == {1}


@pytest.mark.parametrize("kind", [FaultKind.FAIL_BEFORE, FaultKind.FAIL_AFTER])
def test_a_commit_that_cannot_be_put_applies_nothing(kind: FaultKind) -> None:
    running = process()
    branch = running.branch()
    for log in branch.values():
        append(log, "new")
    assert isinstance(running.store, FaultyStore)
    running.store.faults.append(Fault("put_if_absent", kind, "*00000000000000000002.json", skip=1, times=8))
    running.store.faults.append(Fault("read", FaultKind.FAIL_BEFORE, "*00000000000000000002.json", times=8))
    with pytest.raises(StorageError):
        publish(running.register, list(branch.values()))
    running.store.faults.clear()
    for name in branch:
        Process(running.store, 3).write(name, "next")
    assert set(Process(running.store, 4).rows().values()) == {frozenset({"old", "next"})}


def test_an_outcome_that_cannot_be_found_out_is_unknown() -> None:
    running = process(Fault("put_if_absent", FaultKind.FAIL_BEFORE, "_publications/???????????????????.json"))
    branch = running.branch()
    for log in branch.values():
        append(log, "new")
    with pytest.raises(CommitStateUnknownError, match="a, b"):
        publish(running.register, list(branch.values()))
    assert set(Process(running.store, 2).rows().values()) == {frozenset({"old"})}


def test_two_branches_that_replace_the_same_rows_conflict() -> None:
    running = process()
    branches = [running.branch(), running.branch()]
    for branch in branches:
        for log in branch.values():
            replace_all(log, "new")
    publish(running.register, list(branches[0].values()))
    with pytest.raises(ConcurrentModificationError):
        publish(running.register, list(branches[1].values()))


def restore(log: BranchLog, version: int) -> None:
    """Restores the files of a version."""
    now, then = log.snapshot(), log.snapshot_at(version)
    removes = tuple(each.remove(1) for each in now.add_files())
    changes = Changes(Operation("RESTORE"), tuple(then.add_files()), removes)
    commit(log, now, changes, ReadSet(whole_table=True, transactions=True), CommitSettings())


def test_files_of_the_history_that_a_branch_restores_are_not_its_own() -> None:
    running = process()
    running.write("a", "later", replaces=True)
    log = running.branch()["a"]
    append(log, "own")
    restore(log, 1)
    assert paths(log) == {"old"}
    marked = replace(add("old", stats='{"numRecords": 9}'), deletion_vector=VECTOR)
    changes = Changes(WRITE, (marked,), (add("old").remove(1),))
    commit(log, log.snapshot(), changes, ReadSet(), CommitSettings())
    assert new_files(log) == ["own"]


def test_a_restored_version_conflicts_with_an_append_at_every_isolation_level() -> None:
    running = process()
    base = running.logs["a"].snapshot()
    metadata = replace(base.metadata, configuration={"delta.isolationLevel": "WriteSerializable"})
    commit(running.logs["a"], base, Changes(Operation("SET"), metadata=metadata), ReadSet(), CommitSettings())
    running.write("a", "later", replaces=True)
    branch = running.branch()
    restore(branch["a"], 2)
    append(branch["b"], "new")
    running.write("a", "appended")
    with pytest.raises(ConcurrentModificationError):
        publish(running.register, list(branch.values()), settings=PublishSettings(None, OF_STATEMENTS, lambda _: None))


def test_a_unit_of_work_that_a_branch_sets_back_is_forgotten() -> None:
    running = process()
    for version in (4, 5):
        changes = Changes(WRITE, transactions=(SetTransaction("unit", version),))
        commit(running.logs["a"], running.logs["a"].snapshot(), changes, ReadSet(), CommitSettings())
    log = running.branch()["a"]
    back = Changes(Operation("RESTORE"), forgotten=(SetTransaction("unit", 4),))
    commit(log, log.snapshot(), back, ReadSet(whole_table=True, transactions=True), CommitSettings())
    publish(running.register, [log])
    assert running.logs["a"].snapshot().transaction_version("unit") == 4


def test_publishing_twice_finds_its_own_files_replaced() -> None:
    running = process()
    branch = running.branch()
    for log in branch.values():
        replace_all(log, "new")
    publish(running.register, list(branch.values()))
    with pytest.raises(ConcurrentModificationError):
        publish(running.register, list(branch.values()))


def test_what_is_undone_leaves_the_table_as_it_was_with_times_for_its_units_of_work() -> None:
    running = process()
    for log in running.logs.values():
        changes = Changes(WRITE, transactions=(SetTransaction("unit", 4),))
        commit(log, log.snapshot(), changes, ReadSet(), CommitSettings())
    branch = running.branch()
    for name, log in branch.items():
        replace_all(log, f"new-{name}")
    assert isinstance(running.store, FaultyStore)
    put = Fault("put_if_absent", FaultKind.FAIL_BEFORE, "*00000000000000000003.json", skip=1, times=8)
    running.store.faults.append(put)
    with pytest.raises(StorageError):
        publish(running.register, list(branch.values()), settings=PublishSettings(("unit", 5)))
    after = Process(running.store, 6).logs["a"].snapshot()
    assert (info(running, "a", after.version)["operation"], after.version) == ("UNDO TRANSACTION", 4)
    assert ({each.path for each in after.add_files()}, after.transaction_version("unit")) == ({"old"}, 4)
    assert all(each.last_updated for each in after.transactions.values())


def test_reads_of_a_branch_are_still_valid_at_the_end_if_the_level_of_a_table_is_snapshot_isolation() -> None:
    running = process()
    base = running.logs["a"].snapshot()
    metadata = replace(base.metadata, configuration={"delta.isolationLevel": "SnapshotIsolation"})
    commit(running.logs["a"], base, Changes(Operation("SET"), metadata=metadata), ReadSet(), CommitSettings())
    branch = running.branch()
    branch["a"].note(ReadSet(whole_table=True))
    for log in branch.values():
        append(log, "new")
    replace_all(running.logs["a"], "other")  # type: ignore[arg-type]
    with pytest.raises(ConcurrentModificationError):
        publish(running.register, list(branch.values()))
