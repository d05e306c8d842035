"""Log messages about unexpected events: after a commit, with clocks, in damaged files."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from dbt.adapters.silt.engine.kernel.errors import (
    CorruptCheckpointError,
    CorruptDeletionVectorError,
    DataFileChangedError,
    NotWrittenError,
)
from dbt.adapters.silt.engine.kernel.files import deletion_vectors
from dbt.adapters.silt.engine.kernel.log import commit_search
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.kernel.table.actions import CommitInfo, RemoveFile, SetTransaction
from dbt.adapters.silt.engine.kernel.table.paths import checkpoint_path, checksum_path, commit_path
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit
from tests.unit.cli.house import House, rows
from tests.unit.engine.kernel.log_builder import add, new_log, put, reopened, stated_at


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path / "house")


@pytest.fixture
def orders(house: House) -> DeltaLog:
    """A table of twelve versions, with a checkpoint of version 10."""
    log = house.create("main.orders", rows(0, 5))
    for number in range(1, 12):
        house.append(log, rows(number * 5, 5))
    return log


def path_of(log: DeltaLog, name: str) -> Path:
    return Path(log.store.root) / name


def append(log: DeltaLog, number: int = 1) -> int:
    changes = Changes(Operation("WRITE"), transactions=(SetTransaction("other", number),))
    return commit(log, log.snapshot(), changes, ReadSet(), CommitSettings()).version


def test_a_commit_whose_checksum_cannot_be_written_succeeds_and_logs_it(
    orders: DeltaLog, caplog: pytest.LogCaptureFixture
) -> None:
    path_of(orders, checksum_path(12)).mkdir()
    with caplog.at_level(logging.WARNING):
        assert append(orders) == 12
    (message,) = caplog.messages
    assert message.startswith("silt.main.orders@v12 is committed and need not be run again, but its version checksum")
    assert "run it again" not in message.partition("but")[2] and "\n" not in message
    assert not any(record.exc_info for record in caplog.records)


def test_a_commit_whose_checkpoint_cannot_be_written_succeeds_and_logs_it(
    orders: DeltaLog, caplog: pytest.LogCaptureFixture
) -> None:
    path_of(orders, checkpoint_path(20)).mkdir()
    for number in range(12, 20):
        append(orders, number)
    with caplog.at_level(logging.WARNING):
        assert append(orders, 20) == 20
    (message,) = caplog.messages
    assert "@v20 is committed and need not be run again, but its checkpoint could not be written" in message
    assert path_of(orders, checksum_path(20)).is_file()
    assert append(orders, 21) == 21


def test_a_folder_with_the_name_of_the_next_commit_is_reported_at_once(orders: DeltaLog) -> None:
    path_of(orders, commit_path(12)).mkdir()
    with pytest.raises(NotWrittenError, match="Move it away") as raised:
        append(orders)
    assert "00000000000000000012.json" in str(raised.value)


def test_an_older_checkpoint_is_logged_only_if_it_is_read(orders: DeltaLog, caplog: pytest.LogCaptureFixture) -> None:
    path = path_of(orders, checkpoint_path(10))
    path.write_bytes(path.read_bytes()[:100])
    with caplog.at_level(logging.WARNING):
        assert reopened(orders).snapshot().version == 11
    assert "the commits is read instead" not in caplog.text and "the commits are read instead" in caplog.text
    caplog.clear()
    for version in range(10):
        path_of(orders, commit_path(version)).unlink()
    with caplog.at_level(logging.WARNING), pytest.raises(CorruptCheckpointError):
        reopened(orders).snapshot()
    assert "instead" not in caplog.text


def test_a_request_for_a_time_names_versions_in_the_future(orders: DeltaLog, caplog: pytest.LogCaptureFixture) -> None:
    now_s = orders.clock.now_ms() // 1000
    for version in range(12):
        at = now_s - 1000 + version if version < 8 else now_s + 86_400
        stated_at(path_of(orders, commit_path(version)), at * 1000)
    fresh = reopened(orders)
    future = fresh.in_future()
    assert future is not None and (future.first, future.newest) == (8, 11)
    with caplog.at_level(logging.WARNING):
        assert fresh.version_at(now_s * 1000) == 7
    assert "versions 8 to 11 have times in the future" in caplog.text
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        assert fresh.version_at((now_s - 998) * 1000) == 2
    assert caplog.text == ""


def test_a_clock_that_was_set_back_left_versions_in_the_future(house: House, tmp_path: Path) -> None:
    """A copy has files of today, and its commits still state their original times."""
    log = house.create("main.orders", rows(0, 1))
    for number in range(1, 40):
        house.append(log, rows(number, 1))
    now_ms = log.clock.now_ms()
    for version in range(40):
        leapt = 15 <= version < 30
        stated_at(path_of(log, commit_path(version)), now_ms + 86_400_000 if leapt else now_ms - 50_000 + version)
        os.utime(path_of(log, commit_path(version)))
    future = reopened(log).in_future()
    assert future is not None and (future.first, future.newest) == (15, 39)


def test_current_versions_are_not_in_the_future(house: House) -> None:
    for properties in ({}, {"delta.enableInCommitTimestamps": "true"}):
        log = house.create(f"main.t{len(properties)}", rows(0, 1), properties)
        house.append(log, rows(1, 1))
        assert log.in_future() is None


def test_an_error_about_a_file_names_the_version_that_added_it_and_the_remedy(orders: DeltaLog) -> None:
    snapshot = orders.snapshot()
    path = snapshot.files["path"].to_pylist()[4]
    (changed,) = [version for version in range(12) if path.encode() in orders.store.read(commit_path(version))]
    error = DataFileChangedError("x", table=orders.name, version=11, details={"path": f"/somewhere/{path}"})
    said = str(commit_search.with_origin(orders, snapshot, error))
    assert f"Version {changed} (WRITE) added the file" in said
    assert f"`restore table silt.main.orders to version as of {changed - 1}`" in said
    old = orders.snapshot_at(10)
    assert commit_search.with_origin(orders, old, error) is error
    unknown = DataFileChangedError("x", details={"path": "/nowhere.parquet"})
    assert commit_search.with_origin(orders, snapshot, unknown) is unknown


def test_an_error_about_a_truncated_deletion_vector_states_where_its_file_ends(house: House) -> None:
    log = house.create("main.orders", rows(0, 10), {"delta.enableDeletionVectors": "true"})
    house.mark(log, [2, 7])
    (vector,) = Path(log.store.root).glob("deletion_vector_*.bin")
    size = vector.stat().st_size
    vector.write_bytes(vector.read_bytes()[:-3])
    with pytest.raises(
        CorruptDeletionVectorError, match=f"its file ends after {size - 3} bytes, but the vector ends at byte {size}"
    ):
        deletion_vectors.read_all(LocalStore(log.store.root), log.snapshot().files, log.name)


def test_an_error_about_a_file_that_a_later_version_removed_names_no_way_back() -> None:
    log = new_log()
    put(log, 1, CommitInfo(operation="WRITE"), add("f1.parquet"))
    put(log, 2, CommitInfo(operation="DELETE"), RemoveFile("f1.parquet", deletion_timestamp=1))
    error = DataFileChangedError("x", details={"path": "/somewhere/f1.parquet"})
    assert commit_search.with_origin(log, log.snapshot(), error) is error
