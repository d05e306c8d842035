"""Log clean-up: the files that it deletes, and the versions that concurrent readers and writers see."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow.parquet as pq
import pytest

from dbt.adapters.silt.engine.kernel.errors import ConcurrentModificationError, StorageError, VersionNotFoundError
from dbt.adapters.silt.engine.kernel.log import checkpoint_write
from dbt.adapters.silt.engine.kernel.log.cleanup import clean_up, expiry
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.storage.store import Store
from dbt.adapters.silt.engine.kernel.table.actions import CommitInfo, Protocol
from dbt.adapters.silt.engine.kernel.table.paths import (
    LOG_FOLDER,
    SIDECAR_FOLDER,
    checkpoint_path,
    checksum_path,
    commit_path,
)
from dbt.adapters.silt.engine.kernel.table.properties import TableProperties
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit
from tests.faulty_store import FaultyStore
from tests.fixed_clock import FixedClock
from tests.memory_store import MemoryStore
from tests.unit.engine.kernel.log_builder import PROTOCOL, add, new_log, put, reopened

DAY_MS = 86_400_000
MIDNIGHT = 1_700_006_400_000
WEEK = {"delta.logRetentionDuration": "interval 7 days", "delta.checkpointInterval": "5"}
V2 = {**WEEK, "delta.checkpointPolicy": "v2"}
V2_PROTOCOL = Protocol(3, 7, ("v2Checkpoint",), ("v2Checkpoint",))

Wrap = Callable[[Store], Store]


def a_commit_a_day(
    days: int, properties: Mapping[str, str] = WEEK, protocol: Protocol = PROTOCOL, wrap: Wrap = lambda store: store
) -> DeltaLog:
    """Returns a table whose version n was committed at noon of day n, with a checkpoint at every fifth version."""
    clock = FixedClock(MIDNIGHT + DAY_MS // 2)
    made = new_log(wrap(MemoryStore(clock)), {**properties, "delta.enableExpiredLogCleanup": "false"}, (), protocol)
    log = DeltaLog(made.store, "shop.orders", clock)
    for version in range(1, days + 1):
        clock.at_ms = MIDNIGHT + DAY_MS // 2 + version * DAY_MS
        put(log, version, CommitInfo(timestamp=clock.at_ms, operation="WRITE"), add(f"f{version}"))
        log.after_commit(version)
    return log


def enabled(log: DeltaLog, properties: Mapping[str, str] = WEEK) -> Any:
    """Returns the newest snapshot of a table with log clean-up enabled."""
    snapshot = log.snapshot()
    snapshot.metadata.configuration.pop("delta.enableExpiredLogCleanup")  # type: ignore[attr-defined]
    return snapshot


def clean(log: DeltaLog) -> int:
    clock = log.clock
    assert isinstance(clock, FixedClock)
    return clean_up(log.store, enabled(DeltaLog(log.store, log.name, clock)), clock.at_ms)


def names(log: DeltaLog) -> list[str]:
    return [status.name for status in log.store.list_from(LOG_FOLDER)]


def commits(log: DeltaLog) -> list[int]:
    return [version for version in range(100) if log.store.status(commit_path(version))]


def files_at(log: DeltaLog, version: int) -> set[str]:
    return set(reopened(log).snapshot_at(version).files["path"].to_pylist())


def expected(version: int) -> set[str]:
    return {f"f{n}" for n in range(1, version + 1)}


def test_versions_expire_at_midnight_utc() -> None:
    week = TableProperties(WEEK)
    for hour in (0, 1, 23):
        assert expiry(week, MIDNIGHT + hour * 3_600_000) == MIDNIGHT - 7 * DAY_MS
    assert expiry(week, MIDNIGHT - 1) == MIDNIGHT - 8 * DAY_MS


def test_the_log_starts_at_the_newest_expired_checkpoint() -> None:
    log = a_commit_a_day(23)
    # At noon of day 23 commits before day 16 have expired; the newest checkpoint before that is version 15's.
    log.store.put(f"{LOG_FOLDER}/{3:020d}.{8:020d}.compacted.json", b"{}")
    log.store.put(f"{LOG_FOLDER}/{15:020d}.{18:020d}.compacted.json", b"{}")
    log.store.put(f"{LOG_FOLDER}/{16:020d}.{18:020d}.compacted.json", b"{}")
    log.store.put(f"{LOG_FOLDER}/{9:020d}.checkpoint.{1:010d}.{2:010d}.parquet", b"half")
    log.store.put(f"{LOG_FOLDER}/notes.txt", b"mine")
    assert clean(log) > 15
    assert commits(log) == list(range(15, 24))
    remaining = names(log)
    assert [name for name in remaining if "checkpoint." in name] == [f"{n:020d}.checkpoint.parquet" for n in (15, 20)]
    assert [name for name in remaining if "compacted" in name] == [f"{16:020d}.{18:020d}.compacted.json"]
    assert "notes.txt" in remaining
    assert log.store.status(checksum_path(14)) is None and log.store.status(checksum_path(15)) is not None
    log.store.delete(f"{LOG_FOLDER}/{16:020d}.{18:020d}.compacted.json")
    for version in range(15, 24):
        assert files_at(log, version) == expected(version)
    for version in (0, 14):
        with pytest.raises(VersionNotFoundError, match="versions 15 to 23"):
            files_at(log, version)
    assert clean(log) == 0


def test_a_commit_exactly_at_midnight_has_expired() -> None:
    log = a_commit_a_day(20)
    clock = log.clock
    assert isinstance(clock, FixedClock)
    clock.at_ms = MIDNIGHT + DAY_MS // 2 + 15 * DAY_MS + 7 * DAY_MS  # noon: the midnight before is after version 14
    clean(log)
    assert commits(log)[0] == 10
    clock.at_ms += DAY_MS
    clean(log)
    assert commits(log)[0] == 15


@pytest.mark.parametrize("days", [0, 3, 6, 11])
def test_nothing_is_deleted_without_an_expired_checkpoint(days: int) -> None:
    log = a_commit_a_day(days)
    assert clean(log) == 0
    assert commits(log) == list(range(days + 1))


def test_a_table_with_clean_up_disabled_is_not_changed() -> None:
    log = a_commit_a_day(40)
    assert isinstance(log.clock, FixedClock)
    assert clean_up(log.store, log.snapshot(), log.clock.at_ms) == 0
    assert commits(log) == list(range(41))


@pytest.mark.parametrize(("days", "asked"), [(3, 0), (40, 1)])
def test_the_oldest_branch_is_asked_for_only_if_files_have_expired(days: int, asked: int) -> None:
    log = a_commit_a_day(days)
    assert isinstance(log.clock, FixedClock)
    calls: list[int] = []

    def oldest_needed() -> int | None:
        calls.append(1)
        return 0

    snapshot = enabled(DeltaLog(log.store, log.name, log.clock))
    assert clean_up(log.store, snapshot, log.clock.at_ms, oldest_needed) == 0
    assert len(calls) == asked
    assert commits(log) == list(range(days + 1))


def test_a_checkpoint_triggers_the_clean_up() -> None:
    clock = FixedClock(MIDNIGHT)
    log = DeltaLog(new_log(MemoryStore(clock), WEEK).store, "t", clock)
    for version in range(1, 26):
        clock.at_ms += DAY_MS
        put(log, version, CommitInfo(operation="WRITE"), add(f"f{version}"))
        log.after_commit(version)
    assert commits(log) == list(range(15, 26))
    assert files_at(log, 25) == expected(25)


def test_an_unreadable_checkpoint_replaces_no_commits() -> None:
    log = a_commit_a_day(23)
    log.store.put(checkpoint_path(15), b"PAR1 cut")
    clean(log)
    assert commits(log) == list(range(10, 24))
    assert files_at(log, 17) == expected(17)
    log.store.put(checkpoint_path(10), b"PAR1 cut")
    assert clean(log) == 0


@pytest.mark.parametrize(("before", "first"), [(0, 15), (15, 15), (16, 0), (99, 0)])
def test_protected_history_is_deleted_as_a_whole_or_kept(before: int, first: int) -> None:
    properties = {**WEEK, "delta.requireCheckpointProtectionBeforeVersion": str(before)}
    log = a_commit_a_day(23, properties, Protocol(1, 7, None, ("checkpointProtection",)))
    clean(log)
    assert commits(log)[0] == first


class CutOff(FaultyStore):
    """Deletes a given number of files and then fails."""

    left = 1_000_000

    def around(self, operation, path, run):  # type: ignore[no-untyped-def]
        if operation == "delete":
            if self.left == 0:
                raise StorageError("the process ends here")
            self.left -= 1
        return super().around(operation, path, run)


def test_after_an_interruption_at_any_step_each_version_is_right_or_reported_as_missing() -> None:
    deleted = 0
    while True:
        log = a_commit_a_day(23, wrap=CutOff)
        store = log.store
        assert isinstance(store, CutOff)
        store.left = deleted
        try:
            total = clean(log)
        except StorageError:
            pass
        else:
            assert 20 < total <= deleted
            return
        store.left = 1_000_000
        assert reopened(log).snapshot().num_files == 23
        for version in (0, 4, 5, 9, 10, 12, 14, 15, 17, 23):
            try:
                found = files_at(log, version)
            except VersionNotFoundError:
                assert version < 15
            else:
                assert found == expected(version)
        deleted += 3
        clean(log)
        assert commits(log) == list(range(15, 24))


class Interrupted(FaultyStore):
    """Runs a function before the operation of a given number."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.countdown: int | None = None
        self.interruption: Callable[[], object] = lambda: None

    def around(self, operation, path, run):  # type: ignore[no-untyped-def]
        if self.countdown is not None:
            self.countdown -= 1
            if self.countdown == 0:
                self.countdown = None
                self.interruption()
        return super().around(operation, path, run)


