"""The rules for commits to a table that records its changes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dbt.adapters.silt.engine.kernel.errors import InternalError, InvalidNameError, UnsupportedStatementError
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.table.actions import AddCDCFile, Metadata, Protocol, RemoveFile
from dbt.adapters.silt.engine.kernel.table.column_mapping import mapped
from dbt.adapters.silt.engine.kernel.table.schema import PrimitiveType, StructField, StructType
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation
from dbt.adapters.silt.engine.kernel.transaction.validation import check_changes
from tests.unit.engine.kernel.log_builder import METADATA, SCHEMA, add, new_log

PROTOCOL = Protocol(2, 5)
FEED = {"delta.enableChangeDataFeed": "true"}
BY_NAME = {"delta.columnMapping.mode": "name"}
WRITE = Operation("WRITE")
REMOVE = RemoveFile("old.parquet", 1)


def recorded(configuration: dict[str, str] = FEED) -> Snapshot:
    return new_log(configuration=configuration, protocol=PROTOCOL).snapshot()


def with_mapping(base: Metadata) -> Metadata:
    """The metadata with column mapping by name, as ALTER TABLE enables it."""
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
        (AddCDCFile("c", {}, 10, data_change=True), "would count as a change of the data"),
        (AddCDCFile("c", {"day": "1"}, 10), "partition values"),
        (AddCDCFile("c", {}, 0), "empty file"),
    ],
)
def test_a_file_of_change_data_follows_the_protocol(file: AddCDCFile, problem: str) -> None:
    with pytest.raises(InternalError, match=problem):
        check_changes(Changes(WRITE, change_files=(file,)), recorded(), "t")
    check_changes(Changes(WRITE, change_files=(AddCDCFile("c", {}, 10),)), recorded(), "t")
