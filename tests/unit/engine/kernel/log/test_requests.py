"""The number of requests that a log in an object store sends, in total and one after the other."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from benchmarks.scale.meter import Meter, metered
from benchmarks.scale.tables import commit_of_others, many_commits, new_file
from dbt.adapters.silt.engine.kernel.log.checksum import TRANSACTIONS
from dbt.adapters.silt.engine.kernel.log.cleanup import clean_up
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.storage.object_store import ObjectStore
from dbt.adapters.silt.engine.kernel.table.actions import SetTransaction
from dbt.adapters.silt.engine.kernel.table.paths import LOG_FOLDER, checksum_path, commit_path
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit
from tests.fixed_clock import FixedClock

_DAY_MS = 86_400_000


@pytest.fixture
def meter() -> Iterator[Meter]:
    with metered() as found:
        yield found


def append(log: DeltaLog, base: Snapshot, *units: SetTransaction) -> int:
    changes = Changes(Operation("WRITE"), (new_file(base.version),), transactions=units)
    return commit(log, base, changes, ReadSet(), CommitSettings()).version


def test_many_new_commits_are_found_with_one_listing_and_read_concurrently(meter: Meter) -> None:
    store = many_commits(4, 0)
    log = DeltaLog(store, "t")
    log.snapshot()
    commit_of_others(store, 4, 100)
    meter.reset()
    assert log.snapshot().num_files == 101
    cost = meter.cost()
    assert cost.kinds["list"] == 1 and cost.requests <= 105
    assert cost.depth < 20


def test_the_newest_commit_is_read_without_a_listing(meter: Meter) -> None:
    log = DeltaLog(many_commits(40, 0), "t")
    newest = log.snapshot().version
    meter.reset()
    assert next(log.newest_commits()).version == newest
    # The requests: the version after the newest, which is missing; the newest commit.
    assert meter.cost().kinds == {"get": 2}, meter.requests


def test_commits_that_won_the_race_are_read_once(meter: Meter) -> None:
    store = many_commits(4, 0)
    log = DeltaLog(store, "t")
    base = log.snapshot()
    commit_of_others(store, 4, 3)
    meter.reset()
    assert append(log, base) == 7
    # The requests: each of the three commits; the missing version after them; the own commit, for its time.
    assert meter.cost().kinds["get"] == 3 + 1 + 1, meter.requests
    assert log.snapshot().num_files == 5
    assert DeltaLog(store, "t").snapshot().num_files == 5


def test_commits_that_won_the_race_are_in_the_next_snapshot_after_a_conflict_too(meter: Meter) -> None:
    store = many_commits(4, 0)
    log = DeltaLog(store, "t")
    base = log.snapshot()
    commit_of_others(store, 4, 7)
    found = [each.version for each in log.read_ahead(4)]
    assert found == list(range(4, 11))
    commit_of_others(store, 11, 1)
    assert (log.snapshot().version, log.snapshot().num_files, base.num_files) == (11, 9, 1)


def test_a_clean_up_of_a_long_log_without_expired_commits_is_one_request(meter: Meter) -> None:
    store = many_commits(3_005, 0)
    log = DeltaLog(store, "t")
    snapshot = log.snapshot()
    meter.reset()
    assert clean_up(store, snapshot, log.clock.now_ms()) == 0
    assert meter.cost().kinds == {"list": 1}


def test_expired_files_are_deleted_a_thousand_at_a_time_and_commits_in_their_order(meter: Meter) -> None:
    store = many_commits(3_005, 0)
    log = DeltaLog(store, "t")
    snapshot = log.snapshot()
    meter.reset()
    deleted = clean_up(store, snapshot, log.clock.now_ms() + 40 * _DAY_MS)
    assert deleted == 3_000 + 2_999 + 300  # commits, checksums, checkpoints
    gone = [request.key[-len(commit_path(0)) :] for request in meter.requests if request.kind == "delete"]
    assert gone[4:] == [commit_path(version) for version in range(3_000)]
    assert not any(key.endswith(".json") for key in gone[:4])
    assert DeltaLog(store, "t").snapshot().version == 3_004
    assert store.list_from(LOG_FOLDER)[0].name == f"{3_000:020}.checkpoint.parquet"


def test_a_table_is_opened_without_listing_its_sidecars(meter: Meter) -> None:
    store = many_commits(25, 0, sidecars=5_000)
    meter.reset()
    assert DeltaLog(store, "t").snapshot().version == 24
    assert meter.cost().kinds["list"] <= 2


def test_files_next_to_a_large_folder_are_all_listed() -> None:
    store = ObjectStore("memory:///")
    for name in ("f/a", "f/b", "f/z", "f/x0"):
        store.put(name, b"")
    for number in range(2_500):
        store.put(f"f/x/{number:05}", b"")
    assert [file.name for file in store.list_from("f", "b")] == ["b", "x0", "z"]
    assert [file.name for file in store.files_in_order("f")] == ["a", "b", "x0", "z"]
    with metered() as counted:
        assert len(store.list_from("f", "a")) == 4
    assert counted.cost().kinds["list"] <= 3


def test_a_missing_file_is_no_error_in_a_bulk_deletion() -> None:
    store = ObjectStore("memory:///")
    for name in ("a", "b", "c"):
        store.put(name, b"")
    store.delete_all(["a", "not there", "c"])
    assert [file.name for file in store.list_from("")] == ["b"]


@pytest.mark.parametrize("units", [TRANSACTIONS - 1, TRANSACTIONS])
def test_the_checksums_size_does_not_grow_with_the_units_of_work_forever(units: int) -> None:
    log = DeltaLog(many_commits(1, units), "t", FixedClock())
    version = append(log, log.snapshot(), SetTransaction("one more", 1))
    found = json.loads(log.store.read(checksum_path(version)))
    assert ("setTransactions" in found) == (units < TRANSACTIONS)
    assert DeltaLog(log.store, "t").snapshot().doubt is None
