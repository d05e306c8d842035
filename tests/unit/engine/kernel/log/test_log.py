"""DeltaLog: snapshots, refreshes, drops, late listings and damaged logs."""

from __future__ import annotations

import contextlib
import gc
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.silt.engine.kernel.errors import (
    CorruptLogError,
    MissingLogVersionError,
    NotATableError,
    StorageError,
    UnsupportedFeatureError,
    VersionNotFoundError,
)
from dbt.adapters.silt.engine.kernel.log.checksum import write_checksum
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.kernel.storage.store import ObjectMissing, PutResult, Store
from dbt.adapters.silt.engine.kernel.table.actions import CommitInfo, Protocol, SetTransaction, serialize
from dbt.adapters.silt.engine.kernel.table.paths import checkpoint_path, checksum_path, commit_name, commit_path
from dbt.adapters.silt.engine.kernel.table.schema import ArrayType, PrimitiveType, StructField, StructType
from tests.faulty_store import Fault, FaultKind, FaultyStore
from tests.fixed_clock import FixedClock
from tests.memory_store import MemoryStore
from tests.unit.engine.kernel.log_builder import (
    METADATA,
    PROTOCOL,
    SCHEMA,
    add,
    checkpointed,
    log_of,
    new_log,
    paths,
    put,
    reopened,
)


