"""The rules for commits: of the change data feed, the protocol, partitions and clustering."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dbt.adapters.silt.engine.kernel.errors import (
    CorruptLogError,
    InternalError,
    InvalidNameError,
    NotNullViolationError,
    UnsupportedFeatureError,
    UnsupportedStatementError,
)
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.table.actions import (
    AddCDCFile,
    AddFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
)
from dbt.adapters.silt.engine.kernel.table.column_mapping import mapped
from dbt.adapters.silt.engine.kernel.table.schema import PrimitiveType, StructField, StructType
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.validation import check_changes, loses_features
from tests.unit.engine.kernel.log_builder import METADATA, SCHEMA, add, new_log, put

PROTOCOL = Protocol(2, 5)
FEED = {"delta.enableChangeDataFeed": "true"}
BY_NAME = {"delta.columnMapping.mode": "name"}
WRITE = Operation("WRITE")
REMOVE = RemoveFile("old.parquet", 1)


def recorded(configuration: dict[str, str] = FEED) -> Snapshot:
    return new_log(configuration=configuration, protocol=PROTOCOL).snapshot()


def with_mapping(base: Metadata) -> Metadata:
    """Returns the metadata with column mapping by name, as ALTER TABLE enables it."""
    return mapped(replace(base, configuration={**base.configuration, **BY_NAME}), base, lambda: "an-id", "t")


def renamed(metadata: Metadata) -> Metadata:
    fields = StructType.from_json(metadata.schema_string).fields
    schema = StructType((replace(fields[0], name="number"), *fields[1:]))
    return replace(metadata, schema_string=schema.to_json())


@pytest.mark.parametrize("name", ["_change_type", "_commit_version", "_commit_timestamp"])
def test_a_table_that_records_its_changes_has_no_column_of_the_feed(name: str) -> None:
    schema = StructType((*SCHEMA.fields, StructField(name, PrimitiveType("string"))))
    metadata = replace(METADATA, schema_string=schema.to_json())
    create = Changes(WRITE, metadata=replace(metadata, configuration=FEED), protocol=PROTOCOL)
    with pytest.raises(InvalidNameError, match=name):
        check_changes(create, None, "t")
    check_changes(replace(create, metadata=metadata), None, "t")


@pytest.mark.parametrize("data", [Changes(WRITE, adds=(add("a"),)), Changes(WRITE, removes=(REMOVE,))])
def test_columns_are_not_mapped_together_with_data_in_a_table_that_records_its_changes(data: Changes) -> None:
    base = recorded()
    changes = replace(data, metadata=with_mapping(base.metadata))
    with pytest.raises(UnsupportedStatementError, match="ALTER TABLE"):
        check_changes(changes, base, "t")
    check_changes(replace(changes, adds=(), removes=()), base, "t")
    check_changes(data, base, "t")


def test_columns_are_mapped_together_with_data_in_a_table_that_does_not_record_its_changes() -> None:
    base = recorded({})
    check_changes(Changes(WRITE, (add("a"),), metadata=with_mapping(base.metadata)), base, "t")


def test_metadata_without_mapping_changes_together_with_data() -> None:
    base = recorded()
    noted = replace(base.metadata, configuration={**FEED, "note": "1"})
    check_changes(Changes(WRITE, (add("a"),), metadata=noted), base, "t")


def test_a_mapped_column_is_not_renamed_together_with_data_in_a_table_that_records_its_changes() -> None:
    base = recorded()
    before = with_mapping(base.metadata)
    base = replace(base, metadata=before)
    noted = replace(before, configuration={**before.configuration, "note": "1"})
    check_changes(Changes(WRITE, (add("a"),), metadata=noted), base, "t")
    with pytest.raises(UnsupportedStatementError, match="renamed"):
        check_changes(Changes(WRITE, (add("a"),), metadata=renamed(before)), base, "t")


def test_a_first_commit_has_mapped_columns_and_data() -> None:
    metadata = with_mapping(replace(METADATA, configuration=FEED))
    check_changes(Changes(WRITE, (add("a"),), metadata=metadata, protocol=PROTOCOL), None, "t")


@pytest.mark.parametrize(
    ("file", "problem"),
    [
        (AddCDCFile("c", {}, 10, data_change=True), "is marked dataChange=true"),
        (AddCDCFile("c", {"day": "1"}, 10), "partition values"),
        (AddCDCFile("c", {}, 0), "empty file"),
    ],
)
def test_a_file_of_change_data_follows_the_protocol(file: AddCDCFile, problem: str) -> None:
    with pytest.raises(InternalError, match=problem):
        check_changes(Changes(WRITE, change_files=(file,)), recorded(), "t")
    check_changes(Changes(WRITE, change_files=(AddCDCFile("c", {}, 10),)), recorded(), "t")


NAMED = Protocol(3, 7, ("v2Checkpoint",), ("v2Checkpoint", "appendOnly"))


@pytest.mark.parametrize(
    ("old", "new", "lost"),
    [
        (Protocol(2, 5), Protocol(2, 5), False),
        (Protocol(2, 5), Protocol(1, 5), True),
        (Protocol(2, 5), Protocol(2, 4), True),
        (NAMED, NAMED, False),
        (NAMED, replace(NAMED, writer_features=(*NAMED.writer_features, "domainMetadata")), False),  # type: ignore[misc]
        (NAMED, replace(NAMED, writer_features=("v2Checkpoint",)), True),
    ],
)
def test_a_protocol_loses_features_by_a_lower_version_or_a_missing_name(
    old: Protocol, new: Protocol, lost: bool
) -> None:
    assert loses_features(old, new) is lost


def test_a_protocol_with_more_features_is_committed() -> None:
    check_changes(Changes(WRITE, protocol=Protocol(2, 6)), recorded(), "t")


def test_metadata_changes_while_files_remain() -> None:
    log = new_log()
    put(log, 1, CommitInfo(operation="WRITE"), add("a"))
    base = log.snapshot()
    check_changes(Changes(WRITE, metadata=replace(base.metadata, configuration={"note": "1"})), base, "t")


@pytest.mark.parametrize(
    ("nullable", "value", "refused"), [(False, None, True), (False, "1", False), (True, None, False)]
)
def test_only_a_partition_column_that_is_not_null_refuses_a_null(
    nullable: bool, value: str | None, refused: bool
) -> None:
    base = new_log(partition_columns=["day"]).snapshot()
    schema = StructType((SCHEMA.fields[0], replace(SCHEMA.fields[1], nullable=nullable)))
    base = replace(base, metadata=replace(base.metadata, schema_string=schema.to_json()))
    changes = Changes(WRITE, (AddFile("a", {"day": value}, 10, 1),))
    if refused:
        with pytest.raises(NotNullViolationError, match="day"):
            check_changes(changes, base, "t")
    else:
        check_changes(changes, base, "t")


def test_files_of_a_clustered_table_need_statistics_of_its_clustering_columns() -> None:
    clustered = DomainMetadata("delta.clustering", '{"clusteringColumns":[["id"]]}')
    protocol = Protocol(1, 7, None, ("clustering", "domainMetadata"))
    without = {"delta.dataSkippingNumIndexedCols": "0"}
    base = new_log(configuration=without, protocol=protocol, extra=[clustered]).snapshot()
    with pytest.raises(UnsupportedFeatureError, match="clustered by id"):
        check_changes(Changes(WRITE, (add("a"),)), base, "t")
    check_changes(Changes(WRITE), base, "t")
    check_changes(Changes(WRITE, (add("a"),)), new_log(protocol=protocol, extra=[clustered]).snapshot(), "t")


def test_a_column_without_its_mapping_is_not_committed() -> None:
    metadata = replace(METADATA, configuration=BY_NAME)
    with pytest.raises(InternalError):
        check_changes(Changes(WRITE, metadata=metadata, protocol=PROTOCOL), None, "t")


@pytest.mark.parametrize("column", [{}, {"id": []}, {"id": {"": ""}}, {"id": 1}, {"id": 1, "physicalName": []}])
def test_a_table_whose_columns_lack_their_mapping_is_damaged_and_is_not_changed(column: dict[str, object]) -> None:
    base = new_log(configuration=BY_NAME, protocol=Protocol(2, 5)).snapshot()
    mapping = {f"delta.columnMapping.{key}": value for key, value in column.items()}
    schema = StructType((StructField("id", PrimitiveType("long"), metadata=mapping),))
    damaged = replace(base, metadata=replace(base.metadata, schema_string=schema.to_json()))
    with pytest.raises(CorruptLogError, match="has no"):
        check_changes(Changes(WRITE), damaged, "t")


@pytest.mark.parametrize("missing", ["metadata", "protocol"])
def test_a_first_commit_without_its_protocol_or_metadata_is_refused(missing: str) -> None:
    create, without = Changes(WRITE, metadata=METADATA, protocol=PROTOCOL), dict[str, Any]({missing: None})
    with pytest.raises(InternalError, match="needs its protocol and metadata"):
        check_changes(replace(create, **without), None, "t")


def test_changes_move_rows_only_if_all_files_do_and_nothing_else_changes() -> None:
    moved = Changes(WRITE, (replace(add("a"), data_change=False),))
    assert moved.changes_no_data()
    assert not Changes(WRITE).changes_no_data()
    assert not replace(moved, removes=(REMOVE,)).changes_no_data()
    assert not replace(moved, metadata=METADATA).changes_no_data()
    assert not replace(moved, protocol=PROTOCOL).changes_no_data()


@pytest.mark.parametrize(
    "reads", [ReadSet(paths=frozenset({"a"})), ReadSet(whole_table=True), ReadSet(transactions=True)]
)
def test_a_transaction_that_has_read_is_not_a_blind_append(reads: ReadSet) -> None:
    assert not Changes(WRITE, (add("a"),)).is_blind_append(reads)