@pytest.mark.parametrize("version", [3, 12, 15, 22, None])
def test_a_concurrent_reader_sees_the_version_or_that_it_is_gone(version: int | None) -> None:
    for step in range(1, 200):
        log = a_commit_a_day(23, wrap=Interrupted)
        store = log.store
        assert isinstance(store, Interrupted)
        behind = DeltaLog(store.inner, log.name, log.clock)
        store.interruption = lambda behind=behind: clean(behind)  # type: ignore[misc]
        store.countdown = step
        fresh = reopened(log)
        try:
            snapshot = fresh.snapshot() if version is None else fresh.snapshot_at(version)
        except VersionNotFoundError:
            assert version is not None and version < 15
        else:
            assert snapshot.version == (23 if version is None else version)
            assert set(snapshot.files["path"].to_pylist()) == expected(snapshot.version)
        if store.countdown is not None:
            return
    raise AssertionError("the reader never ends")


def test_an_idle_handle_sees_the_newest_version_even_if_its_own_version_is_gone() -> None:
    for step in (1, 2, 3, 4):
        log = a_commit_a_day(3, wrap=Interrupted)
        store = log.store
        assert isinstance(store, Interrupted) and isinstance(log.clock, FixedClock)
        assert log.snapshot().version == 3
        behind = DeltaLog(store.inner, log.name, log.clock)

        def go_on(behind: DeltaLog = behind) -> None:
            for version in range(4, 24):
                assert isinstance(behind.clock, FixedClock)
                behind.clock.at_ms += DAY_MS
                put(behind, version, add(f"f{version}"))
                behind.after_commit(version)
            clean(behind)

        store.interruption, store.countdown = go_on, step
        log.clock.at_ms += 30 * DAY_MS
        snapshot = log.snapshot()
        assert (snapshot.version, snapshot.num_files) in ((3, 3), (23, 23))
        if snapshot.version == 3:  # all requests had been answered before
            assert log.snapshot().version == 23


