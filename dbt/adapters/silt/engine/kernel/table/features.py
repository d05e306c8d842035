"""Table features: the features that a table's protocol needs, and the features that this engine has.

Source: the Delta specification, sections "Table Features" and "Valid Feature Names in Table Features". A feature that a
table lists but does not use is accepted if its rules require nothing of such a table: `Feature.in_use` decides that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from dbt.adapters.silt.engine.kernel.errors import CorruptLogError, UnsupportedFeatureError
from dbt.adapters.silt.engine.kernel.table import collations, identity, type_widening
from dbt.adapters.silt.engine.kernel.table.actions import Metadata, Protocol
from dbt.adapters.silt.engine.kernel.table.properties import FEATURE_PREFIX, TableProperties
from dbt.adapters.silt.engine.kernel.table.schema import (
    CURRENT_DEFAULT,
    GENERATION_EXPRESSION,
    DecimalType,
    PrimitiveType,
    StructType,
    all_fields,
    primitive_types,
)

FEATURE_LIST_READER: Final = 3
FEATURE_LIST_WRITER: Final = 7
DEFAULT_PROTOCOL: Final = Protocol(1, 2)

PRIMITIVE_TYPES: Final = frozenset(
    "string long integer short byte double float boolean binary date timestamp timestamp_ntz variant void".split()
)
"""The names of the types without parameters that this engine supports."""

_MOST_DIGITS = 38
# The features that a protocol without feature lists implies (specification: "Valid Feature Names in Table Features").
_LEGACY_FEATURES: Final = (
    "appendOnly",
    "invariants",
    "checkConstraints",
    "changeDataFeed",
    "generatedColumns",
    "columnMapping",
    "identityColumns",
)

Use = Callable[[StructType, TableProperties], bool]


@dataclass(frozen=True)
class Feature:
    """A table feature.

    Args:
        name: the name in the feature lists.
        in_use: whether a table with this schema and these properties uses it.
        readable, writable: whether this engine reads and writes a table that uses it.
        reader_version, writer_version: the legacy versions that imply it; 3 and 7 if only a list can name it; reader
            version 0 if it concerns writers only.
        requires: further features that the table must have.
    """

    name: str
    in_use: Use
    readable: bool
    writable: bool
    reader_version: int = 0
    writer_version: int = FEATURE_LIST_WRITER
    requires: tuple[str, ...] = ()


def check_readable(protocol: Protocol, table: str, metadata: Metadata | None = None) -> None:
    """Raises an error unless this engine reads every feature that the table needs.

    Args:
        metadata: decides which features are in use; if it is None, only unknown features and versions are refused.

    Raises:
        UnsupportedFeatureError: if the engine cannot read a feature; the error names the features.
        CorruptLogError: if the protocol contradicts itself.
    """
    _check_form(protocol, table)
    if protocol.min_reader_version > FEATURE_LIST_READER:
        raise UnsupportedFeatureError(
            f"reading needs protocol reader version {protocol.min_reader_version}", table=table
        )
    if metadata is not None and metadata.format_provider != "parquet":
        raise UnsupportedFeatureError(f"the table's files are {metadata.format_provider}, not Parquet", table=table)
    named = _reader_features(protocol)
    _refuse("reading", [name for name in named if not _can_read(name, metadata)], table)
    if metadata is not None:
        schema = StructType.from_json(metadata.schema_string)
        _check_types(schema, table)
        _check_partitions(schema, metadata.partition_columns, table)
        type_widening.check_known(schema, table)


def check_writable(protocol: Protocol, table: str, metadata: Metadata | None = None) -> None:
    """Raises the errors of `check_readable` unless this engine reads and writes every feature that the table needs."""
    check_readable(protocol, table, metadata)
    if protocol.min_writer_version > FEATURE_LIST_WRITER:
        raise UnsupportedFeatureError(
            f"writing needs protocol writer version {protocol.min_writer_version}", table=table
        )
    named = _writer_features(protocol)
    _refuse("writing", [name for name in named if not _can_write(name, metadata)], table)


def protocol_for(schema: StructType, configuration: Mapping[str, str]) -> Protocol:
    """Returns the lowest protocol for a new table, at least the default protocol.

    Raises:
        UnsupportedFeatureError: if the schema or the properties need a feature that this engine cannot write.
    """
    needed = needed_features(schema, configuration)
    _refuse("writing", [name for name in needed if name not in _FEATURES or not _FEATURES[name].writable], None)
    return upgraded(DEFAULT_PROTOCOL, needed)


def needed_features(schema: StructType, configuration: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the features that this schema and these properties need, including features requested by name."""
    properties = TableProperties(configuration)
    used = [feature.name for feature in _FEATURES.values() if feature.in_use(schema, properties)]
    asked = [key[len(FEATURE_PREFIX) :] for key in configuration if key.startswith(FEATURE_PREFIX)]
    return tuple(dict.fromkeys((*used, *asked)))


