"""The command of VACUUM: its retention check, its full and lite form, and interruptions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from dbt.adapters.silt.engine.commands.maintenance.vacuum import Retention, Vacuumed, vacuum
from dbt.adapters.silt.engine.commands.target import WriteSettings
from dbt.adapters.silt.engine.kernel.errors import (
    NoSpaceError,
    RetentionTooShortError,
    StorageError,
    UnsupportedFeatureError,
)
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.table.actions import CommitInfo, Protocol, RemoveFile, SetTransaction
from dbt.adapters.silt.engine.kernel.table.paths import LAST_VACUUM_INFO
from tests.faulty_store import Fault, FaultKind, FaultyStore
from tests.fixed_clock import FixedClock
from tests.memory_store import MemoryStore
from tests.unit.engine.kernel.log_builder import METADATA, add, new_log, paths, put, reopened

HOUR = 3_600_000
WEEK = Retention(168 * HOUR)


@dataclass
class Meanwhile(FixedClock):
    """A clock whose wait performs another writer's action."""

    do: Callable[[], None] | None = None

    def sleep(self, seconds: float) -> None:
        if self.do is not None:
            do, self.do = self.do, None
            do()


def aged(faults: tuple[Fault, ...] = (), removed: int = 3) -> tuple[DeltaLog, Meanwhile]:
    """Creates a table with one file, files that were removed long ago, and a file that was never committed."""
    clock = Meanwhile()
    memory = MemoryStore(clock)
    store = FaultyStore(memory, clock=clock)
    log = DeltaLog(new_log(store).store, "shop.orders", clock)
    names = [f"old{number}" for number in range(removed)]
    memory.make_folder("left/over")
    for name in ("kept", *names, "left/over/part-0"):
        memory.put(name, b"data")
    put(log, 1, CommitInfo(operation="WRITE"), add("kept"), *map(add, names))
    put(log, 2, CommitInfo(operation="DELETE"), *(RemoveFile(name, clock.now_ms()) for name in names))
    clock.at_ms += 200 * HOUR
    memory.put("young", b"data")
    store.faults.extend(faults)
    return log, clock


def files(log: DeltaLog) -> set[str]:
    return {status.path for status in log.store.list_from("")}


def infos(log: DeltaLog) -> list[CommitInfo]:
    """Returns the commitInfo of the commits after the table was set up."""
    return [action for commit in log.commits(3) for action in commit.actions if isinstance(action, CommitInfo)]


def run(log: DeltaLog, retention: Retention = WEEK, **options: bool) -> Vacuumed:
    return vacuum(log, retention, WriteSettings(), **options)


def test_unneeded_files_are_deleted_and_the_history_reports_it() -> None:
    log, _ = aged()
    vacuumed = run(log, Retention())
    assert files(log) == {"kept", "young"}
    assert log.store.list_folders("") == ["_delta_log"]
    start, end = infos(log)
    assert (start.operation, end.operation) == ("VACUUM START", "VACUUM END")
    assert dict(start.operation_parameters) == {"retentionCheckEnabled": True, "defaultRetentionMillis": 168 * HOUR}
    assert dict(start.operation_metrics or {}) == {"numFilesToDelete": "4", "sizeOfDataToDelete": "16"}
    assert dict(end.operation_parameters) == {"status": "COMPLETED"}
    assert dict(end.operation_metrics or {}) == {"numDeletedFiles": "4", "numVacuumedDirectories": "3"}
    assert (vacuumed.outcome is not None and vacuumed.outcome.version, vacuumed.folders_deleted) == (4, 2)
    assert paths(reopened(log)) == {"kept"}


def test_a_dry_run_deletes_and_commits_nothing() -> None:
    log, _ = aged()
    before = files(log)
    vacuumed = run(log, dry_run=True)
    assert {file.path for file in vacuumed.garbage.files} == {"old0", "old1", "old2", "left/over/part-0"}
    assert (files(log), infos(log), log.store.status(LAST_VACUUM_INFO)) == (before, [], None)


def test_lite_deletes_only_files_that_the_log_names_and_continues_after_a_full_vacuum() -> None:
    log, clock = aged()
    run(log, lite=True)
    assert files(log) == {"kept", "young"}
    assert log.store.status("left/over/part-0") is not None
    run(log)
    put(log, 7, CommitInfo(operation="DELETE"), RemoveFile("kept", clock.now_ms()))
    clock.at_ms += 200 * HOUR
    log.store.put("never committed", b"data")
    vacuumed = run(log, lite=True)
    assert [file.path for file in vacuumed.garbage.files] == ["kept"]


@pytest.mark.parametrize("hours", [0, 1, 167.9, -1])
def test_a_retention_shorter_than_the_tables_is_refused(hours: float) -> None:
    log, _ = aged()
    before = files(log)
    with pytest.raises(RetentionTooShortError) as refused:
        run(log, Retention(int(hours * HOUR)))
    assert (files(log), infos(log)) == (before, [])
    assert refused.value.table == "shop.orders"


