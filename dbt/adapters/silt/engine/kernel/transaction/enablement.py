"""Recognises metadata changes after which a transaction that was prepared before them may still commit.

Such a change enables a feature that does not affect the files that the transaction has already written, or moves the
high-water mark of an identity column. Source: delta-spark's `ConflictChecker.attemptToResolveMetadataConflicts`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from dbt.adapters.silt.engine.kernel import foreign_json
from dbt.adapters.silt.engine.kernel.table.actions import Metadata, Protocol
from dbt.adapters.silt.engine.kernel.table.features import has_feature
from dbt.adapters.silt.engine.kernel.table.identity import HIGH_WATER_MARK
from dbt.adapters.silt.engine.kernel.table.properties import ENABLEMENT_TIMESTAMP, ENABLEMENT_VERSION, TableProperties
from dbt.adapters.silt.engine.kernel.table.schema import StructType, all_fields

_IDENTITY_MARKS: Final = frozenset({HIGH_WATER_MARK})
_MAPPING_KEYS: Final = frozenset(
    {
        "delta.columnMapping.id",
        "delta.columnMapping.physicalName",
        "delta.columnMapping.nested.ids",
        "parquet.field.id",
        "parquet.field.nested.ids",
    }
)


def only_enables(old: Metadata, new: Metadata, protocol: Protocol) -> bool:
    """Returns whether the new metadata differs from the old only by such changes.

    Args:
        protocol: the table's protocol with the new metadata; it must contain each enabled feature.
    """
    elsewhere = replace(new, configuration=old.configuration, schema_string=old.schema_string)
    return elsewhere == old and _configuration_only_enables(old, new, protocol) and _schema_only_enables(old, new)


def _configuration_only_enables(old: Metadata, new: Metadata, protocol: Protocol) -> bool:
    changed = {key: value for key, value in new.configuration.items() if old.configuration.get(key) != value}
    return old.configuration.keys() <= new.configuration.keys() and all(
        key in _ALLOWED and _ALLOWED[key](old, new, protocol) for key in changed
    )


def _schema_only_enables(old: Metadata, new: Metadata) -> bool:
    if old.schema_string == new.schema_string:
        return True
    passed_over = _IDENTITY_MARKS | (_MAPPING_KEYS if _maps_by_name(old, new) else frozenset())
    before, after = (_without_keys(foreign_json.loads(each.schema_string), passed_over) for each in (old, new))
    return bool(before == after)


def _maps_by_name(old: Metadata, new: Metadata) -> bool:
    """Returns whether column mapping by name is enabled and each column keeps its name in the files."""
    before, after = TableProperties(old.configuration), TableProperties(new.configuration)
    if before.column_mapping_mode != "none" or after.column_mapping_mode != "name":
        return False
    return all(field.physical_name == field.name for field in all_fields(StructType.from_json(new.schema_string)))


def _without_keys(schema: Any, keys: frozenset[str]) -> Any:
    """Returns the schema's JSON without these keys of the fields' metadata."""
    if isinstance(schema, list):
        return [_without_keys(each, keys) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: _without_keys(value, keys) for key, value in schema.items() if key != "metadata"}
    kept = {key: value for key, value in (schema.get("metadata") or {}).items() if key not in keys}
    return {**found, "metadata": kept} if kept else found


_Rule = Callable[[Metadata, Metadata, Protocol], bool]


def _turns_on(key: str, value: str, feature: str) -> _Rule:
    def holds(_old: Metadata, new: Metadata, protocol: Protocol) -> bool:
        return new.configuration[key].lower() == value and has_feature(protocol, feature)

    return holds


def _is_new(key: str) -> _Rule:
    return lambda old, _new, _protocol: key not in old.configuration


def _tracks_rows(_old: Metadata, new: Metadata, protocol: Protocol) -> bool:
    return TableProperties(new.configuration).enable_row_tracking and has_feature(protocol, "rowTracking")


def _turns_mapping_on(old: Metadata, new: Metadata, protocol: Protocol) -> bool:
    return _maps_by_name(old, new) and has_feature(protocol, "columnMapping")


_ALLOWED: Mapping[str, _Rule] = {
    "delta.enableRowTracking": _tracks_rows,
    "delta.rowTracking.materializedRowIdColumnName": _tracks_rows,
    "delta.rowTracking.materializedRowCommitVersionColumnName": _tracks_rows,
    "delta.columnMapping.mode": _turns_mapping_on,
    "delta.columnMapping.maxColumnId": _turns_mapping_on,
    "delta.enableDeletionVectors": _turns_on("delta.enableDeletionVectors", "true", "deletionVectors"),
    "delta.checkpointPolicy": _turns_on("delta.checkpointPolicy", "v2", "v2Checkpoint"),
    "delta.enableInCommitTimestamps": _turns_on("delta.enableInCommitTimestamps", "true", "inCommitTimestamp"),
    ENABLEMENT_VERSION: _is_new(ENABLEMENT_VERSION),
    ENABLEMENT_TIMESTAMP: _is_new(ENABLEMENT_TIMESTAMP),
}
