"""The log of a table on an object store, over HTTP."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from dbt.adapters.silt.engine.kernel.errors import ConcurrentDropError, NotATableError, SiltError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.storage.object_store import ObjectStore
from dbt.adapters.silt.engine.kernel.storage.store import PutResult
from dbt.adapters.silt.engine.kernel.table.paths import (
    LOG_FOLDER,
    checkpoint_path,
    checksum_path,
    commit_name,
    commit_path,
)
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit
from tests.fixed_clock import FixedClock
from tests.s3 import S3
from tests.simulation.interleaving import Scheduler, YieldingStore, every_order
from tests.unit.engine.kernel.log_builder import METADATA, PROTOCOL, add

# Memory is used for all combinations.
ORDERS = 6


def create(store: ObjectStore, clock: FixedClock | None = None, **properties: str) -> DeltaLog:
    log = DeltaLog(store, "t", clock)
    metadata = replace(METADATA, configuration=properties)
    commit(log, None, Changes(Operation("CREATE TABLE"), (), (), metadata, PROTOCOL), ReadSet(), CommitSettings())
    return log


def append(log: DeltaLog, path: str, base: Snapshot | None = None) -> int:
    log.store.put(path, b"data")
    return commit(
        log, base or log.snapshot(), Changes(Operation("WRITE"), (add(path),)), ReadSet(), CommitSettings()
    ).version


def files(log: DeltaLog) -> set[str]:
    return set(log.snapshot().files["path"].to_pylist())


def test_a_table_is_created_written_checkpointed_and_read_by_another_handle(s3: S3) -> None:
    store = s3.store()
    assert not DeltaLog(store, "t").exists()
    with pytest.raises(NotATableError):
        DeltaLog(store, "t").snapshot()
    log = create(store)
    reader = DeltaLog(s3.store(store.root.removeprefix(f"{s3.base}/")), "t")
    assert reader.snapshot().version == 0
    for number in range(1, 12):
        assert append(log, f"f {number}") == number
    assert files(reader) == files(DeltaLog(store, "t")) == {f"f {number}" for number in range(1, 12)}
    assert store.status(checkpoint_path(10)) is not None
    assert store.status(checksum_path(11)) is not None
    assert DeltaLog(store, "t").snapshot_at(4).num_files == 4
    assert [each.version for each in log.commits()] == list(range(12))


def test_a_log_is_cleaned_up(s3: S3) -> None:
    store, clock = s3.store(), FixedClock(4_000_000_000_000)
    properties = {"delta.checkpointInterval": "2", "delta.logRetentionDuration": "interval 1 day"}
    log = create(store, clock, **properties)
    for number in range(1, 5):
        append(log, f"f{number}")
    assert store.status(commit_path(0)) is None
    assert files(DeltaLog(store, "t", clock)) == {"f1", "f2", "f3", "f4"}


def test_two_writers_both_commit_in_every_order_of_their_requests(s3: S3) -> None:
    for choose in itertools.islice(every_order(), ORDERS):
        store, scheduler = s3.store(), Scheduler()
        create(store)
        logs = [DeltaLog(YieldingStore(store, scheduler), "t", FixedClock(seed=seed)) for seed in (1, 2)]
        bases = [log.snapshot() for log in logs]

        def task(number: int, logs: Sequence[DeltaLog] = logs, bases: Sequence[Snapshot] = bases) -> Any:
            return lambda: append(logs[number], f"f{number}", bases[number])

        assert sorted(scheduler.run([task(0), task(1)], choose)) == [1, 2]
        assert files(DeltaLog(store, "t")) == {"f0", "f1"}


@pytest.mark.parametrize("made_again", [False, True])
def test_a_commit_for_a_dropped_table_is_not_written(s3: S3, made_again: bool) -> None:
    store = s3.store()
    log = create(store)
    append(log, "f1")
    base = log.snapshot()
    store.delete_folder("")
    if made_again:
        append(create(store), "g1")
    with pytest.raises(ConcurrentDropError):
        append(log, "late", base)
    assert store.status(commit_path(2)) is None
    if made_again:
        assert files(log) == {"g1"}
    else:
        with pytest.raises(NotATableError):
            log.snapshot()


class DroppedMeanwhile(ObjectStore):
    """Replaces the table between the check of the log and the write of the commit."""

    dropped = False

    def put_if_absent(self, path: str, data: bytes) -> PutResult:
        if self.dropped:
            self.dropped = False
            self.delete_folder("")
            append(create(self), "g1")
        return super().put_if_absent(path, data)


def test_a_commit_overtaken_by_a_drop_is_removed_from_the_new_table() -> None:
    store = DroppedMeanwhile("memory:///")
    log = create(store)
    append(log, "f1")
    base = log.snapshot()
    store.dropped = True
    with pytest.raises(ConcurrentDropError):
        append(log, "late", base)
    assert store.status(commit_path(2)) is None
    assert files(log) == {"g1"}


@pytest.mark.parametrize("reused", [True, False])
def test_an_unchanged_table_takes_four_requests_or_one_if_its_folder_is_never_reused(
    s3: S3, monkeypatch: pytest.MonkeyPatch, reused: bool
) -> None:
    store = s3.store()
    log = create(store if reused else store.never_reused())
    append(log, "f1")
    held, asked = log.snapshot(), []
    for name in ("status", "read", "fetch", "list_from", "open_input"):
        method = getattr(ObjectStore, name)

        def counted(self: ObjectStore, *arguments: Any, name: str = name, method: Any = method) -> Any:
            asked.append(name)
            return method(self, *arguments)

        monkeypatch.setattr(ObjectStore, name, counted)
    assert log.snapshot() is held
    assert asked == (["status", "status", "fetch", "status"] if reused else ["fetch"])


def test_a_partly_moved_log_is_an_error_and_not_read_as_a_shorter_table(s3: S3) -> None:
    store = s3.store()
    log = create(store.child("t"))
    for number in range(1, 4):
        append(log, f"f{number}")
    names = sorted((file.name for file in store.list_from(f"t/{LOG_FOLDER}")), reverse=True)
    for name in names[: names.index(commit_name(0))]:
        store.put(f"u/{LOG_FOLDER}/{name}", store.read(f"t/{LOG_FOLDER}/{name}"))
        with pytest.raises(SiltError):
            DeltaLog(store.child("u"), "u").snapshot()
    store.delete_folder("u")
    store.rename_folder("t", "u")
    assert files(DeltaLog(store.child("u"), "u")) == {"f1", "f2", "f3"}
