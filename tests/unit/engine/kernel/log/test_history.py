"""The times of commits, and the version at a time."""

from __future__ import annotations

import bisect
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbt.adapters.silt.engine.kernel.errors import MissingLogVersionError, VersionNotFoundError
from dbt.adapters.silt.engine.kernel.log.history import file_timestamps, read_heads
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.kernel.storage.store import FileStatus, Store
from dbt.adapters.silt.engine.kernel.table.actions import CommitInfo, Protocol
from dbt.adapters.silt.engine.kernel.table.paths import commit_path
from tests.examples import examples
from tests.faulty_store import FaultyStore
from tests.fixed_clock import FixedClock
from tests.memory_store import MemoryStore
from tests.unit.engine.kernel.log_builder import PROTOCOL, add, new_log, put, reopened, stated_at

NOON = 1_700_000_000_000


class ReadsCounted(FaultyStore):
    """Records the paths of all reads."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.reads: list[str] = []

    def around(self, operation: str, path: str, run: Callable[[], Any]) -> Any:
        if operation in ("read", "open_input"):
            self.reads.append(path)
        return super().around(operation, path, run)


def log_at(folder: Path, *times: int) -> DeltaLog:
    """Returns a log whose version n was committed at the n-th time."""
    log = new_log(LocalStore(folder))
    for version in range(1, len(times)):
        put(log, version, CommitInfo(operation="WRITE"), add(f"f{version}"))
    for version, time in enumerate(times):
        os.utime(folder / commit_path(version), ns=(time * 1_000_000, time * 1_000_000))
    return reopened(log)


def test_the_version_at_a_time_is_the_newest_at_or_before_it(tmp_path: Path) -> None:
    log = log_at(tmp_path, NOON, NOON + 1_000, NOON + 2_000)
    assert log.version_at(NOON) == 0
    assert log.version_at(NOON + 999) == 0
    assert log.version_at(NOON + 1_000) == 1
    assert log.version_at(NOON + 2_000) == 2
    message = r"before 2023-11-14 22:13:19\.999\+00:00; version 0 was committed at 2023"
    with pytest.raises(VersionNotFoundError, match=message):
        log.version_at(NOON - 1)


def test_a_time_after_the_newest_commit_is_an_error_that_names_it_unless_the_newest_is_accepted(tmp_path: Path) -> None:
    log = log_at(tmp_path, NOON, NOON + 1_000)
    message = r"after the newest version 1, committed at 2023-11-14 22:13:21\.000"
    with pytest.raises(VersionNotFoundError, match=message):
        log.version_at(NOON + 1_001)
    assert log.version_at(NOON + 1_001, or_newest=True) == 1


def test_commit_times_increase_with_versions_even_if_clocks_did_not(tmp_path: Path) -> None:
    log = log_at(tmp_path, NOON, NOON + 5_000, NOON + 3_000, NOON + 3_000, NOON + 9_000)
    assert [commit.timestamp_ms - NOON for commit in log.commits()] == [0, 5_000, 5_001, 5_002, 9_000]
    assert [log.version_at(NOON + delay) for delay in (4_999, 5_000, 5_001, 8_999)] == [0, 1, 2, 3]
    assert [commit.timestamp_ms - NOON for commit in log.commits(2, 3)] == [5_001, 5_002]


@given(st.lists(st.integers(0, 50), min_size=1, max_size=12))
def test_adjusted_times_are_the_smallest_increasing_times(modified: list[int]) -> None:
    adjusted = list(file_timestamps({v: FileStatus("", 0, time) for v, time in enumerate(modified)}).values())
    for version, (time, own) in enumerate(zip(adjusted, modified, strict=True)):
        assert time == (own if version == 0 else max(own, adjusted[version - 1] + 1))


def test_commits_are_listed_oldest_first_within_the_requested_range(tmp_path: Path) -> None:
    log = log_at(tmp_path, NOON, NOON + 1, NOON + 2, NOON + 3)
    assert [commit.version for commit in log.commits()] == [0, 1, 2, 3]
    assert [commit.version for commit in log.commits(1, 2)] == [1, 2]
    assert [commit.version for commit in log.commits(2)] == [2, 3]
    assert [commit.version for commit in log.commits(4)] == []
    (last,) = log.commits(3, 99)
    assert last.actions[0] == CommitInfo(operation="WRITE") and last.actions[1] == add("f3")


def test_a_snapshots_time_is_its_commits_time(tmp_path: Path) -> None:
    log = log_at(tmp_path, NOON, NOON + 1_000)
    assert log.snapshot().timestamp == NOON + 1_000
    assert log.snapshot_at(0).timestamp == NOON


def stated(folder: Path, *times: int | None) -> DeltaLog:
    """Returns a log whose version n states the n-th time; its file was copied later than all of them."""
    log = new_log(LocalStore(folder))
    for version, time in enumerate(times[1:], 1):
        put(log, version, CommitInfo(timestamp=time, operation="WRITE"), add(f"f{version}"))
    stated_at(folder / commit_path(0), times[0] or 0)
    for version in range(len(times)):
        os.utime(folder / commit_path(version), ns=(2 * NOON * 1_000_000, 2 * NOON * 1_000_000))
    return reopened(log)


def test_a_copied_table_keeps_the_times_of_its_commits(tmp_path: Path) -> None:
    log = stated(tmp_path, NOON, NOON + 1_000, NOON + 90_000_000)
    times = [NOON, NOON + 1_000, NOON + 90_000_000]
    assert [commit.timestamp_ms for commit in log.commits()] == times
    assert [head.timestamp_ms for head in read_heads(log.store, "t")] == times
    assert log.committed_at(log.snapshot()) == NOON + 90_000_000
    assert log.committed_at(log.snapshot_at(1)) == NOON + 1_000
    assert [log.version_at(NOON + delay) for delay in (0, 999, 1_000, 89_999_999, 90_000_000)] == [0, 0, 1, 1, 2]
    assert log.version_from(NOON + 1) == 1
    with pytest.raises(VersionNotFoundError, match="before"):
        log.version_at(NOON - 1)
    with pytest.raises(VersionNotFoundError, match="after the newest version 2"):
        log.version_at(NOON + 90_000_001)


def test_a_commit_without_a_stated_time_has_its_files_time(tmp_path: Path) -> None:
    log = stated(tmp_path, NOON, NOON + 1_000, None, 0)
    assert [commit.timestamp_ms for commit in log.commits()] == [NOON, NOON + 1_000, 2 * NOON + 2, 2 * NOON + 3]
    assert log.committed_at(log.snapshot()) == log.snapshot().timestamp


@settings(max_examples=examples(30))
@given(delays=st.lists(st.integers(0, 20_000), min_size=1, max_size=12), data=st.data())
def test_the_version_at_a_time_agrees_with_the_history(delays: list[int], data: st.DataObject) -> None:
    """Writers' clocks may differ by up to an hour; some commits are hours apart."""
    skews = data.draw(st.lists(st.integers(-1_800_000, 1_800_000), min_size=len(delays), max_size=len(delays)))
    times = [NOON + sum(delays[: n + 1]) * 1_000 + skew for n, skew in enumerate(skews)]
    with tempfile.TemporaryDirectory() as folder:
        log = stated(Path(folder), *times)
        shown = [commit.timestamp_ms for commit in log.commits()]
        asked = data.draw(st.sampled_from([each + nearby for each in shown for nearby in (-1, 0, 1)]))
        expected = bisect.bisect_right(shown, asked) - 1
        if expected < 0:
            with pytest.raises(VersionNotFoundError):
                log.version_at(asked)
        else:
            assert log.version_at(asked, or_newest=True) == expected


