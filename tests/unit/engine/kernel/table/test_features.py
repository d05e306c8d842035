"""Table features: the tables that can be read and written, and the protocol that a table needs."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from dbt.adapters.silt.engine.kernel.errors import CorruptLogError, UnsupportedFeatureError
from dbt.adapters.silt.engine.kernel.table.actions import Metadata, Protocol
from dbt.adapters.silt.engine.kernel.table.features import (
    DEFAULT_PROTOCOL,
    PRIMITIVE_TYPES,
    check_readable,
    check_writable,
    has_feature,
    needed_features,
    protocol_for,
    upgraded,
)
from dbt.adapters.silt.engine.kernel.table.schema import PrimitiveType, StructField, StructType

TABLE = "shop.orders"
LONG = PrimitiveType("long")
PLAIN = StructType((StructField("a", LONG),))
WITH_NTZ = StructType((StructField("a", PrimitiveType("timestamp_ntz")),))


def listed(reader: tuple[str, ...] = (), writer: tuple[str, ...] = ()) -> Protocol:
    return Protocol(3, 7, reader, (*reader, *writer))


def metadata(schema: StructType = PLAIN, **configuration: str) -> Metadata:
    return Metadata(
        "id", schema.to_json(), configuration={f"delta.{key}": value for key, value in configuration.items()}
    )


def with_column_metadata(**entries: object) -> Metadata:
    return metadata(StructType((StructField("a", LONG, metadata=entries),)))


def test_an_unknown_reader_feature_is_refused_by_name_on_read_and_on_write() -> None:
    for check in (check_readable, check_writable):
        with pytest.raises(UnsupportedFeatureError, match=r"shop\.orders: .*timeTravelMachine") as refused:
            check(listed(reader=("timestampNtz", "timeTravelMachine")), TABLE)
        assert refused.value.details["features"] == ("timeTravelMachine",)


def test_an_unknown_writer_feature_is_refused_by_name_on_write_only() -> None:
    protocol = listed(writer=("appendOnly", "ownerStamps", "rowStamps"))
    check_readable(protocol, TABLE, metadata())
    with pytest.raises(UnsupportedFeatureError, match="ownerStamps, rowStamps"):
        check_writable(protocol, TABLE, metadata())


@pytest.mark.parametrize(
    "name", ["geometry(OGC:CRS84)", "interval year to month", "time(6)", "char(5)", "decimal(50,2)"]
)
def test_a_column_of_an_unknown_type_is_refused_by_its_name(name: str) -> None:
    nested = {"type": "array", "elementType": name, "containsNull": True}
    field = {"name": "a", "type": nested, "nullable": True, "metadata": {}}
    with pytest.raises(UnsupportedFeatureError, match=rf"shop\.orders: the column `a` has the type {re.escape(name)},"):
        check_readable(DEFAULT_PROTOCOL, TABLE, Metadata("id", json.dumps({"type": "struct", "fields": [field]})))


@pytest.mark.parametrize("name", ["decimal(38,38)", "null", *sorted(PRIMITIVE_TYPES)])
def test_every_type_of_the_specification_and_its_earlier_names_are_known(name: str) -> None:
    field = {"name": "a", "type": name, "nullable": True, "metadata": {}}
    read = Metadata("id", json.dumps({"type": "struct", "fields": [field]}))
    check_readable(listed(reader=("timestampNtz", "variantType")), TABLE, read)


def test_versions_beyond_the_specification_are_refused() -> None:
    with pytest.raises(UnsupportedFeatureError, match="reader version 5"):
        check_readable(Protocol(5, 7, ("x",), ("x",)), TABLE)
    with pytest.raises(UnsupportedFeatureError, match="writer version 8"):
        check_writable(Protocol(1, 8), TABLE)


@pytest.mark.parametrize(
    "protocol",
    [Protocol(3, 7), Protocol(3, 7, None, ()), Protocol(1, 7), Protocol(1, 2, ("x",)), Protocol(1, 2, None, ())],
)
def test_feature_lists_that_contradict_the_versions_are_a_corrupt_log(protocol: Protocol) -> None:
    with pytest.raises(CorruptLogError):
        check_readable(protocol, TABLE)


@pytest.mark.parametrize("writer_version", range(1, 7))
def test_tables_of_legacy_writer_versions_can_be_written(writer_version: int) -> None:
    check_writable(Protocol(1, writer_version), TABLE, metadata())


def test_a_table_that_uses_a_feature_implied_by_a_legacy_version_can_be_written() -> None:
    check_writable(Protocol(1, 6), TABLE, with_column_metadata(**{"delta.identity.start": 1, "delta.identity.step": 1}))


def test_a_property_of_a_feature_that_the_protocol_lacks_is_ignored() -> None:
    check_writable(Protocol(1, 2), TABLE, metadata(enableChangeDataFeed="true"))


@pytest.mark.parametrize("mode", ["name", "id"])
def test_a_table_with_column_mapping_is_read(mode: str) -> None:
    for protocol in (Protocol(2, 5), listed(reader=("columnMapping",))):
        check_readable(protocol, TABLE, replace(metadata(), configuration={"delta.columnMapping.mode": mode}))


def test_an_unknown_type_change_is_refused() -> None:
    protocol = listed(reader=("typeWidening",))
    known = {"delta.typeChanges": [{"fromType": "integer", "toType": "long"}]}
    check_writable(protocol, TABLE, with_column_metadata(**known))
    unknown = {"delta.typeChanges": [{"fromType": "integer", "toType": "string"}]}
    with pytest.raises(UnsupportedFeatureError, match="`a` was changed from int to string"):
        check_readable(protocol, TABLE, with_column_metadata(**unknown))


def test_a_feature_includes_the_features_that_it_depends_on() -> None:
    features = protocol_for(PLAIN, {"delta.feature.clustering": "supported"}).writer_features
    assert features is not None and {"clustering", "domainMetadata"} <= set(features)


def test_the_preview_of_a_feature_is_accepted() -> None:
    variants = StructType((StructField("v", PrimitiveType("variant")),))
    preview = listed(reader=("variantType-preview",))
    assert upgraded(preview, needed_features(variants, {})) is preview
    assert "variantType" in (protocol_for(variants, {}).reader_features or ())


@pytest.mark.parametrize(
    "protocol",
    [
        listed(reader=("timestampNtz", "vacuumProtocolCheck", "v2Checkpoint")),
        listed(writer=("appendOnly", "invariants", "checkConstraints", "domainMetadata")),
        listed(writer=("allowColumnDefaults", "changeDataFeed", "generatedColumns", "identityColumns")),
        Protocol(1, 7, None, ("appendOnly",)),
    ],
)
def test_supported_and_unused_features_can_be_written(protocol: Protocol) -> None:
    check_writable(protocol, TABLE, metadata())


def test_a_table_with_a_column_default_can_be_written() -> None:
    check_writable(listed(writer=("allowColumnDefaults",)), TABLE, with_column_metadata(CURRENT_DEFAULT="1"))


def test_a_table_of_files_other_than_parquet_is_refused() -> None:
    with pytest.raises(UnsupportedFeatureError, match="orc"):
        check_readable(Protocol(1, 2), TABLE, replace(metadata(), format_provider="orc"))


def test_a_new_table_has_the_lowest_sufficient_protocol() -> None:
    assert protocol_for(PLAIN, {}) == Protocol(1, 2)
    assert protocol_for(PLAIN, {"delta.appendOnly": "true"}) == Protocol(1, 2)
    assert protocol_for(PLAIN, {"delta.constraints.c": "a > 0"}) == Protocol(1, 3)
    ntz = protocol_for(WITH_NTZ, {"delta.constraints.c": "a is not null"})
    assert ntz == Protocol(3, 7, ("timestampNtz",), ("appendOnly", "invariants", "checkConstraints", "timestampNtz"))
    assert protocol_for(PLAIN, {"delta.enableChangeDataFeed": "true"}) == Protocol(1, 4)
    domains = protocol_for(PLAIN, {"delta.feature.domainMetadata": "supported"})
    assert domains == Protocol(1, 7, None, ("appendOnly", "invariants", "domainMetadata"))


def test_a_new_table_cannot_request_a_feature_that_cannot_be_written() -> None:
    with pytest.raises(UnsupportedFeatureError):
        protocol_for(PLAIN, {"delta.enableIcebergCompatV2": "true"})


def test_an_upgrade_keeps_all_features_that_the_old_protocol_implied() -> None:
    old = Protocol(2, 5)
    new = upgraded(old, ["timestampNtz"])
    assert new.min_reader_version == 3
    assert new.reader_features is not None and set(new.reader_features) == {"columnMapping", "timestampNtz"}
    for name in ("appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns", "columnMapping"):
        assert has_feature(old, name) and has_feature(new, name)


def test_an_upgrade_to_an_existing_feature_changes_nothing() -> None:
    protocol = listed(reader=("timestampNtz",), writer=("appendOnly",))
    assert upgraded(protocol, ["appendOnly", "timestampNtz"]) is protocol
    assert upgraded(Protocol(1, 3), ["checkConstraints"]) == Protocol(1, 3)


def test_an_upgrade_to_an_unknown_feature_is_refused() -> None:
    with pytest.raises(UnsupportedFeatureError, match="magic"):
        upgraded(Protocol(1, 2), ["magic"])
