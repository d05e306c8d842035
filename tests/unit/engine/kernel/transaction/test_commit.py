"""Commits without other writers, after other commits, and to a storage that fails."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from pyroaring import BitMap64

from dbt.adapters.silt.__version__ import version as package_version
from dbt.adapters.silt.engine.kernel.errors import (
    CommitAttemptsExhaustedError,
    CommitStateUnknownError,
    ConcurrentAppendError,
    ConcurrentCreateError,
    ConcurrentDropError,
    ConcurrentTransactionError,
    DataFileMissingError,
    InternalError,
    NotNullViolationError,
    SiltError,
    StorageError,
    UnsupportedFeatureError,
    UnsupportedStatementError,
)
from dbt.adapters.silt.engine.kernel.files import deletion_vectors
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.storage.store import PutResult, Store
from dbt.adapters.silt.engine.kernel.table.actions import (
    Action,
    AddFile,
    CommitInfo,
    DeletionVector,
    DomainMetadata,
    Metadata,
    Protocol,
    SetTransaction,
    serialize,
)
from dbt.adapters.silt.engine.kernel.table.paths import LOG_FOLDER, commit_path
from dbt.adapters.silt.engine.kernel.table.properties import IsolationLevel
from dbt.adapters.silt.engine.kernel.table.schema import PrimitiveType, StructField, StructType
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet, is_needed
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitResult, CommitSettings, commit
from tests.faulty_store import Fault, FaultKind, FaultyStore
from tests.fixed_clock import FixedClock
from tests.memory_object_store import MemoryObjectStore
from tests.memory_store import MemoryStore
from tests.unit.engine.kernel.log_builder import METADATA, PROTOCOL, add, new_log, put, reopened

WRITE = Operation("WRITE", {"mode": "Append", "partitionBy": "[]"}, {"numFiles": "1"})
CREATE = Operation("CREATE TABLE")


def written(log: DeltaLog, path: str = "a.parquet", day: str | None = None) -> AddFile:
    """Writes a data file and returns its action."""
    log.store.put(path, b"data")
    return add(path, day)


def append(log: DeltaLog, path: str = "a.parquet", **settings: Any) -> CommitResult:
    changes = Changes(WRITE, (written(log, path),))
    return commit(log, log.snapshot(), changes, ReadSet(), CommitSettings(**settings))


def lines(log: DeltaLog, version: int) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.store.read(commit_path(version)).decode().splitlines()]


def info(log: DeltaLog, version: int) -> dict[str, Any]:
    found: dict[str, Any] = lines(log, version)[0]["commitInfo"]
    return found


def test_a_commit_is_the_next_version_and_records_its_operation_and_engine() -> None:
    log = new_log()
    settings = CommitSettings(commit_info={"dbt": {"node": "model.orders"}}, user_metadata="a note")
    committed = commit(log, log.snapshot(), Changes(WRITE, (written(log),)), ReadSet(), settings)
    assert (committed.version, committed.attempts) == (1, 1)
    found = info(log, 1)
    assert len(found.pop("txnId")) == 36
    assert found.pop("timestamp") > 0
    assert found == {
        "operation": "WRITE",
        "operationParameters": {"mode": "Append", "partitionBy": "[]"},
        "readVersion": 0,
        "isolationLevel": "Serializable",
        "isBlindAppend": True,
        "operationMetrics": {"numFiles": "1"},
        "userMetadata": "a note",
        "engineInfo": f"dbt-silt/{package_version}",
        "commitAttempts": 1,
        "statementAttempts": 1,
        "dbt": {"node": "model.orders"},
    }
    assert [file.path for file in log.snapshot().add_files()] == ["a.parquet"]


def test_actions_are_in_the_order_of_delta_spark_and_identifiers_have_a_time() -> None:
    log = DeltaLog(MemoryStore(), "t", FixedClock())
    log.store.make_folder(LOG_FOLDER)
    protocol = Protocol(1, 7, None, ("domainMetadata",))
    changes = Changes(
        CREATE,
        (written(log),),
        metadata=METADATA,
        protocol=protocol,
        transactions=(SetTransaction("app", 3),),
        domains=(DomainMetadata("mine", "{}"),),
    )
    assert commit(log, None, changes, ReadSet(), CommitSettings()) == CommitResult(0, 1)
    assert [next(iter(line)) for line in lines(log, 0)] == [
        "commitInfo",
        "metaData",
        "protocol",
        "domainMetadata",
        "txn",
        "add",
    ]
    assert lines(log, 0)[4]["txn"]["lastUpdated"] > 0
    assert "readVersion" not in info(log, 0)
    assert log.snapshot().transaction_version("app") == 3


@pytest.mark.parametrize(
    ("reads", "removes", "blind"),
    [
        (ReadSet(), False, True),
        (ReadSet(paths=frozenset({"x"})), False, False),
        (ReadSet(whole_table=True), False, False),
        (ReadSet(), True, False),
    ],
)
def test_only_a_commit_that_neither_reads_nor_removes_is_a_blind_append(
    reads: ReadSet, removes: bool, blind: bool
) -> None:
    log = new_log()
    append(log, "old.parquet")
    gone = log.snapshot().add_files()[0].remove(1)
    changes = Changes(WRITE, (written(log),), (gone,) if removes else ())
    commit(log, log.snapshot(), changes, reads, CommitSettings())
    assert info(log, 2)["isBlindAppend"] is blind


def test_the_isolation_level_is_that_of_the_settings_or_the_table_and_snapshot_for_a_rearrangement() -> None:
    log = new_log(configuration={"delta.isolationLevel": "WriteSerializable"})
    append(log, "one.parquet")
    append(log, "two.parquet", isolation_level=IsolationLevel.SERIALIZABLE)
    base = log.snapshot()
    moved = replace(written(log, "both.parquet"), data_change=False)
    removes = tuple(file.remove(1, data_change=False) for file in base.add_files())
    commit(log, base, Changes(Operation("OPTIMIZE"), (moved,), removes), ReadSet(), CommitSettings())
    levels = [info(log, version)["isolationLevel"] for version in (1, 2, 3)]
    assert levels == ["WriteSerializable", "Serializable", "SnapshotIsolation"]


def test_an_append_is_committed_after_the_winning_commits() -> None:
    log = new_log()
    base = log.snapshot()
    for number in range(3):
        append(reopened(log), f"theirs-{number}.parquet")
    committed = commit(log, base, Changes(WRITE, (written(log),)), ReadSet(), CommitSettings())
    assert (committed.version, committed.attempts) == (4, 2)
    assert (info(log, 4)["readVersion"], info(log, 4)["commitAttempts"]) == (0, 2)


def test_a_conflict_with_any_commit_since_the_base_stops_a_commit() -> None:
    log = new_log()
    base = log.snapshot()
    append(reopened(log), "theirs.parquet")
    put(log, 2, CommitInfo(operation="OPTIMIZE"))
    with pytest.raises(ConcurrentAppendError) as caught:
        commit(log, base, Changes(WRITE, (written(log),)), ReadSet(whole_table=True), CommitSettings())
    assert caught.value.details["version"] == 1
    assert log.store.status(commit_path(3)) is None


class Overtaken(FaultyStore):
    """A store in which another writer takes the version before each write of a commit."""

    def __init__(self, inner: Store, times: int) -> None:
        super().__init__(inner)
        self.times = times

    def around(self, operation: str, path: str, run: Any) -> Any:
        if operation == "put_if_absent" and self.times:
            self.times -= 1
            self.inner.put_if_absent(path, serialize([CommitInfo(operation="WRITE", is_blind_append=True)]))
        return run()


def test_recorded_work_is_refused_unless_its_version_is_newer_or_it_was_forgotten() -> None:
    log = new_log()

    def record(version: int) -> int:
        changes = Changes(WRITE, transactions=(SetTransaction("app", version),))
        return commit(log, log.snapshot(), changes, ReadSet(), CommitSettings()).version

    record(1)
    for done in (0, 1):
        with pytest.raises(ConcurrentTransactionError, match="already recorded with version 1"):
            record(done)
    assert [record(2), record(-1), record(1)] == [2, 3, 4]


def test_commits_during_a_wait_cause_no_further_wait() -> None:
    log = new_log()
    base = log.snapshot()

    def another_writer_commits(version: int) -> None:
        put(log, version, CommitInfo(operation="WRITE", is_blind_append=True), add(f"f{version}"))

    class BusyClock(FixedClock):
        """A clock during whose first wait another writer commits twice."""

        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            another_writer_commits(2)
            another_writer_commits(3)

    another_writer_commits(1)
    late = DeltaLog(log.store, log.name, BusyClock())
    committed = commit(late, base, Changes(WRITE, (written(late),)), ReadSet(), CommitSettings())
    assert (committed.version, committed.attempts) == (4, 2)


def test_attempts_are_counted_and_bounded() -> None:
    log = new_log(Overtaken(MemoryStore(), 0))
    assert isinstance(log.store, Overtaken)
    log.store.times = 4
    assert append(log, "a.parquet", max_attempts=5).attempts == 5
    log.store.times = 5
    base = log.snapshot().version
    what = r"5 attempts to commit WRITE, based on version 5, .*: versions 6 to 10 \(5 x WRITE\), in \d+\.\d s"
    with pytest.raises(CommitAttemptsExhaustedError, match=what) as caught:
        append(log, "b.parquet", max_attempts=5)
    details = dict(caught.value.details)
    assert details.pop("milliseconds") > 0
    assert details == {
        "attempts": 5,
        "own_operation": "WRITE",
        "base_version": base,
        "last_version": base + 5,
        "winners": {"WRITE": 5},
    }


def faulty(*faults: Fault) -> DeltaLog:
    """A table in a storage that starts to fail after version 0."""
    log = new_log(FaultyStore(MemoryStore()))
    log.snapshot()
    assert isinstance(log.store, FaultyStore)
    log.store.faults.extend(faults)
    return log


def commit_fault(kind: FaultKind, times: int | None = 1, operation: str = "put_if_absent") -> Fault:
    return Fault(operation, kind, "*.json", times)


@pytest.mark.parametrize("kind", [FaultKind.FAIL_BEFORE, FaultKind.FAIL_AFTER])
@pytest.mark.parametrize("times", [1, 3])
def test_a_commit_with_a_lost_answer_is_retried_until_the_version_is_known(kind: FaultKind, times: int) -> None:
    log = faulty(commit_fault(kind, times))
    assert append(log).version == 1
    assert [version for version in range(5) if log.store.status(commit_path(version))] == [0, 1]


def test_a_landed_commit_whose_answers_are_all_lost_is_found_by_reading_it() -> None:
    log = faulty(commit_fault(FaultKind.FAIL_AFTER, times=2), commit_fault(FaultKind.FAIL_BEFORE, 2, "read"))
    assert append(log).version == 1


@pytest.mark.parametrize("lost", [0, 1])
def test_a_torn_read_of_the_own_version_is_not_taken_for_another_writer(lost: int) -> None:
    log = faulty(commit_fault(FaultKind.FAIL_AFTER, lost), commit_fault(FaultKind.TWICE), torn(2))
    assert append(log).version == 1


def test_a_version_that_cannot_be_read_has_an_unknown_outcome() -> None:
    log = faulty(commit_fault(FaultKind.FAIL_AFTER), torn(None))
    with pytest.raises(CommitStateUnknownError, match="version 1"):
        append(log)


def test_a_winner_that_is_read_only_in_part_raises_an_error() -> None:
    class Torn(FaultyStore):
        def around(self, operation: str, path: str, run: Any) -> Any:
            result = run()
            is_winner = operation == "read" and path == commit_path(1)
            return result[: result.index(b"\n") + 1] if is_winner else result

    log = new_log(Torn(MemoryStore()))
    base = log.snapshot()
    put(log, 1, CommitInfo(operation="WRITE"), add("theirs"))
    changes = Changes(WRITE, (written(log),))
    with pytest.raises(StorageError, match="could be read"):
        commit(log, base, changes, ReadSet(whole_table=True), CommitSettings())
    with pytest.raises(StorageError, match="could be read"):
        log.snapshot()
    with pytest.raises(StorageError, match="could be read"):
        reopened(log).snapshot()


def torn(times: int | None) -> Fault:
    return Fault("read", FaultKind.TORN, commit_path(1), times)


def test_a_commit_succeeds_if_the_storage_reports_exists_after_its_own_retry() -> None:
    class Repeats(FaultyStore):
        def around(self, operation: str, path: str, run: Any) -> Any:
            if operation == "put_if_absent" and path == commit_path(1):
                run()
            return run()

    log = new_log(Repeats(MemoryStore()))
    assert append(log).version == 1


def test_a_commit_with_an_unknown_outcome_tries_no_other_version_and_raises_an_error() -> None:
    log = faulty(commit_fault(FaultKind.FAIL_BEFORE, None))
    with pytest.raises(CommitStateUnknownError, match="version 1") as caught:
        append(log)
    assert isinstance(caught.value.__cause__, StorageError)
    assert log.store.status(commit_path(1)) is None
    assert log.store.status(commit_path(2)) is None


def test_a_lost_commit_whose_version_another_writer_took_raises_a_conflict() -> None:
    log = faulty(commit_fault(FaultKind.FAIL_BEFORE))
    base = log.snapshot()
    append(reopened(DeltaLog(log.store.inner, log.name)), "theirs.parquet")  # type: ignore[attr-defined]
    with pytest.raises(ConcurrentAppendError):
        commit(log, base, Changes(WRITE, (written(log),)), ReadSet(whole_table=True), CommitSettings())


def test_failures_after_the_commit_do_not_fail_it(caplog: pytest.LogCaptureFixture) -> None:
    log = faulty(Fault("put", FaultKind.FAIL_BEFORE, "*.crc"), Fault("put_if_absent", FaultKind.FAIL_BEFORE, "*.crc"))
    assert append(log).version == 1


def test_data_files_are_durable_before_the_log_names_them() -> None:
    log = faulty(Fault("make_durable", FaultKind.FAIL_BEFORE, "a b.parquet"))
    log.store.put("a b.parquet", b"data")
    changes = Changes(WRITE, (add("a%20b.parquet"),))
    with pytest.raises(StorageError):
        commit(log, log.snapshot(), changes, ReadSet(), CommitSettings())
    assert log.store.status(commit_path(1)) is None


def test_deletion_vectors_are_durable_before_the_log_names_them() -> None:
    log = faulty(Fault("make_durable", FaultKind.FAIL_BEFORE, "*deletion_vector_*.bin*"))
    (vector,) = deletion_vectors.write(log.store, log.clock, [BitMap64([1])])
    log.store.put("part-1.parquet", b"data")
    marked = replace(add("part-1.parquet"), deletion_vector=vector, stats='{"numRecords":2}')
    with pytest.raises(StorageError):
        commit(log, log.snapshot(), Changes(WRITE, (marked,)), ReadSet(), CommitSettings())
    assert log.store.status(commit_path(1)) is None


def test_a_missing_data_file_is_not_committed() -> None:
    log = new_log()
    with pytest.raises(DataFileMissingError):
        commit(log, log.snapshot(), Changes(WRITE, (add("gone.parquet"),)), ReadSet(), CommitSettings())
    assert log.store.status(commit_path(1)) is None


@pytest.mark.parametrize("made_again", [False, True])
def test_a_commit_to_a_dropped_table_writes_no_version(made_again: bool) -> None:
    store = MemoryStore()
    log = new_log(store.child("t"))
    base = log.snapshot()
    changes = Changes(WRITE, (written(log),))
    store.rename_folder("t", "dropped")
    if made_again:
        new = new_log(store.child("t"))
        written(new)
    with pytest.raises(ConcurrentDropError):
        commit(log, base, changes, ReadSet(), CommitSettings())
    assert log.store.status(commit_path(1)) is None
    assert store.status(f"dropped/{commit_path(1)}") is None


def test_a_commit_with_a_lost_answer_has_an_unknown_outcome_if_a_drop_emptied_the_folder() -> None:
    class EmptiedAtFirst(FaultyStore):
        """Another writer drops the table just before the first commit, whose answer is lost."""

        def put_if_absent(self, path: str, data: bytes) -> PutResult:
            if path != commit_path(1) or self.inner.status(commit_path(0)) is None:
                return super().put_if_absent(path, data)
            self.inner.delete_folder("")
            self.inner.put_if_absent(path, data)
            raise StorageError("the answer was lost")

    log = new_log(EmptiedAtFirst(MemoryObjectStore().child("t").never_reused()))
    with pytest.raises(CommitStateUnknownError, match="the answer was lost"):
        commit(log, log.snapshot(), Changes(WRITE, (written(log),)), ReadSet(), CommitSettings())


def test_a_late_commit_of_another_writer_does_not_hide_that_the_table_was_dropped() -> None:
    store = MemoryObjectStore().child("t").never_reused()
    log = new_log(store)
    commit(log, log.snapshot(), Changes(WRITE, (written(log),)), ReadSet(), CommitSettings())
    changes = Changes(WRITE, (written(log, "part-2.parquet"),))
    base = log.snapshot()
    store.delete_folder("")
    store.put_if_absent(commit_path(1), b"a commit of another late writer")
    store.put("part-2.parquet", b"data")
    with pytest.raises(ConcurrentDropError):
        commit(log, base, changes, ReadSet(), CommitSettings())
    assert store.status(commit_path(2)) is None


def test_no_commit_follows_the_version_that_drops_the_table() -> None:
    log = new_log()
    base = log.snapshot()
    put(log, 1, CommitInfo(operation="DROP TABLE"), METADATA)
    with pytest.raises(ConcurrentDropError):
        commit(log, base, Changes(WRITE, (written(log),)), ReadSet(), CommitSettings())


def create(log: DeltaLog) -> CommitResult:
    changes = Changes(CREATE, metadata=METADATA, protocol=PROTOCOL)
    return commit(log, None, changes, ReadSet(), CommitSettings())


def test_a_table_is_created_once() -> None:
    log = DeltaLog(MemoryStore(), "t", FixedClock())
    log.store.make_folder(LOG_FOLDER)
    assert create(log) == CommitResult(0, 1)
    with pytest.raises(ConcurrentCreateError):
        create(log)


def test_a_table_whose_first_versions_were_cleaned_up_is_not_created_again() -> None:
    log = new_log()
    for number in range(10):
        append(log, f"{number}.parquet")
    log.store.delete(commit_path(0))
    with pytest.raises(ConcurrentCreateError):
        create(reopened(log))
    assert log.store.status(commit_path(0)) is None


def test_a_table_without_its_folder_is_not_created() -> None:
    with pytest.raises(ConcurrentDropError):
        create(DeltaLog(MemoryStore(), "t", FixedClock()))


NOT_NULL = StructType((StructField("id", PrimitiveType("long")), StructField("day", PrimitiveType("string"), False)))
VECTOR = DeletionVector("u", "x", 1, 1)
OTHER = replace(METADATA, partition_columns=("day",))

BROKEN: list[tuple[str, Sequence[Action], Changes, type[SiltError]]] = [
    ("no first metadata", (), Changes(WRITE, protocol=PROTOCOL), InternalError),
    ("a file twice", (METADATA,), Changes(WRITE, (add("x"), add("x"))), InternalError),
    ("a removal twice", (METADATA,), Changes(WRITE, (), (add("x").remove(1),) * 2), InternalError),
    ("added and removed", (METADATA,), Changes(WRITE, (add("x"),), (add("x").remove(1),)), InternalError),
    (
        "an application twice",
        (METADATA,),
        Changes(WRITE, transactions=(SetTransaction("a", 1), SetTransaction("a", 2))),
        InternalError,
    ),
    ("a domain twice", (METADATA,), Changes(WRITE, domains=(DomainMetadata("a", ""),) * 2), InternalError),
    ("unknown partition value", (METADATA,), Changes(WRITE, (add("x", day="1"),)), InternalError),
    ("missing partition value", (OTHER,), Changes(WRITE, (add("x"),)), InternalError),
    ("an empty file", (METADATA,), Changes(WRITE, (add("x", size=0),)), InternalError),
    (
        "a deletion vector without a row count",
        (METADATA,),
        Changes(WRITE, (replace(add("x"), deletion_vector=VECTOR),)),
        InternalError,
    ),
    (
        "a null in a NOT NULL partition column",
        (replace(OTHER, schema_string=NOT_NULL.to_json()),),
        Changes(WRITE, (AddFile("x", {"day": None}, 1, 1),)),
        NotNullViolationError,
    ),
    (
        "a removal from an append-only table",
        (replace(METADATA, configuration={"delta.appendOnly": "true"}),),
        Changes(WRITE, (), (add("x").remove(1),)),
        UnsupportedStatementError,
    ),
    ("another id", (METADATA,), Changes(WRITE, metadata=replace(METADATA, id="other")), InternalError),
    ("a lower protocol", (METADATA,), Changes(WRITE, protocol=Protocol(1, 1)), InternalError),
    (
        "a feature beyond this engine",
        (METADATA,),
        Changes(WRITE, protocol=Protocol(3, 7, ("catalogManaged",), ("catalogManaged",))),
        UnsupportedFeatureError,
    ),
]


@pytest.mark.parametrize(("what", "head", "changes", "error"), BROKEN, ids=[case[0] for case in BROKEN])
def test_changes_that_violate_the_protocol_are_not_written(
    what: str, head: Sequence[Metadata], changes: Changes, error: type[SiltError]
) -> None:
    log = DeltaLog(MemoryStore(), "t", FixedClock())
    log.store.make_folder(LOG_FOLDER)
    log.store.put("x", b"data")
    if head:
        put(log, 0, CommitInfo(operation="CREATE TABLE"), PROTOCOL, *head)
    with pytest.raises(error):
        commit(log, log.snapshot() if head else None, changes, ReadSet(), CommitSettings())
    assert log.store.status(commit_path(1 if head else 0)) is None


def test_partitioning_changes_only_with_all_files() -> None:
    log = new_log()
    append(log)
    base = log.snapshot()
    with pytest.raises(InternalError, match="partitioning"):
        commit(log, base, Changes(WRITE, metadata=OTHER), ReadSet(), CommitSettings())
    removes = tuple(file.remove(1) for file in base.add_files())
    changes = Changes(Operation("REPLACE TABLE"), (written(log, "new", "1"),), removes, OTHER)
    assert commit(log, base, changes, ReadSet(whole_table=True), CommitSettings()).version == 2


def test_rearranging_an_append_only_table_is_allowed() -> None:
    log = new_log(configuration={"delta.appendOnly": "true"})
    append(log)
    base = log.snapshot()
    removes = tuple(file.remove(1, data_change=False) for file in base.add_files())
    changes = Changes(Operation("OPTIMIZE"), (replace(written(log, "new"), data_change=False),), removes)
    assert commit(log, base, changes, ReadSet(), CommitSettings()).version == 2


@pytest.mark.parametrize("level", IsolationLevel)
def test_an_empty_commit_is_needed_under_write_serializable_or_with_an_identifier(level: IsolationLevel) -> None:
    assert is_needed(Changes(WRITE), level) is (level is IsolationLevel.WRITE_SERIALIZABLE)
    assert is_needed(Changes(WRITE, transactions=(SetTransaction("a", 1),)), level)
    assert is_needed(Changes(WRITE, (add("x"),)), level)
