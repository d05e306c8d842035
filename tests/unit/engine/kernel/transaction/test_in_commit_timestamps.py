"""Commits with in-commit timestamps: in a new table, after other commits, and from a later version on."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbt.adapters.silt.engine.kernel.errors import VersionNotFoundError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.kernel.table.actions import CommitInfo, Metadata, Protocol
from dbt.adapters.silt.engine.kernel.table.paths import LOG_FOLDER, checksum_path, commit_path
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit
from tests.examples import examples
from tests.fixed_clock import FixedClock
from tests.memory_store import MemoryStore
from tests.unit.engine.kernel.log_builder import METADATA, add, new_log, put, reopened

ENABLED = {"delta.enableInCommitTimestamps": "true"}
PROTOCOL = Protocol(1, 7, None, ("inCommitTimestamp",))
NOON = 1_700_000_000_000


def write(log: DeltaLog, name: str = "f", base: Snapshot | None = None, **changes: Any) -> int:
    log.store.put(name, b"data")
    base = base or log.snapshot()
    return commit(log, base, Changes(Operation("WRITE"), (add(name),), **changes), ReadSet(), CommitSettings()).version


def enable(log: DeltaLog, base: Snapshot | None = None, configuration: Mapping[str, str] = ENABLED) -> int:
    base = base or log.snapshot()
    metadata = replace(base.metadata, configuration={**base.metadata.configuration, **configuration})
    changes = Changes(Operation("SET TBLPROPERTIES"), metadata=metadata, protocol=PROTOCOL)
    return commit(log, base, changes, ReadSet(), CommitSettings()).version


def lines(log: DeltaLog, version: int) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.store.read(commit_path(version)).decode().splitlines()]


def time_of(log: DeltaLog, version: int) -> int:
    first = lines(log, version)[0]["commitInfo"]
    assert next(iter(first)) == "inCommitTimestamp"
    return int(first["inCommitTimestamp"])


def created(clock: FixedClock) -> DeltaLog:
    """Creates a table whose commits have in-commit timestamps from version 0 on."""
    log = DeltaLog(MemoryStore(clock), "t", clock)
    log.store.make_folder(LOG_FOLDER)
    metadata = replace(METADATA, configuration=ENABLED)
    commit(
        log, None, Changes(Operation("CREATE TABLE"), metadata=metadata, protocol=PROTOCOL), ReadSet(), CommitSettings()
    )
    return log


@given(st.lists(st.integers(-5_000, 5_000), min_size=1, max_size=8))
@settings(max_examples=examples(40), deadline=None)
def test_times_increase_however_the_clock_moves(moves: list[int]) -> None:
    clock = FixedClock(NOON)
    log = created(clock)
    earliest = [clock.at_ms]
    for number, move in enumerate(moves):
        clock.at_ms += move
        earliest.append(clock.at_ms)
        write(log, f"f{number}")
    times = [time_of(log, version) for version in range(len(moves) + 1)]
    assert all(first < second for first, second in itertools.pairwise(times))
    assert all(stated >= known for stated, known in zip(times[1:], earliest[1:], strict=True))
    assert [one.timestamp_ms for one in reopened(log).commits()] == times
    for version, time in enumerate(times):
        assert log.version_at(time) == version
    with pytest.raises(VersionNotFoundError):
        log.version_at(times[0] - 1)


def test_a_table_created_with_timestamps_records_no_enablement_version() -> None:
    log = created(FixedClock(NOON))
    assert log.snapshot().metadata.configuration == ENABLED
    assert log.snapshot().timestamp == time_of(log, 0)


def test_a_commit_has_a_later_timestamp_than_the_winners_before_it() -> None:
    clock = FixedClock(NOON)
    log = created(clock)
    base = log.snapshot()
    ahead = clock.at_ms + 60_000
    put(log, 1, CommitInfo(operation="WRITE", is_blind_append=True, in_commit_timestamp=ahead), add("theirs"))
    put(log, 2, CommitInfo(operation="WRITE", is_blind_append=True, in_commit_timestamp=ahead + 5), add("more"))
    assert write(log, base=base) == 3
    assert time_of(log, 3) == ahead + 6


def test_an_existing_table_records_the_first_version_with_timestamps(tmp_path: Path) -> None:
    log = new_log(LocalStore(tmp_path))
    assert isinstance(log.clock, FixedClock)
    write(log, "early")
    os.utime(tmp_path / commit_path(0), ns=(0, (NOON - 20_000) * 1_000_000))
    file_time = NOON + 10**9  # later than the clock
    os.utime(tmp_path / commit_path(1), ns=(0, file_time * 1_000_000))
    log = reopened(log)
    assert enable(log) == 2
    assert time_of(log, 2) == file_time + 1
    configuration = log.snapshot().metadata.configuration
    assert configuration == {
        **ENABLED,
        "delta.inCommitTimestampEnablementVersion": "2",
        "delta.inCommitTimestampEnablementTimestamp": str(file_time + 1),
    }
    assert write(log, "late") == 3
    assert time_of(log, 3) == file_time + 2
    stated = next(commit.info.timestamp for commit in log.commits(1, 1)) or 0
    asked = [NOON - 20_000, stated - 1, stated, file_time, file_time + 1, file_time + 2]
    assert [reopened(log).version_at(moment) for moment in asked] == [0, 0, 1, 1, 2, 3]
    assert log.version_at(file_time + 3, or_newest=True) == 3
    for outside in (NOON - 20_001, file_time + 3):
        with pytest.raises(VersionNotFoundError):
            log.version_at(outside)


def test_an_enablement_after_a_winner_records_its_final_version(tmp_path: Path) -> None:
    log = new_log(LocalStore(tmp_path))
    base = log.snapshot()
    put(log, 1, CommitInfo(operation="WRITE", is_blind_append=True), add("theirs"))
    file_time = NOON + 10**9
    os.utime(tmp_path / commit_path(1), ns=(0, file_time * 1_000_000))
    assert enable(log, base) == 2
    assert log.snapshot().metadata.configuration["delta.inCommitTimestampEnablementVersion"] == "2"
    stated = log.snapshot().metadata.configuration["delta.inCommitTimestampEnablementTimestamp"]
    assert int(stated) == time_of(log, 2) == file_time + 1


def test_a_commit_based_on_a_version_before_the_enablement_has_a_timestamp() -> None:
    log = new_log()
    base = log.snapshot()
    assert enable(log) == 1
    assert write(log, base=base) == 2
    assert time_of(log, 2) > time_of(log, 1)
    assert lines(log, 2)[0]["commitInfo"]["readVersion"] == 0


def test_replaced_metadata_keeps_the_enablement_version_and_reenabling_records_a_new_version() -> None:
    log = new_log()
    enable(log)
    told = dict(log.snapshot().metadata.configuration)

    def alter(configuration: Mapping[str, str]) -> Metadata:
        base = log.snapshot()
        metadata = replace(base.metadata, configuration=configuration)
        commit(log, base, Changes(Operation("REPLACE TABLE"), metadata=metadata), ReadSet(), CommitSettings())
        return log.snapshot().metadata

    assert alter(ENABLED).configuration == told
    assert alter({}).configuration == {}
    assert "inCommitTimestamp" not in lines(log, 3)[0]["commitInfo"]
    again = alter(ENABLED).configuration
    assert again["delta.inCommitTimestampEnablementVersion"] == "4"
    assert int(again["delta.inCommitTimestampEnablementTimestamp"]) == time_of(log, 4)


def test_the_checksum_contains_the_timestamp() -> None:
    log = created(FixedClock(NOON))
    write(log)
    assert json.loads(log.store.read(checksum_path(1)))["inCommitTimestampOpt"] == time_of(log, 1)
    plain = new_log()
    write(plain)
    assert "inCommitTimestampOpt" not in json.loads(plain.store.read(checksum_path(1)))
