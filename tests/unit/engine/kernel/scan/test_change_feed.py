"""The files with the changes of a version."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dbt.adapters.silt.engine.kernel.errors import (
    ChangeDataNotRecordedError,
    DataFileMissingError,
    InternalError,
    InvalidNameError,
    InvalidStatementError,
    UnsupportedStatementError,
    VersionNotFoundError,
)
from dbt.adapters.silt.engine.kernel.log.history import Commit
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.scan.change_feed import RevisedFile, changes_after, changes_between, changes_of
from dbt.adapters.silt.engine.kernel.table.actions import (
    Action,
    AddCDCFile,
    AddFile,
    CommitInfo,
    DeletionVector,
    Protocol,
    SetTransaction,
)
from dbt.adapters.silt.engine.kernel.table.paths import commit_path
from dbt.adapters.silt.engine.kernel.table.schema import PHYSICAL_NAME, PrimitiveType, StructField, StructType
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit
from tests.unit.engine.kernel.log_builder import METADATA, SCHEMA, add, new_log, put

RECORDING = {"delta.enableChangeDataFeed": "true"}
VECTOR = DeletionVector("i", "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", 40, 6)
CHANGED = AddCDCFile("_change_data/c1", {}, 10)
DELETE = Operation("DELETE")


def recording(*extra: Action) -> DeltaLog:
    return new_log(configuration=RECORDING, protocol=Protocol(1, 4), extra=extra)


def removed(file: AddFile, data_change: bool = True) -> Action:
    return file.remove(1, data_change)


def test_the_changes_of_a_version_with_change_files_are_read_from_these_files_alone() -> None:
    log = recording(add("f0"))
    put(log, 1, CommitInfo(operation="UPDATE"), add("f1"), removed(add("f0")), CHANGED)
    (first, second) = changes_between(log, 0, log.snapshot())
    assert (first.version, [file.path for file in first.inserted]) == (0, ["f0"])
    assert (second.version, second.change_files) == (1, (CHANGED,))
    assert not (second.inserted or second.deleted or second.revised)


def test_the_changes_of_other_versions_are_read_from_their_added_and_removed_files() -> None:
    log = recording(add("f0"))
    put(log, 1, add("f1"), removed(add("f0")), SetTransaction("a", 1))
    (found,) = changes_between(log, 1, log.snapshot())
    assert [file.path for file in found.inserted] == ["f1"]
    assert [file.path for file in found.deleted] == ["f0"]


def test_files_rewritten_without_a_change_of_data_are_no_changes() -> None:
    log = recording(add("f0"))
    put(log, 1, replace(add("f1"), data_change=False), removed(add("f0"), data_change=False))
    (found,) = changes_between(log, 1, log.snapshot())
    assert not (found.inserted or found.deleted or found.revised or found.change_files)


def test_a_merge_that_reports_no_changed_rows_has_no_changes() -> None:
    log = recording(add("f0"))
    names = ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted")
    info = CommitInfo(operation="MERGE", operation_metrics=dict.fromkeys(names, "0"))
    put(log, 1, info, add("f1"), removed(add("f0")))
    (found,) = changes_between(log, 1, log.snapshot())
    assert not (found.inserted or found.deleted)


def test_a_file_with_another_vector_is_a_revised_file_in_every_spelling_of_its_path() -> None:
    before = add("a b").remove(1)
    after = replace(add("a%20b"), deletion_vector=VECTOR, stats='{"numRecords":9}')
    found = changes_of(Commit(1, 0, (before, after)))
    assert not (found.inserted or found.deleted)
    assert found.revised == (RevisedFile(before, after),)


def test_versions_before_the_feed_was_enabled_are_refused_by_name() -> None:
    log = new_log()
    put(log, 1, add("f1"))
    put(log, 2, replace(METADATA, configuration=RECORDING))
    with pytest.raises(ChangeDataNotRecordedError, match="did not record its changes in version 1"):
        changes_between(log, 1, log.snapshot())
    assert [each.version for each in changes_between(log, 2, log.snapshot())] == [2]


def test_versions_after_the_feed_was_disabled_are_refused_by_name() -> None:
    log = recording()
    put(log, 1, METADATA)
    with pytest.raises(ChangeDataNotRecordedError, match="in version 1"):
        changes_between(log, 0, log.snapshot())
    assert [each.version for each in changes_between(log, 0, log.snapshot_at(0))] == [0]


def test_an_end_before_the_start_is_refused() -> None:
    log = recording()
    put(log, 1, add("f1"))
    with pytest.raises(InvalidStatementError, match="end with version 0"):
        changes_between(log, 1, log.snapshot_at(0))


def test_a_cleaned_up_commit_is_missing_even_if_a_checkpoint_contains_its_rows() -> None:
    log = recording()
    for version in range(1, 4):
        put(log, version, add(f"f{version}"))
        log.checkpoint(log.snapshot_at(version))
    log.store.delete(commit_path(0))
    log.store.delete(commit_path(1))
    with pytest.raises(VersionNotFoundError, match="the commit of version 1 is no longer in the log"):
        changes_between(log, 1, log.snapshot())
    assert [each.version for each in changes_between(log, 2, log.snapshot())] == [2, 3]


def test_columns_may_be_added_and_dropped_but_not_changed_incompatibly() -> None:
    log = recording()
    wider = SCHEMA.add(StructField("more", PrimitiveType("double")))
    put(log, 1, replace(METADATA, configuration=RECORDING, schema_string=wider.to_json()))
    assert len(changes_between(log, 0, log.snapshot())) == 2
    retyped = StructType((StructField("id", PrimitiveType("string")),))
    put(log, 2, replace(METADATA, configuration=RECORDING, schema_string=retyped.to_json()))
    with pytest.raises(
        UnsupportedStatementError,
        match=r"`id` of version 2 is another column in version 0.*before the version that changed",
    ):
        changes_between(log, 0, log.snapshot())
    assert len(changes_between(log, 2, log.snapshot())) == 1


def test_a_mapped_column_that_got_another_columns_name_is_refused() -> None:
    log = recording()
    other = StructType((StructField("id", PrimitiveType("long"), metadata={PHYSICAL_NAME: "col-1"}),))
    put(log, 1, replace(METADATA, configuration=RECORDING, schema_string=other.to_json()))
    with pytest.raises(UnsupportedStatementError, match="`id`"):
        changes_between(log, 0, log.snapshot())


def test_change_files_are_committed_after_the_data_files_and_made_durable() -> None:
    log = new_log()
    with pytest.raises(DataFileMissingError):
        commit(log, log.snapshot(), Changes(DELETE, change_files=(CHANGED,)), ReadSet(), CommitSettings())
    log.store.make_folder("_change_data")
    log.store.put(CHANGED.path, b"data")
    commit(log, log.snapshot(), Changes(DELETE, change_files=(CHANGED,)), ReadSet(), CommitSettings())
    (found,) = log.commits(1)
    assert found.actions[-1] == CHANGED


@pytest.mark.parametrize(
    ("change_file", "problem"),
    [
        (replace(CHANGED, partition_values={"day": "1"}), "has the partition values"),
        (replace(CHANGED, size=0), "is an empty file"),
        (replace(CHANGED, data_change=True), "is marked dataChange=true"),
    ],
)
def test_a_change_file_that_violates_the_protocol_is_refused(change_file: AddCDCFile, problem: str) -> None:
    log = new_log()
    with pytest.raises(InternalError, match=problem):
        commit(log, log.snapshot(), Changes(DELETE, change_files=(change_file,)), ReadSet(), CommitSettings())


def test_a_commit_names_a_change_file_only_once() -> None:
    log = new_log()
    with pytest.raises(InternalError, match="added as change data twice"):
        commit(log, log.snapshot(), Changes(DELETE, change_files=(CHANGED, CHANGED)), ReadSet(), CommitSettings())


@pytest.mark.parametrize("name", ["_change_type", "_Commit_Version", "_commit_timestamp"])
def test_a_table_with_a_change_feed_may_not_have_columns_with_the_feeds_names(name: str) -> None:
    schema = StructType((StructField(name, PrimitiveType("string")),))
    metadata = replace(METADATA, configuration=RECORDING, schema_string=schema.to_json())
    log = new_log(protocol=Protocol(1, 4))
    with pytest.raises(InvalidNameError, match=name.lower()):
        commit(log, log.snapshot(), Changes(DELETE, metadata=metadata), ReadSet(), CommitSettings())


def test_columns_of_a_mapped_table_with_a_feed_are_dropped_in_a_commit_without_data() -> None:
    mapped = RECORDING | {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "2"}
    fields = tuple(
        StructField(
            name, PrimitiveType("long"), metadata={PHYSICAL_NAME: f"col-{number}", "delta.columnMapping.id": number}
        )
        for number, name in enumerate(("id", "day"), start=1)
    )
    whole = replace(METADATA, configuration=mapped, schema_string=StructType(fields).to_json())
    log = new_log(protocol=Protocol(2, 5))
    put(log, 1, whole, add("f0"))
    fewer = replace(whole, schema_string=StructType(fields[:1]).to_json())
    gone = tuple(file.remove(1) for file in log.snapshot().add_files())
    with pytest.raises(UnsupportedStatementError, match="in the same commit as its data"):
        commit(log, log.snapshot(), Changes(DELETE, removes=gone, metadata=fewer), ReadSet(), CommitSettings())
    commit(log, log.snapshot(), Changes(DELETE, metadata=fewer), ReadSet(), CommitSettings())
    assert log.snapshot().schema.names == ("id",)


def test_a_starting_time_means_the_first_version_committed_at_or_after_it() -> None:
    log = recording()
    for version in (1, 2):
        put(log, version, add(f"f{version}"))
    times = [commit.timestamp_ms for commit in log.commits()]
    assert [log.version_from(at) for at in times] == [0, 1, 2]
    assert [log.version_from(at + 1) for at in times] == [1, 2, 3]
    assert (log.version_from(0), log.version_from(times[2] + 10**9)) == (0, 3)


def test_the_changes_after_a_version_need_not_be_recorded() -> None:
    log = new_log(extra=(add("f0"),))
    put(log, 1, CommitInfo(operation="WRITE"), add("f1"))
    put(log, 2, CommitInfo(operation="OPTIMIZE"), replace(add("f2"), data_change=False), removed(add("f1"), False))
    put(log, 3, CommitInfo(operation="UPDATE"), add("f3"), removed(add("f2")))
    found = changes_after(log, 0, log.snapshot())
    files = [([a.path for a in each.inserted], [r.path for r in each.deleted]) for each in found.versions]
    assert files == [(["f1"], []), ([], []), (["f3"], ["f2"])]
    assert [each.version for each in found.versions] == [1, 2, 3]
    assert [each.id for each in found.described] == [METADATA.id]
    assert changes_after(log, 3, log.snapshot()).versions == ()


def test_the_changes_after_a_version_are_refused_if_its_columns_became_other_columns() -> None:
    log = new_log()
    changed = StructType((StructField("id", PrimitiveType("string")), *SCHEMA.fields[1:]))
    put(log, 1, CommitInfo(operation="REPLACE TABLE"), replace(METADATA, schema_string=changed.to_json()))
    with pytest.raises(UnsupportedStatementError, match="the column `id` of version 1 is another column in version 0"):
        changes_after(log, 0, log.snapshot())
    assert not changes_after(log, 1, log.snapshot()).versions


def test_the_changes_after_the_last_version_are_refused() -> None:
    log = new_log()
    put(log, 1, CommitInfo(operation="WRITE"), add("f1"))
    with pytest.raises(InvalidStatementError, match="end with version 0"):
        changes_after(log, 1, log.snapshot_at(0))