def upgraded(protocol: Protocol, features: Iterable[str]) -> Protocol:
    """Returns the lowest protocol with these features and all features of the given protocol.

    Raises:
        UnsupportedFeatureError: if this engine does not know a feature.
    """
    present = _writer_features(protocol)
    missing_names = [name for name in features if name not in present and f"{name}-preview" not in present]
    _refuse("adding", [name for name in missing_names if name not in _FEATURES], None)
    required = (other for name in missing_names for other in _FEATURES[name].requires)
    missing_names = list(dict.fromkeys((*missing_names, *(name for name in required if name not in present))))
    missing = [_FEATURES[name] for name in missing_names]
    if not missing:
        return protocol
    writer_version = max(protocol.min_writer_version, *(feature.writer_version for feature in missing))
    reader_version = max(protocol.min_reader_version, *(feature.reader_version for feature in missing))
    if writer_version < FEATURE_LIST_WRITER:
        return Protocol(reader_version, writer_version)
    names = (*_writer_features(protocol), *(feature.name for feature in missing))
    of_readers = tuple(name for name in names if _is_reader_feature(name))
    return Protocol(
        reader_version,
        FEATURE_LIST_WRITER,
        of_readers if reader_version == FEATURE_LIST_READER else None,
        names,
    )


def merged(protocol: Protocol, other: Protocol) -> Protocol:
    """Returns the lowest protocol that has every feature of both.

    Raises:
        UnsupportedFeatureError: if this engine does not know a feature of `other`.
    """
    return upgraded(protocol, dict.fromkeys((*_writer_features(other), *_reader_features(other))))


def has_feature(protocol: Protocol, name: str) -> bool:
    """Returns whether the protocol names or implies the feature."""
    return name in _writer_features(protocol) or name in _reader_features(protocol)


