"""Changes of metadata after which an earlier prepared transaction may still commit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from dbt.adapters.silt.engine.kernel.table.actions import Metadata, Protocol
from dbt.adapters.silt.engine.kernel.table.features import upgraded
from dbt.adapters.silt.engine.kernel.table.schema import ArrayType, PrimitiveType, StructField, StructType
from dbt.adapters.silt.engine.kernel.transaction.enablement import only_enables

LONG = PrimitiveType("long")
SCHEMA = StructType(
    (
        StructField("id", LONG, metadata={"comment": "the key"}),
        StructField("tags", ArrayType(StructType((StructField("name", PrimitiveType("string")),)))),
    )
)
OLD = Metadata("the-table", SCHEMA.to_json(), ("id",), {"owner": "me", "delta.appendOnly": "false"})
NONE = Protocol(3, 7, (), ())
ALL = upgraded(NONE, ["columnMapping", "deletionVectors", "v2Checkpoint", "inCommitTimestamp"])
DV = {"delta.enableDeletionVectors": "true"}
ICT = {
    "delta.enableInCommitTimestamps": "true",
    "delta.inCommitTimestampEnablementVersion": "7",
    "delta.inCommitTimestampEnablementTimestamp": "1700000000000",
}
BY_NAME = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "2"}


def with_properties(properties: Mapping[str, str], old: Metadata = OLD) -> Metadata:
    return replace(old, configuration={**old.configuration, **properties})


def mapped(schema: StructType, prefix: str = "") -> StructType:
    """Returns the schema with ids and physical names, also of nested fields."""
    fields = []
    for number, field in enumerate(schema, start=1):
        inner = field.type
        if isinstance(inner, ArrayType) and isinstance(inner.element_type, StructType):
            inner = replace(inner, element_type=mapped(inner.element_type, prefix))
        keys = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": prefix + field.name}
        fields.append(replace(field, type=inner, metadata={**field.metadata, **keys}))
    return StructType(tuple(fields))


@pytest.mark.parametrize("properties", [{}, DV, {"delta.checkpointPolicy": "v2"}, ICT, {**DV, **ICT}])
def test_a_transaction_may_commit_after_a_feature_was_enabled(properties: Mapping[str, str]) -> None:
    assert only_enables(OLD, with_properties(properties), ALL)


@pytest.mark.parametrize("properties", [DV, {"delta.checkpointPolicy": "v2"}, ICT, BY_NAME])
def test_a_feature_must_be_in_the_protocol(properties: Mapping[str, str]) -> None:
    assert not only_enables(OLD, with_properties(properties), NONE)


OTHERS: dict[str, tuple[Metadata, Metadata]] = {
    "a description": (OLD, replace(OLD, description="new")),
    "a name": (OLD, replace(OLD, name="new")),
    "partitioning": (OLD, replace(OLD, partition_columns=())),
    "another property": (OLD, with_properties({"owner": "you"})),
    "a property of the protocol": (OLD, with_properties({"delta.appendOnly": "true"})),
    "a feature and another property": (OLD, with_properties({**DV, "owner": "you"})),
    "a property taken away": (OLD, replace(OLD, configuration={"owner": "me"})),
    "a feature turned off": (with_properties(DV), with_properties({"delta.enableDeletionVectors": "false"})),
    "classic checkpoints again": (
        with_properties({"delta.checkpointPolicy": "v2"}),
        with_properties({"delta.checkpointPolicy": "classic"}),
    ),
    "another enablement version": (
        with_properties(ICT),
        with_properties({**ICT, "delta.inCommitTimestampEnablementVersion": "8"}),
    ),
    "a column more": (OLD, replace(OLD, schema_string=SCHEMA.add(StructField("more", LONG)).to_json())),
    "a column's comment": (
        OLD,
        replace(OLD, schema_string=SCHEMA.replace("id", SCHEMA.fields[0].with_metadata(comment="x")).to_json()),
    ),
    "ids without mapping": (OLD, replace(OLD, schema_string=mapped(SCHEMA).to_json())),
    "mapping by id": (
        OLD,
        with_properties(
            {**BY_NAME, "delta.columnMapping.mode": "id"}, replace(OLD, schema_string=mapped(SCHEMA).to_json())
        ),
    ),
    "mapping to other names": (
        OLD,
        with_properties(BY_NAME, replace(OLD, schema_string=mapped(SCHEMA, "col-").to_json())),
    ),
}


@pytest.mark.parametrize("what", sorted(OTHERS))
def test_a_transaction_may_not_commit_after_any_other_change(what: str) -> None:
    old, new = OTHERS[what]
    assert not only_enables(old, new, ALL)


def test_a_transaction_may_commit_after_column_mapping_with_the_existing_names() -> None:
    new = with_properties(BY_NAME, replace(OLD, schema_string=mapped(SCHEMA).to_json()))
    assert only_enables(OLD, new, ALL)


def test_a_transaction_may_commit_after_an_identity_columns_high_water_mark_moved() -> None:
    def marked(mark: int, **more: Any) -> Metadata:
        field = StructField("id", LONG, metadata={"delta.identity.start": 1, "delta.identity.highWaterMark": mark})
        return replace(OLD, schema_string=StructType((field.with_metadata(**more),)).to_json())

    assert only_enables(marked(1), marked(100), ALL)
    assert not only_enables(marked(1), marked(100, **{"delta.identity.start": 5}), ALL)