def busy(seconds: Sequence[float], store: Store) -> DeltaLog:
    """Returns a log whose version n was committed so many seconds after noon."""
    log = new_log(store)
    for version, delay in enumerate(seconds, 1):
        put(log, version, CommitInfo(timestamp=NOON + int(delay * 1_000)), add(f"f{version}"))
    later = DeltaLog(store, log.name, FixedClock(NOON + 10**10))
    later.snapshot()
    return later


@pytest.mark.parametrize("asked", [0.5, 100, 1_234.5, 1_999, 2_000])
def test_a_time_lookup_reads_few_commits_of_a_table_with_thousands_of_commits_an_hour(asked: float) -> None:
    store = ReadsCounted(MemoryStore())
    log = busy(range(1, 2_001), store)
    store.reads.clear()
    assert log.version_at(NOON + int(asked * 1_000), or_newest=True) == int(asked)
    assert len(store.reads) < 100


def test_a_time_far_from_any_commit_reads_little_more_than_a_binary_search() -> None:
    store = ReadsCounted(MemoryStore())
    log = busy([version * 7_200.0 for version in range(500)], store)
    store.reads.clear()
    assert log.version_at(NOON + 250 * 7_200_000 + 5) == 251
    assert len(store.reads) < 35


@settings(max_examples=examples(20), deadline=None)
@given(order=st.permutations(range(40)), asked=st.integers(1, 140), start=st.integers(0, 60))
def test_clocks_that_differ_affect_the_version_at_a_time_as_they_affect_the_history(
    order: list[int], asked: int, start: int
) -> None:
    seconds = [*range(start), *(start + each for each in order), *range(start + 40, 140)]
    log = busy([each + 1.0 for each in seconds], MemoryStore())
    shown = [commit.timestamp_ms for commit in log.commits(1)]
    assert log.version_at(NOON + asked * 1_000) == bisect.bisect_right(shown, NOON + asked * 1_000)


