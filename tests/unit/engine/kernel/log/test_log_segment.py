"""The checkpoint that a log is read from: regular checkpoints, `_last_checkpoint`, damage."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from dbt.adapters.silt.engine.kernel.errors import CorruptCheckpointError, MissingLogVersionError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.storage.store import Store
from dbt.adapters.silt.engine.kernel.table.paths import LAST_CHECKPOINT, checkpoint_path, checksum_path, commit_path
from tests.faulty_store import Fault, FaultKind, FaultyStore
from tests.memory_store import MemoryStore
from tests.unit.engine.kernel.log_builder import add, checkpointed, log_of, new_log, paths, put, reopened


def test_every_tenth_commit_writes_a_checkpoint_and_every_commit_a_checksum() -> None:
    log = log_of(0)
    for version in range(1, 21):
        put(log, version, add(f"f{version}"))
        log.after_commit(version)
    written = [version for version in range(21) if log.store.status(checkpoint_path(version))]
    assert written == [10, 20]
    assert all(log.store.status(checksum_path(version)) for version in range(1, 21))


def test_the_checkpoint_interval_is_a_table_property() -> None:
    log = new_log(configuration={"delta.checkpointInterval": "3"})
    for version in range(1, 8):
        put(log, version, add(f"f{version}"))
        log.after_commit(version)
    assert [version for version in range(8) if log.store.status(checkpoint_path(version))] == [3, 6]


def test_a_due_checkpoint_is_written_even_if_other_writers_have_committed_since() -> None:
    log = log_of(12)
    log.after_commit(10)
    assert log.store.status(checkpoint_path(10)) is not None
    for version in range(10):
        log.store.delete(commit_path(version))
    assert reopened(log).snapshot().num_files == 12


def test_a_failure_after_the_commit_is_logged_and_not_raised(caplog: pytest.LogCaptureFixture) -> None:
    log = log_of(10, FaultyStore(MemoryStore(), [Fault("put", FaultKind.FAIL_BEFORE)]))
    with caplog.at_level(logging.WARNING):
        log.after_commit(10)
    assert "shop.orders@v10" in caplog.text
    assert log.snapshot().version == 10


HINTS: dict[str, Callable[[Store], None]] = {
    "absent": lambda store: store.delete(LAST_CHECKPOINT),
    "no JSON": lambda store: store.put(LAST_CHECKPOINT, b'{"vers'),
    "no version": lambda store: store.put(LAST_CHECKPOINT, b"[]"),
    "a version of text": lambda store: store.put(LAST_CHECKPOINT, b'{"version":"x"}'),
    "backwards": lambda store: store.put(LAST_CHECKPOINT, b'{"version":10,"size":1}'),
    "to a version without checkpoint": lambda store: store.put(LAST_CHECKPOINT, b'{"version":15,"size":1}'),
    "beyond the log": lambda store: store.put(LAST_CHECKPOINT, b'{"version":99,"size":1}'),
    "binary": lambda store: store.put(LAST_CHECKPOINT, b"\xff\x00"),
}


@pytest.mark.parametrize("hint", sorted(HINTS))
def test_the_newest_version_is_found_whatever_last_checkpoint_contains(hint: str) -> None:
    log = checkpointed(23)
    HINTS[hint](log.store)
    assert paths(reopened(log)) == {f"f{n}" for n in range(1, 24)}


def test_an_unreadable_last_checkpoint_is_ignored() -> None:
    log = checkpointed(13)
    store = FaultyStore(log.store, [Fault("read", FaultKind.FAIL_BEFORE, path=LAST_CHECKPOINT)])
    assert DeltaLog(store, "t").snapshot().num_files == 13


def cut(store: Store, version: int) -> None:
    data = store.read(checkpoint_path(version))
    store.put(checkpoint_path(version), data[: len(data) // 2])


@pytest.mark.parametrize("damage", ["cut", "empty", "missing"])
def test_a_damaged_checkpoint_is_replaced_by_an_older_checkpoint_and_finally_by_the_first_commit(damage: str) -> None:
    log = checkpointed(23)
    for version in (20, 10):
        if damage == "missing":
            log.store.delete(checkpoint_path(version))
        elif damage == "empty":
            log.store.put(checkpoint_path(version), b"")
        else:
            cut(log.store, version)
        assert paths(reopened(log)) == {f"f{n}" for n in range(1, 24)}


def test_an_older_checkpoint_makes_a_table_without_its_first_commits_readable() -> None:
    log = checkpointed(23)
    for version in range(10):
        log.store.delete(commit_path(version))
    cut(log.store, 20)
    assert reopened(log).snapshot().num_files == 23


def test_a_damaged_checkpoint_without_a_replacement_is_an_error_that_names_it() -> None:
    log = checkpointed(13)
    cut(log.store, 10)
    log.store.delete(commit_path(3))
    with pytest.raises(CorruptCheckpointError, match=f"{10:020d}.checkpoint.parquet") as found:
        reopened(log).snapshot()
    assert "Restore the checkpoint" in str(found.value)


def test_a_missing_checkpoint_without_a_replacement_is_a_gap() -> None:
    log = checkpointed(13)
    log.store.delete(checkpoint_path(10))
    log.store.delete(commit_path(3))
    with pytest.raises(MissingLogVersionError, match=f"{3:020d}.json"):
        reopened(log).snapshot()


def test_a_table_may_consist_of_a_checkpoint_alone() -> None:
    log = checkpointed(10)
    for version in range(11):
        log.store.delete(commit_path(version))
    alone = reopened(log)
    assert alone.exists()
    assert alone.snapshot().num_files == 10
    put(alone, 11, add("more"))
    assert alone.snapshot().num_files == 11
