"""A commit records more than its changes: times of transaction identifiers, read versions, tags and row ids."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, DomainMetadata, Metadata, Protocol, SetTransaction
from dbt.adapters.silt.engine.kernel.table.paths import commit_path
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet, as_strings, with_enablement
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit
from dbt.adapters.silt.engine.kernel.transaction.row_tracking import (
    ROW_TRACKING_DOMAIN,
    enabled,
    high_water_mark,
    keeps_row_ids,
    materialized_columns,
    tracks_rows,
    with_row_ids,
)
from tests.faulty_store import Fault, FaultKind, FaultyStore
from tests.memory_store import MemoryStore
from tests.unit.engine.kernel.log_builder import METADATA, PROTOCOL, new_log

WRITE = Operation("WRITE")
TRACKED = Protocol(1, 7, None, ("rowTracking", "domainMetadata", "inCommitTimestamp"))
COLUMNS = {
    "delta.rowTracking.materializedRowIdColumnName": "i",
    "delta.rowTracking.materializedRowCommitVersionColumnName": "v",
}
ON = {"delta.enableRowTracking": "true"}


def recorded(log: DeltaLog, changes: Changes, **settings: Any) -> list[dict[str, Any]]:
    """Commits the changes and returns the lines of the commit."""
    version = commit(log, log.snapshot(), changes, ReadSet(), CommitSettings(**settings)).version
    return [json.loads(line) for line in log.store.read(commit_path(version)).decode().splitlines()]


def test_a_transaction_identifier_keeps_its_time_or_gets_the_time_of_the_commit() -> None:
    changes = Changes(
        WRITE,
        transactions=(SetTransaction("kept", 1, 7), SetTransaction("new", 1)),
        forgotten=(SetTransaction("forgotten", -1),),
    )
    times = {line["txn"]["appId"]: line["txn"]["lastUpdated"] for line in recorded(new_log(), changes)[1:]}
    assert times.pop("kept") == 7
    assert set(times) == {"new", "forgotten"} and all(time > 1_600_000_000_000 for time in times.values())


def test_a_commit_states_the_versions_that_it_has_read() -> None:
    (info,) = recorded(new_log(), Changes(WRITE), read_versions={"shop.customers": [3, 4]})
    assert list(info["commitInfo"]["readVersions"].values()) == [[3, 4]]
    (bare,) = recorded(new_log(), Changes(WRITE))
    assert "readVersions" not in bare["commitInfo"]


def test_a_commit_of_a_table_that_tracks_rows_keeps_the_tags_of_its_settings() -> None:
    log = new_log(protocol=TRACKED)
    (info,) = recorded(log, Changes(WRITE), commit_info={"tags": {"own": "1"}})
    assert info["commitInfo"]["tags"] == {"own": "1", "delta.rowTracking.preserved": "true"}


def test_files_of_other_tables_are_not_synced() -> None:
    fault = Fault("make_durable", FaultKind.FAIL_BEFORE, "*elsewhere*")
    log = new_log(FaultyStore(MemoryStore(), [fault]))
    assert recorded(log, Changes(WRITE, (AddFile("file:///elsewhere/a.parquet", {}, 10, 1),)))


def test_unknown_metrics_are_omitted() -> None:
    assert as_strings({"numFiles": 2, "numRows": None, "zero": 0}) == {"numFiles": "2", "zero": "0"}


class TestInCommitTimestamps:
    enabled = replace(METADATA, configuration={"delta.enableInCommitTimestamps": "true"})
    version, time = "delta.inCommitTimestampEnablementVersion", "delta.inCommitTimestampEnablementTimestamp"

    def followed(self, base: Metadata, new: Metadata) -> dict[str, str]:
        changes = with_enablement(base, Changes(WRITE, metadata=new), 7, 1_000)
        assert changes.metadata is not None
        return dict(changes.metadata.configuration)

    def test_the_first_version_with_a_timestamp_is_recorded(self) -> None:
        new = replace(self.enabled, configuration={**self.enabled.configuration, self.version: "1"})
        found = self.followed(METADATA, new)
        assert found == {**self.enabled.configuration, self.version: "7", self.time: "1000"}

    def test_only_the_record_of_the_first_version_is_copied_from_the_base(self) -> None:
        before = {**self.enabled.configuration, self.version: "3", self.time: "900", "note": "old"}
        found = self.followed(replace(METADATA, configuration=before), self.enabled)
        assert found == {**self.enabled.configuration, self.version: "3", self.time: "900"}

    def test_metadata_without_timestamps_and_commits_without_metadata_are_not_changed(self) -> None:
        assert self.followed(METADATA, METADATA) == {}
        changes = Changes(WRITE)
        assert with_enablement(self.enabled, changes, 7, 1_000) is changes
        first = Changes(WRITE, metadata=self.enabled)
        assert with_enablement(None, first, 0, 1_000) is first


class TestRowTracking:
    def test_a_protocol_and_metadata_of_the_commit_decide_whether_it_tracks_rows(self) -> None:
        plain, tracked = new_log(protocol=PROTOCOL).snapshot(), new_log(protocol=TRACKED).snapshot()
        suspended = replace(METADATA, configuration={"delta.rowTrackingSuspended": "true"})
        assert tracks_rows(plain, Changes(WRITE, protocol=TRACKED))
        assert tracks_rows(None, Changes(WRITE, protocol=TRACKED, metadata=METADATA))
        assert not tracks_rows(tracked, Changes(WRITE, metadata=suspended))
        assert not tracks_rows(None, Changes(WRITE, metadata=METADATA))
        assert not tracks_rows(None, Changes(WRITE, protocol=TRACKED))

    def test_rows_keep_their_ids_only_in_a_table_with_the_feature(self) -> None:
        assert not keeps_row_ids(None)
        assert not keeps_row_ids(new_log(configuration={**COLUMNS, **ON}, protocol=PROTOCOL).snapshot())
        assert keeps_row_ids(new_log(configuration={**COLUMNS, **ON}, protocol=TRACKED).snapshot())

    @pytest.mark.parametrize("missing", sorted(COLUMNS))
    def test_both_columns_of_ids_are_needed(self, missing: str) -> None:
        assert materialized_columns(replace(METADATA, configuration={**COLUMNS, **ON})) == ("i", "v")
        one = {key: value for key, value in COLUMNS.items() if key != missing}
        assert materialized_columns(replace(METADATA, configuration={**one, **ON})) is None
        assert materialized_columns(replace(METADATA, configuration=COLUMNS)) is None

    def test_the_high_water_mark_is_the_last_id_of_a_file_that_already_has_ids(self) -> None:
        brought = AddFile("a", {}, 10, 1, stats='{"numRecords":5}', base_row_id=10, default_row_commit_version=2)
        changes = with_row_ids(new_log(protocol=TRACKED).snapshot(), Changes(WRITE, (brought,)), 1)
        assert changes.adds == (brought,)
        assert high_water_mark({each.domain: each for each in changes.domains}) == 14

    def test_a_commit_without_new_ids_does_not_write_the_high_water_mark(self) -> None:
        base = new_log(protocol=TRACKED).snapshot()
        given = DomainMetadata(ROW_TRACKING_DOMAIN, '{"rowIdHighWaterMark":3}')
        other = DomainMetadata("other", "{}")
        assert with_row_ids(base, Changes(WRITE, domains=(given, other)), 1).domains == (other,)

    def test_tracking_that_is_enabled_already_allows_files_without_ids(self) -> None:
        metadata = replace(METADATA, configuration={**COLUMNS, **ON})
        assert enabled(metadata, [AddFile("a", {}, 1, 0)], iter("").__next__, "t") == metadata
