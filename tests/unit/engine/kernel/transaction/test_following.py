"""A transaction adopts a winner's changes that do not conflict with it, and describes conflicts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dbt.adapters.silt.engine.kernel.errors import (
    ConcurrentAppendError,
    ConcurrentDeleteReadError,
    MetadataChangedError,
)
from dbt.adapters.silt.engine.kernel.files.table_files import TableFiles
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.table import active_files
from dbt.adapters.silt.engine.kernel.table.actions import Action, AddFile, CommitInfo, DomainMetadata, Protocol
from dbt.adapters.silt.engine.kernel.table.expressions import Column, Comparison
from dbt.adapters.silt.engine.kernel.table.features import upgraded
from dbt.adapters.silt.engine.kernel.table.properties import IsolationLevel
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.competing_commits import PendingCommit, WinningCommit
from dbt.adapters.silt.engine.kernel.transaction.conflicts import check_conflicts
from tests.unit.engine.kernel.log_builder import METADATA

PROTOCOL = Protocol(3, 7, ("v2Checkpoint",), ("domainMetadata", "v2Checkpoint"))
READ = AddFile("read", {}, 10, 0)
KEPT, GONE = DomainMetadata("kept", "{}"), DomainMetadata("gone", "{}")
BASE = Snapshot(
    "t", 4, 0, METADATA, PROTOCOL, TableFiles(active_files.files_table([READ])), {}, {"kept": KEPT, "gone": GONE}
)


def pending(reads: ReadSet | None = None) -> PendingCommit:
    return PendingCommit(BASE, Changes(Operation("WRITE")), reads or ReadSet(), IsolationLevel.SERIALIZABLE)


def winner(*actions: Action) -> WinningCommit:
    return WinningCommit(5, (CommitInfo(operation="OPTIMIZE"), *actions))


def test_a_protocol_without_new_metadata_applies_to_the_transaction() -> None:
    protocol = upgraded(PROTOCOL, ["timestampNtz"])
    assert check_conflicts(winner(protocol), pending()).base.protocol == protocol


def test_metadata_without_a_new_protocol_applies_to_the_transaction() -> None:
    metadata = replace(METADATA, configuration={"delta.checkpointPolicy": "v2"})
    assert check_conflicts(winner(metadata), pending()).base.metadata == metadata


def test_a_domain_that_the_winner_removes_is_missing_for_the_transaction() -> None:
    followed = check_conflicts(winner(replace(GONE, removed=True), DomainMetadata("new", "{}")), pending())
    assert set(followed.base.domains) == {"kept", "new"}


def test_moved_rows_of_a_file_that_was_read_count_as_read_in_their_new_file() -> None:
    move = winner(READ.remove(1, data_change=False), AddFile("moved", {}, 10, 0, data_change=False))
    followed = check_conflicts(move, pending(ReadSet(paths=frozenset({"read"}))))
    assert followed.reads.paths == {"read", "moved"}
    with pytest.raises(ConcurrentDeleteReadError):
        check_conflicts(WinningCommit(6, (AddFile("moved", {}, 10, 0).remove(1),)), followed)


def test_only_files_that_received_moved_rows_count_as_read() -> None:
    ids = '{"numRecords":1,"minValues":{"id":100},"maxValues":{"id":100},"nullCount":{"id":0}}'
    move = winner(
        READ.remove(1, data_change=False),
        AddFile("moved", {}, 10, 0, data_change=False),
        AddFile("appended", {}, 10, 0, stats=ids),
    )
    reads = ReadSet((Comparison("<", Column.of("id"), 10),), frozenset({"read"}))
    assert check_conflicts(move, pending(reads)).reads.paths == {"read", "moved"}


def test_a_conflict_without_files_ends_with_the_winners_change() -> None:
    with pytest.raises(MetadataChangedError) as caught:
        check_conflicts(winner(replace(METADATA, description="new")), pending())
    assert caught.value.problem.endswith("properties or partitioning")


@pytest.mark.parametrize(("count", "text"), [(1, ": f0"), (3, ": f0, f1, f2"), (4, ": f0, f1, f2 and 1 more")])
def test_a_conflict_names_three_files_and_the_number_of_further_files(count: int, text: str) -> None:
    files = [AddFile(f"f{number}", {}, 10, 0) for number in range(count)]
    with pytest.raises(ConcurrentAppendError) as caught:
        check_conflicts(winner(*files), pending(ReadSet(whole_table=True)))
    assert caught.value.problem.endswith(text)


def test_a_conflict_states_the_in_commit_timestamp_of_the_winner() -> None:
    info = CommitInfo(timestamp=1_000, in_commit_timestamp=1_700_000_000_000)
    with pytest.raises(MetadataChangedError, match="at 2023-11-14 22:13:20 UTC"):
        check_conflicts(WinningCommit(5, (info, replace(METADATA, description="new"))), pending())