def test_a_shorter_retention_is_possible_without_the_check_or_if_the_table_allows_it() -> None:
    log, _ = aged()
    run(log, Retention(0, is_checked=False))
    assert files(log) == {"kept"}
    log, _ = aged()
    short = {"delta.deletedFileRetentionDuration": "interval 1 hour"}
    put(log, 3, CommitInfo(operation="SET TBLPROPERTIES"), replace(METADATA, configuration=short))
    run(log, Retention(HOUR))
    assert files(log) == {"kept", "young"}


def test_a_table_that_may_not_be_written_is_not_vacuumed() -> None:
    log, _ = aged()
    put(log, 3, CommitInfo(operation="UPGRADE"), Protocol(1, 7, None, ("aFeatureToCome",)))
    with pytest.raises(UnsupportedFeatureError, match="aFeatureToCome"):
        run(log, dry_run=True)


@pytest.mark.parametrize("kind", [FaultKind.FAIL_BEFORE, FaultKind.FAIL_AFTER])
def test_a_file_that_cannot_be_deleted_does_not_save_other_files_and_the_history_reports_the_failure(
    kind: FaultKind,
) -> None:
    log, _ = aged((Fault("delete", kind, "old1", times=1),))
    with pytest.raises(StorageError, match="1 of 4 files could not be deleted"):
        run(log)
    assert files(log) - {"old1"} == {"kept", "young"}
    assert dict(infos(log)[-1].operation_parameters) == {"status": "FAILED"}
    assert paths(reopened(log)) == {"kept"}
    run(log)
    assert files(log) == {"kept", "young"}


@pytest.mark.parametrize("lite", [False, True])
def test_on_a_full_disk_files_are_deleted_until_there_is_space_for_the_first_commit(lite: bool) -> None:
    log, _ = aged((Fault("put_if_absent", FaultKind.FULL, times=3),))
    vacuumed = run(log, lite=lite)
    assert {"kept", "young"} == files(log)
    assert [info.operation for info in infos(log)] == ["VACUUM START", "VACUUM END"]
    assert len(vacuumed.garbage.files) == (3 if lite else 4)


def test_on_a_full_disk_a_file_that_a_concurrent_restore_needs_is_kept() -> None:
    log, _ = aged((Fault("put_if_absent", FaultKind.FULL, skip=1, times=3),))
    restored = [add(f"old{number}") for number in range(3)]

    def restore(what: str, done: int, total: int | None = None) -> None:
        if restored:
            put(reopened(log), 3, CommitInfo(operation="RESTORE"), *restored)
            restored.clear()

    vacuum(log, WEEK, WriteSettings(progress=restore))
    assert files(log) == {"kept", "young", "old0", "old1", "old2"}


def test_if_deleting_all_files_frees_no_space_the_table_is_unchanged_and_the_disk_is_named() -> None:
    log, _ = aged((Fault("put*", FaultKind.FULL),))
    with pytest.raises(NoSpaceError, match="drop a table, or free space in another way"):
        run(log)
    assert paths(reopened(log)) == {"kept"}


@pytest.mark.parametrize("operation", ["list_from", "list_folders", "put_if_absent", "read", "delete_empty_folder"])
def test_after_an_interruption_at_any_step_the_table_opens_and_the_next_vacuum_finishes(operation: str) -> None:
    for times in range(1, 8):
        log, _ = aged()
        store = log.store
        assert isinstance(store, FaultyStore)
        passed = Fault(operation, FaultKind.DELAY, times=times)
        store.faults.extend([passed, Fault(operation, FaultKind.FAIL_BEFORE, times=1)])
        try:
            run(log)
        except StorageError:
            assert "kept" in files(log)
        store.faults.clear()
        assert paths(reopened(log)) == {"kept"}
        run(reopened(log))
        assert files(log) == {"kept", "young"}


def test_a_file_that_is_added_again_before_the_deletion_starts_is_kept() -> None:
    log, clock = aged((Fault("list_folders", FaultKind.DELAY, "left/over", times=1),))
    clock.do = lambda: put(log, 3, CommitInfo(operation="RESTORE"), add("old1"))
    run(log)
    assert files(log) == {"kept", "young", "old1"}
    assert [info.operation for info in infos(log)] == ["RESTORE", "VACUUM START", "VACUUM END"]


def test_a_concurrent_change_of_metadata_does_not_stop_it() -> None:
    log, clock = aged((Fault("delete", FaultKind.DELAY, times=1),))
    noted = replace(METADATA, description="orders")
    clock.do = lambda: put(log, 4, CommitInfo(operation="SET TBLPROPERTIES"), noted)
    run(log)
    assert [info.operation for info in infos(log)] == ["VACUUM START", "SET TBLPROPERTIES", "VACUUM END"]


def test_the_last_version_records_the_unit_of_work() -> None:
    log, _ = aged()
    vacuum(log, WEEK, WriteSettings(txn=("nightly", 7)))
    assert log.snapshot().transaction_version("nightly") == 7
    (unit,) = (action for commit in log.commits(4) for action in commit.actions if isinstance(action, SetTransaction))
    assert unit.app_id == "nightly"