IN_COMMIT = Protocol(1, 7, None, ("inCommitTimestamp",))


def test_in_commit_timestamps_take_precedence_over_file_times(tmp_path: Path) -> None:
    log = new_log(LocalStore(tmp_path), {"delta.enableInCommitTimestamps": "true"}, protocol=IN_COMMIT)
    for version in (1, 2):
        put(log, version, CommitInfo(in_commit_timestamp=NOON + version * 1_000), add(f"f{version}"))
        os.utime(tmp_path / commit_path(version), ns=(0, 0))
    log = reopened(log)
    assert [commit.timestamp_ms for commit in log.commits(1)] == [NOON + 1_000, NOON + 2_000]
    assert log.version_at(NOON + 1_999) == 1
    assert log.snapshot().timestamp == NOON + 2_000


def test_if_in_commit_timestamps_were_enabled_later_each_part_of_the_log_has_its_own_times(tmp_path: Path) -> None:
    enabled = {
        "delta.enableInCommitTimestamps": "true",
        "delta.inCommitTimestampEnablementVersion": "2",
        "delta.inCommitTimestampEnablementTimestamp": str(NOON),
    }
    log = new_log(LocalStore(tmp_path), enabled, protocol=IN_COMMIT)
    put(log, 1, add("f1"))
    put(log, 2, CommitInfo(in_commit_timestamp=NOON), add("f2"))
    put(log, 3, CommitInfo(in_commit_timestamp=NOON + 10), add("f3"))
    for version, seconds in ((0, -20), (1, -10), (2, 10**6), (3, 0)):
        time = (NOON // 1000 + seconds) * 10**9
        os.utime(tmp_path / commit_path(version), ns=(time, time))
    log = reopened(log)
    assert [log.version_at(NOON + delay) for delay in (-10_001, -10_000, -1, 0, 9, 10)] == [0, 1, 1, 2, 2, 3]
    assert PROTOCOL.writer_features is None


def test_the_newest_commits_are_read_as_far_as_they_are_needed() -> None:
    store = ReadsCounted(MemoryStore())
    log = busy(range(200), store)
    assert log.snapshot().version == 200
    store.reads.clear()
    commits = log.newest_commits()
    assert next(commits).version == 200
    assert len(store.reads) <= 1
    assert [commit.version for commit in commits] == list(range(199, -1, -1))


def test_the_newest_commits_end_where_the_log_was_cleaned_up_but_not_at_a_gap() -> None:
    store = MemoryStore()
    log = busy(range(20), store)
    assert log.snapshot().version == 20
    store.delete_all([commit_path(version) for version in range(5)])
    assert [commit.version for commit in log.newest_commits()] == list(range(20, 4, -1))
    store.delete(commit_path(8))
    with pytest.raises(MissingLogVersionError, match=r"0008\.json is missing"):
        list(log.newest_commits())