def test_a_commit_based_on_a_deleted_version_is_not_written() -> None:
    log = a_commit_a_day(3)
    assert isinstance(log.clock, FixedClock)
    base = log.snapshot()
    for version in range(4, 24):
        log.clock.at_ms += DAY_MS
        put(log, version, add(f"f{version}"))
        reopened(log).after_commit(version)
    clean(log)
    log.store.put("late", b"data")
    with pytest.raises(ConcurrentModificationError, match="ran for longer than the log is kept"):
        commit(log, base, Changes(Operation("WRITE"), (add("late"),)), ReadSet(), CommitSettings())
    assert commits(log) == list(range(15, 24))


def test_a_commit_based_on_a_deleted_version_is_refused_if_its_clock_is_an_hour_behind() -> None:
    log = a_commit_a_day(0)
    assert isinstance(log.clock, FixedClock)
    base = log.snapshot()
    for version in range(1, 11):
        put(log, version, add(f"f{version}"))
        reopened(log).after_commit(version)
    log.clock.at_ms = MIDNIGHT + 8 * DAY_MS + DAY_MS // 48
    clean(log)
    log.clock.at_ms -= DAY_MS // 24
    log.store.put("late", b"data")
    with pytest.raises(ConcurrentModificationError, match="ran for longer than the log is kept"):
        commit(log, base, Changes(Operation("WRITE"), (add("late"),)), ReadSet(), CommitSettings())
    assert commits(log) == [10]