class CountingStore(FaultyStore):
    """Counts the calls of each operation."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.calls: list[str] = []

    def around(self, operation, path, run):  # type: ignore[no-untyped-def]
        self.calls.append(operation)
        return super().around(operation, path, run)


def test_a_folder_without_a_log_is_not_a_table() -> None:
    store = MemoryStore()
    log = DeltaLog(store, "shop.orders")
    for make in ("", "_delta_log", "_delta_log/_sidecars"):
        store.make_folder(make)
        assert not log.exists()
        with pytest.raises(NotATableError, match=r"shop\.orders"):
            log.snapshot()


def test_unrelated_files_in_the_log_folder_do_not_make_a_table() -> None:
    store = MemoryStore()
    store.make_folder("_delta_log")
    for name in (".00000000000000000000.json.x.tmp", "00000000000000000000.crc", "_last_checkpoint", "0.json"):
        store.put(f"_delta_log/{name}", b"{}")
    log = DeltaLog(store, "t")
    assert not log.exists()
    with pytest.raises(NotATableError):
        log.snapshot()


def test_a_failed_listing_is_an_error_not_a_missing_table() -> None:
    log = DeltaLog(FaultyStore(MemoryStore(), [Fault("list_from", FaultKind.FAIL_AFTER)]), "t")
    log.store.make_folder("_delta_log")
    for ask in (log.snapshot, log.exists):
        with pytest.raises(StorageError):
            ask()


def test_a_snapshot_is_the_state_after_the_last_commit() -> None:
    log = new_log(configuration={"owner": "me"}, partition_columns=["day"])
    put(log, 1, add("a", "1"), add("b", None), SetTransaction("app", 7, 1))
    put(log, 2, add("a", "1").remove(5), add("c", "2", size=32))
    snapshot = log.snapshot()
    assert (snapshot.table, snapshot.version, snapshot.num_files, snapshot.size_in_bytes) == ("shop.orders", 2, 2, 42)
    assert snapshot.partition_columns == ("day",)
    assert snapshot.metadata.configuration == {"owner": "me"}
    assert snapshot.schema.names == ("id", "day")
    assert snapshot.protocol == PROTOCOL
    assert snapshot.transaction_version("app") == 7
    assert snapshot.transaction_version("other") is None
    assert {action.path: action.partition_values for action in snapshot.add_files()} == {"b": {}, "c": {"day": "2"}}


def test_refreshing_an_unchanged_table_takes_two_requests_whatever_its_length() -> None:
    store = CountingStore(MemoryStore())
    log = log_of(30, store)
    first = log.snapshot()
    store.calls.clear()
    assert log.snapshot() is first
    assert store.calls == ["status", "status"]


def test_a_refresh_reads_only_the_new_commits() -> None:
    store = CountingStore(MemoryStore())
    log = log_of(30, store)
    held = log.snapshot()
    put(log, 31, add("new"), add("f1").remove(1))
    put(log, 32, add("newer"))
    store.calls.clear()
    refreshed = log.snapshot()
    assert refreshed.version == 32
    assert "list_from" not in store.calls and store.calls.count("read") == 3  # two commits and a checksum
    assert refreshed.files["path"].to_pylist() == reopened(log).snapshot().files["path"].to_pylist()
    assert held.version == 30 and held.num_files == 30


def test_the_hash_of_a_versions_files_is_computed_once() -> None:
    log = log_of(2)
    assert log.snapshot().content is log.snapshot().content
    assert log.snapshot_at(1).content != log.snapshot().content


def test_a_commit_that_changes_no_file_is_read_too() -> None:
    log = log_of(1)
    first = log.snapshot()
    put(log, 2, SetTransaction("app", 1, 1))
    second = log.snapshot()
    put(log, 3, replace(METADATA, description="new"))
    third = log.snapshot()
    assert [snapshot.version for snapshot in (first, second, third)] == [1, 2, 3]
    assert (first.transaction_version("app"), second.transaction_version("app")) == (None, 1)
    assert third.metadata.description == "new"


def test_a_version_before_a_damaged_version_can_be_read() -> None:
    log = log_of(3)
    log.store.put(commit_path(4), b"garbage")
    with pytest.raises(CorruptLogError):
        log.snapshot()
    assert reopened(log).snapshot_at(3).num_files == log.snapshot_at(3).num_files == 3


def test_a_version_before_a_gap_can_be_read_and_a_version_after_it_cannot() -> None:
    log = log_of(6)
    log.store.delete(commit_path(4))
    assert reopened(log).snapshot_at(3).num_files == 3
    with pytest.raises(MissingLogVersionError, match=f"{4:020d}.json"):
        reopened(log).snapshot_at(5)


class Interrupted(FaultyStore):
    """Runs a function just before an operation on a path."""

    interruption: tuple[str, str, Callable[[], None]] | None = None

    def around(self, operation, path, run):  # type: ignore[no-untyped-def]
        if self.interruption is not None and self.interruption[:2] == (operation, path):
            _, _, interrupt = self.interruption
            self.interruption = None
            interrupt()
        return super().around(operation, path, run)


@pytest.mark.parametrize("operation", ["status", "read"])
def test_a_table_re_created_during_a_refresh_is_not_mixed_with_the_old_table(operation: str) -> None:
    store = Interrupted(MemoryStore())
    log = log_of(3, store)
    assert log.snapshot().version == 3
    put(log, 4, add("old"))

    def remake() -> None:
        store.inner.delete_folder("_delta_log")
        other = new_log(store.inner)
        for version in range(1, 6):
            put(other, version, add(f"new{version}"))

    store.interruption = (operation, commit_path(4), remake)
    assert paths(log) == {f"new{version}" for version in range(1, 6)}


def test_a_table_dropped_during_a_read_is_reported_as_missing() -> None:
    store = Interrupted(MemoryStore())
    log = log_of(3, store)
    store.interruption = ("read", commit_path(2), lambda: store.inner.delete_folder("_delta_log"))
    with pytest.raises(NotATableError):
        log.snapshot()


def test_a_table_re_created_at_the_same_path_is_noticed() -> None:
    log = log_of(3)
    assert log.snapshot().num_files == 3
    log.store.delete_folder("_delta_log")
    with pytest.raises(NotATableError):
        log.snapshot()
    other = new_log(log.store)
    for version in range(1, 6):
        put(other, version, add(f"g{version}"))
    assert paths(log) == {"g1", "g2", "g3", "g4", "g5"}


def test_a_snapshot_of_a_dropped_table_distinguishes_its_log_from_the_new_log(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "orders")
    log = log_of(2, store)
    base = log.snapshot()
    assert base.log_folder is not None
    store.delete_folder("")
    with pytest.raises(ObjectMissing):
        base.log_folder.put_if_absent(commit_name(3), serialize([add("late")]))
    again = log_of(2, store)
    assert again.snapshot().version == log.snapshot().version == 2
    with pytest.raises(ObjectMissing):
        base.log_folder.put_if_absent(commit_name(3), serialize([add("late")]))
    assert store.status(commit_path(3)) is None
    folder = log.snapshot().log_folder
    assert folder is not None
    assert folder.put_if_absent(commit_name(3), serialize([add("mine")])) is PutResult.CREATED


def test_a_log_keeps_a_descriptor_open_only_while_a_snapshot_is_in_use(tmp_path: Path) -> None:
    def descriptors() -> int:
        """Returns the descriptors of the tables: servers and pools of other tests open and close their own."""
        opened = 0
        for descriptor in Path("/dev/fd").iterdir():
            with contextlib.suppress(OSError):  # it was closed meanwhile
                opened += os.readlink(descriptor).startswith(str(tmp_path))
        return opened

    logs = [log_of(1, LocalStore(tmp_path / str(n))) for n in range(5)]
    before = descriptors()
    snapshots = [log.snapshot() for log in logs for _ in range(3)]
    assert descriptors() == before + len(logs)
    assert snapshots.pop().version == 1
    snapshots.clear()
    gc.collect()
    assert descriptors() == before


def test_any_version_can_be_read_again() -> None:
    log = log_of(25)
    for version in range(1, 26):
        log.after_commit(version)
    log = reopened(log)
    for version in range(26):
        snapshot = log.snapshot_at(version)
        assert snapshot.version == version
        assert set(snapshot.files["path"].to_pylist()) == {f"f{n}" for n in range(1, version + 1)}


@pytest.mark.parametrize("version", [-1, 4, 1_000])
def test_a_missing_version_is_refused_with_the_available_range(version: int) -> None:
    with pytest.raises(VersionNotFoundError, match="versions 0 to 3"):
        log_of(3).snapshot_at(version)


def test_versions_that_were_cleaned_up_are_refused_with_the_remaining_range() -> None:
    log = checkpointed(12)
    for version in range(10):
        log.store.delete(commit_path(version))
    log = reopened(log)
    assert log.snapshot().num_files == 12
    assert log.snapshot_at(10).num_files == 10
    with pytest.raises(VersionNotFoundError, match="versions 10 to 12"):
        log.snapshot_at(9)
    assert [commit.version for commit in log.commits()] == [10, 11, 12]


@pytest.mark.parametrize("missing", [0, 1, 4])
def test_a_gap_in_the_log_is_named(missing: int) -> None:
    log = log_of(5)
    log.store.delete(commit_path(missing))
    with pytest.raises(MissingLogVersionError, match=f"{missing:020d}.json is missing"):
        reopened(log).snapshot()


def test_a_gap_after_the_checkpoint_is_named() -> None:
    log = checkpointed(13)
    log.store.delete(commit_path(12))
    with pytest.raises(MissingLogVersionError, match=f"{12:020d}.json"):
        reopened(log).snapshot()
    with pytest.raises(MissingLogVersionError, match=f"{12:020d}.json"):
        list(reopened(log).commits())


def test_a_commit_missing_only_in_a_listing_is_not_a_gap() -> None:
    class Forgetful(FaultyStore):
        forget = True

        def list_from(self, folder, start=""):  # type: ignore[no-untyped-def]
            found = super().list_from(folder, start)
            if self.forget:
                self.forget = False
                return [status for status in found if status.path != commit_path(2)]
            return found

    assert paths(log_of(3, Forgetful(MemoryStore()))) == {"f1", "f2", "f3"}


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b'{"add":{"path":"x","partitionValues":{},"size":1', "line 1"),
        (serialize([add("x")]) + b"\x00\x01garbage\n", "line 2"),
        (b'{"add":{"partitionValues":{},"size":1}}\n', "line 1"),
        (b'"text"\n', "line 1"),
        (b"\xff\xfe\n", "line 1"),
        (b"", "empty"),
    ],
)
def test_an_unreadable_commit_is_named_with_its_line(content: bytes, what: str) -> None:
    log = log_of(3)
    assert log.snapshot().version == 3
    log.store.put(commit_path(4), content)
    for each in (log, reopened(log)):
        with pytest.raises(CorruptLogError, match=rf"shop\.orders@v4: {4:020d}\.json: .*{what}"):
            each.snapshot()


@pytest.mark.parametrize("actions", [(PROTOCOL,), (METADATA,), (add("x"),), (CommitInfo(),)])
def test_the_first_commit_must_have_protocol_and_metadata(actions: tuple) -> None:  # type: ignore[type-arg]
    log = DeltaLog(MemoryStore(), "t")
    log.store.make_folder("_delta_log")
    put(log, 0, *actions)
    put(log, 1, PROTOCOL, METADATA)
    with pytest.raises(CorruptLogError, match=f"{0:020d}.json"):
        log.snapshot()


def test_an_unreadable_schema_is_a_corrupt_log() -> None:
    log = log_of(1)
    put(log, 2, replace(METADATA, schema_string='{"type":"struct"'))
    with pytest.raises(CorruptLogError, match=r"shop\.orders: the table's schema"):
        log.snapshot()


@pytest.mark.parametrize(
    ("schema", "partition_columns", "problem"),
    [
        (
            SCHEMA.add(StructField("DAY", PrimitiveType("date"))),
            (),
            r"the columns `day`, `DAY` of the table's schema have one name",
        ),
        (
            SCHEMA.add(StructField("place", ArrayType(StructType((SCHEMA.fields[0], SCHEMA.fields[0]))))),
            (),
            r"the columns `id`, `id` of the table's schema",
        ),
        (SCHEMA, ("week",), r"the partition column `week` is missing in the table's schema"),
    ],
)
def test_a_schema_that_contradicts_itself_is_a_corrupt_log(
    schema: StructType, partition_columns: tuple[str, ...], problem: str
) -> None:
    log = log_of(1)
    put(log, 2, replace(METADATA, schema_string=schema.to_json(), partition_columns=partition_columns))
    with pytest.raises(CorruptLogError, match=rf"shop\.orders: {problem}"):
        log.snapshot()


def test_the_protocol_is_checked_before_anything_else_is_read() -> None:
    log = log_of(1)
    assert log.snapshot().version == 1
    unknown = Protocol(3, 7, ("timeTravelMachine",), ("timeTravelMachine",))
    log.store.put(commit_path(2), serialize([unknown]) + b'{"add":{"wormhole":1}}\n')
    put(log, 3, add("x"))
    for each in (log, reopened(log)):
        with pytest.raises(UnsupportedFeatureError, match="timeTravelMachine"):
            each.snapshot()


# transactions


def test_expired_transactions_and_transactions_without_a_time_are_dropped() -> None:
    log = new_log(configuration={"delta.setTransactionRetentionDuration": "interval 1 hour"})
    clock = log.clock
    assert isinstance(clock, FixedClock)
    now = clock.at_ms
    put(log, 1, SetTransaction("old", 1, now - 3_700_000), SetTransaction("new", 2, now), SetTransaction("none", 3))
    assert set(log.snapshot().transactions) == {"new"}


def test_without_a_retention_every_transaction_is_kept() -> None:
    log = new_log()
    put(log, 1, SetTransaction("old", 1, 0), SetTransaction("none", 3))
    put(log, 2, SetTransaction("old", 0, 0))
    assert {app: txn.version for app, txn in log.snapshot().transactions.items()} == {"old": 0, "none": 3}


@pytest.mark.parametrize("count", [1, 2, 4])
def test_a_listing_without_commits_that_it_showed_before_is_not_trusted(count: int) -> None:
    store = FaultyStore(MemoryStore())
    log = log_of(3, store)
    assert log.snapshot().version == 3
    store.faults.append(Fault("*", FaultKind.LATE, count=count))
    for _ in range(3):
        with pytest.raises((StorageError, NotATableError)):
            log.snapshot()
    store.faults.clear()
    assert log.snapshot().version == 3


@pytest.mark.parametrize("count", [1, 2, 3])
def test_commits_that_a_listing_does_not_show_yet_are_requested_by_name(count: int) -> None:
    store = FaultyStore(MemoryStore())
    log = log_of(3, store)
    store.faults.append(Fault("list_from", FaultKind.LATE, count=count))
    assert reopened(log).snapshot().version == 3
    assert reopened(log).snapshot_at(3).version == 3
    assert reopened(log).exists()
    assert [commit.version for commit in reopened(log).commits()] == [0, 1, 2, 3]


@pytest.mark.parametrize("share", [0.0, 0.5, -1])
def test_a_partly_read_commit_is_an_error_or_read_again(share: float) -> None:
    store = FaultyStore(MemoryStore())
    log = log_of(3, store)
    store.faults.append(Fault("read", FaultKind.TORN, path=commit_path(2), times=1, share=share))
    assert paths(reopened(log)) == {"f1", "f2", "f3"}
    store.faults.append(Fault("read", FaultKind.TORN, path=commit_path(2), share=share))
    with pytest.raises(StorageError, match="could be read, but it is"):
        reopened(log).snapshot()


def test_threads_that_share_a_log_see_complete_versions() -> None:
    log = log_of(1)
    failures: list[str] = []
    done = threading.Event()

    def read() -> None:
        last = 0
        while not done.is_set():
            snapshot = log.snapshot()
            if snapshot.num_files != snapshot.version or snapshot.version < last:
                failures.append(f"{snapshot.version}: {snapshot.num_files} files after {last}")
            last = snapshot.version

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    for version in range(2, 60):
        put(log, version, add(f"f{version}"))
        log.after_commit(version)
    done.set()
    for reader in readers:
        reader.join(timeout=30)
    assert failures == []


@pytest.mark.parametrize("made_anew", [False, True])
def test_post_commit_work_never_writes_to_the_log_of_another_table(made_anew: bool) -> None:
    store = MemoryStore()
    log = log_of(3, store.child("t"))
    old = log.snapshot()
    store.rename_folder("t", "dropped")
    if made_anew:
        log_of(3, store.child("t"))
    with pytest.raises(NotATableError, match=r"dropped|holds no"):
        log.checkpoint(old)
    with pytest.raises(ObjectMissing):
        write_checksum(log.store, old)
    assert log.store.status(checkpoint_path(3)) is None
    assert log.store.status(checksum_path(3)) is None


def test_a_checkpoint_of_a_table_dropped_while_it_is_written_is_not_stored() -> None:
    class Dropped(FaultyStore):
        """Drops and re-creates the table just before its checkpoint is written."""

        def around(self, operation: str, path: str, run: Any) -> Any:
            if path == checkpoint_path(3):
                store.rename_folder("t", "dropped")
                log_of(3, store.child("t"))
            return run()

    store = MemoryStore()
    log_of(3, store.child("t"))
    log = DeltaLog(Dropped(store.child("t")), "t")
    with pytest.raises(NotATableError, match="dropped or re-created"):
        log.checkpoint(log.snapshot())
    assert store.status(f"t/{checkpoint_path(3)}") is None


def test_a_reader_whose_next_commit_is_cleaned_up_starts_again_from_the_checkpoint() -> None:
    class Cleaned(FaultyStore):
        """Cleans the log up to its checkpoint between the status request for a commit and its read."""

        def around(self, operation: str, path: str, run: Any) -> Any:
            if operation == "read" and path == commit_path(2):
                for version in range(3):
                    self.inner.delete(commit_path(version))
            return run()

    store = MemoryStore()
    log_of(1, store)
    reader = DeltaLog(Cleaned(store), "shop.orders")
    assert reader.snapshot().version == 1
    writer = DeltaLog(store, "shop.orders", FixedClock())
    for version in (2, 3):
        put(writer, version, CommitInfo(operation="WRITE"), add(f"f{version}"))
    writer.checkpoint(writer.snapshot())
    assert paths(reader) == {"f1", "f2", "f3"}