def features_of(protocol: Protocol) -> list[str]:
    """Returns the features that the protocol names or implies, sorted."""
    named = {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
    return sorted(named | {name for name in _LEGACY_FEATURES if has_feature(protocol, name)})


def _check_form(protocol: Protocol, table: str) -> None:
    lists = (
        (protocol.min_reader_version, FEATURE_LIST_READER, protocol.reader_features, "reader"),
        (protocol.min_writer_version, FEATURE_LIST_WRITER, protocol.writer_features, "writer"),
    )
    for version, list_version, features, who in lists:
        if version == list_version and features is None:
            raise CorruptLogError(f"the protocol has {who} version {version} without {who}Features", table=table)
        if version < list_version and features is not None:
            raise CorruptLogError(f"the protocol has {who}Features with {who} version {version}", table=table)


def _check_types(schema: StructType, table: str) -> None:
    for column in schema:
        for primitive in primitive_types(column.type):
            if not _is_known(primitive):
                raise UnsupportedFeatureError(
                    f"the column `{column.name}` has the type {primitive.name}, which this version does not support",
                    table=table,
                    details={"column": column.name, "type": primitive.name},
                )


def _is_known(primitive: PrimitiveType | DecimalType) -> bool:
    if isinstance(primitive, DecimalType):
        return 0 <= primitive.scale <= primitive.precision <= _MOST_DIGITS
    return collations.without(primitive.name) in PRIMITIVE_TYPES


def _check_partitions(schema: StructType, partition_columns: Iterable[str], table: str) -> None:
    for column in filter(None, map(schema.field, partition_columns)):
        if collations.has_collation(each.name for each in primitive_types(column.type)):
            raise UnsupportedFeatureError(
                f"the partition column `{column.name}` has the type {column.type.sql_name}: equal values would be "
                "in several partitions",
                remedy="Let the engine that created the table change it, or write its rows to another table",
                table=table,
                details={"features": (collations.FEATURE,), "column": column.name},
            )


def _reader_features(protocol: Protocol) -> tuple[str, ...]:
    if protocol.reader_features is not None:
        return protocol.reader_features
    version = protocol.min_reader_version
    return tuple(f.name for f in _FEATURES.values() if 0 < f.reader_version <= version < FEATURE_LIST_READER)


def _writer_features(protocol: Protocol) -> tuple[str, ...]:
    if protocol.writer_features is not None:
        return protocol.writer_features
    version = protocol.min_writer_version
    return tuple(f.name for f in _FEATURES.values() if f.writer_version <= version < FEATURE_LIST_WRITER)


def _is_reader_feature(name: str) -> bool:
    return name in _FEATURES and _FEATURES[name].reader_version > 0


def _can_read(name: str, metadata: Metadata | None) -> bool:
    feature = _FEATURES.get(name)
    return feature is not None and (feature.readable or not _uses(feature, metadata))


def _can_write(name: str, metadata: Metadata | None) -> bool:
    feature = _FEATURES.get(name)
    return feature is not None and (feature.writable or not _uses(feature, metadata))


def _uses(feature: Feature, metadata: Metadata | None) -> bool:
    if metadata is None:
        return False
    return feature.in_use(StructType.from_json(metadata.schema_string), TableProperties(metadata.configuration))


def _refuse(doing: str, names: list[str], table: str | None) -> None:
    if names:
        kind = "feature" if len(names) == 1 else "features"
        raise UnsupportedFeatureError(
            f"{doing} needs the table {kind} {', '.join(names)}, which this version does not support",
            table=table,
            details={"features": tuple(names)},
        )


def _never(_schema: StructType, _properties: TableProperties) -> bool:
    return False


def _field_has(*keys: str) -> Use:
    def in_use(schema: StructType, _properties: TableProperties) -> bool:
        return any(key in member.metadata for member in all_fields(schema) for key in keys)

    return in_use


def _has_type(*names: str) -> Use:
    def in_use(schema: StructType, _properties: TableProperties) -> bool:
        return any(primitive.name in names for primitive in primitive_types(schema))

    return in_use


def _has_collation(schema: StructType, _properties: TableProperties) -> bool:
    return collations.has_collation(primitive.name for primitive in primitive_types(schema))


def _property_is_true(key: str) -> Use:
    def in_use(_schema: StructType, properties: TableProperties) -> bool:
        return properties.configuration.get(key, "").lower() == "true"

    return in_use


def _has_v2_checkpoints(_schema: StructType, properties: TableProperties) -> bool:
    return properties.checkpoint_policy == "v2"


def _widens_types(schema: StructType, properties: TableProperties) -> bool:
    has_changes = any(type_widening.TYPE_CHANGES in member.metadata for member in all_fields(schema))
    return has_changes or _property_is_true("delta.enableTypeWidening")(schema, properties)


def _maps_columns(_schema: StructType, properties: TableProperties) -> bool:
    return properties.column_mapping_mode != "none"


def _has_checks(_schema: StructType, properties: TableProperties) -> bool:
    return bool(properties.constraints)


_FEATURES: Mapping[str, Feature] = {
    feature.name: feature
    for feature in (
        Feature("appendOnly", _property_is_true("delta.appendOnly"), True, True, writer_version=2),
        Feature("invariants", _field_has("delta.invariants"), True, True, writer_version=2),
        Feature("checkConstraints", _has_checks, True, True, writer_version=3),
        Feature("changeDataFeed", _property_is_true("delta.enableChangeDataFeed"), True, True, writer_version=4),
        Feature("generatedColumns", _field_has(GENERATION_EXPRESSION), True, True, writer_version=4),
        Feature("columnMapping", _maps_columns, True, True, reader_version=2, writer_version=5),
        Feature(
            "identityColumns",
            _field_has(*identity.KEYS),
            True,
            True,
            writer_version=6,
        ),
        Feature("timestampNtz", _has_type("timestamp_ntz"), True, True, reader_version=3),
        Feature("deletionVectors", _property_is_true("delta.enableDeletionVectors"), True, True, reader_version=3),
        Feature("vacuumProtocolCheck", _never, True, True, reader_version=3),
        Feature("v2Checkpoint", _has_v2_checkpoints, True, True, reader_version=3),
        Feature("domainMetadata", _never, True, True),
        # Concerns only the clean-up of the log, which complies.
        Feature("checkpointProtection", _never, True, True),
        Feature("allowColumnDefaults", _field_has(CURRENT_DEFAULT), True, True),
        Feature("inCommitTimestamp", _property_is_true("delta.enableInCommitTimestamps"), True, True),
        Feature("typeWidening", _widens_types, True, True, reader_version=3),
        Feature("typeWidening-preview", _never, True, True, reader_version=3),
        Feature(collations.FEATURE, _has_collation, True, True, requires=("domainMetadata",)),
        Feature(f"{collations.FEATURE}-preview", _never, True, True, requires=("domainMetadata",)),
        Feature("variantType", _has_type("variant"), True, True, reader_version=3),
        Feature("variantType-preview", _never, True, True, reader_version=3),
        # This engine does not shred its files; a table that allows shredding may also contain files without it.
        Feature("variantShredding", _property_is_true("delta.enableVariantShredding"), True, True, reader_version=3),
        Feature("variantShredding-preview", _never, True, True, reader_version=3),
        # This engine writes the partition columns into every file.
        Feature("materializePartitionColumns", _never, True, True),
        Feature("clustering", _never, True, True, requires=("domainMetadata",)),
        Feature("rowTracking", _property_is_true("delta.enableRowTracking"), True, True, requires=("domainMetadata",)),
        Feature("icebergCompatV1", _property_is_true("delta.enableIcebergCompatV1"), True, False),
        Feature("icebergCompatV2", _property_is_true("delta.enableIcebergCompatV2"), True, False),
        Feature("icebergCompatV3", _property_is_true("delta.enableIcebergCompatV3"), True, False),
    )
}