def test_a_table_that_consists_of_an_expired_checkpoint_can_be_written() -> None:
    log = a_commit_a_day(5)
    for version in range(6):
        log.store.delete(commit_path(version))
    alone = reopened(log)
    alone.store.put("new", b"data")
    changes = Changes(Operation("WRITE"), (add("new"),))
    assert commit(alone, alone.snapshot(), changes, ReadSet(), CommitSettings()).version == 6


def test_unreferenced_sidecars_are_deleted_once_they_are_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint_write, "PART_ACTIONS", 3)
    log = a_commit_a_day(23, V2, V2_PROTOCOL)
    before = {status.name for status in log.store.list_from(SIDECAR_FOLDER)}
    log.store.put(f"{SIDECAR_FOLDER}/under-way.parquet", b"of a checkpoint that is being written")
    clean(log)
    assert commits(log) == list(range(15, 24))
    after = {status.name for status in log.store.list_from(SIDECAR_FOLDER)}
    assert "under-way.parquet" in after and len(after) < len(before)
    for version in range(15, 24):
        assert files_at(log, version) == expected(version)
    named: set[str] = set()
    for status in log.store.list_from(LOG_FOLDER):
        if ".checkpoint." in status.name:
            rows = pq.read_table(io.BytesIO(log.store.read(status.path))).to_pylist()
            named |= {row["sidecar"]["path"] for row in rows if row["sidecar"]}
    assert named and after - named == {"under-way.parquet"}


def test_a_reader_without_v2_support_finds_a_classic_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    log = a_commit_a_day(23, V2, V2_PROTOCOL)
    assert log.store.status(checkpoint_path(20)) is None
    clean(log)
    assert log.store.status(checkpoint_path(20)) is not None
    assert files_at(log, 23) == expected(23)


def test_the_log_of_a_table_re_created_meanwhile_is_not_changed() -> None:
    log = a_commit_a_day(23, wrap=Interrupted)
    store = log.store
    assert isinstance(store, Interrupted) and isinstance(log.clock, FixedClock)
    snapshot = enabled(reopened(log))

    def remake() -> None:
        store.inner.delete_folder(LOG_FOLDER)
        new_log(store.inner)

    store.interruption, store.countdown = remake, 12
    clean_up(store, snapshot, log.clock.at_ms)
    assert commits(log) == [0]


def test_clean_up_uses_the_adjusted_times() -> None:
    """A file with a late modification time delays all later files: nothing is deleted early."""
    log = a_commit_a_day(23)
    log.store.put(commit_path(2), log.store.read(commit_path(2)))
    assert clean(log) == 0
