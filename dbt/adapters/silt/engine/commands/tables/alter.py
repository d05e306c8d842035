"""Runs ALTER TABLE and COMMENT ON for properties, constraints and the table's comment; touches no data file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.commands.tables import stats_columns
from dbt.adapters.silt.engine.commands.tables.metadata_commit import (
    MetadataChange,
    check_rows,
    commit_metadata,
)
from dbt.adapters.silt.engine.commands.target import Outcome, Target, WriteSettings
from dbt.adapters.silt.engine.commands.writing import rules as table_rules
from dbt.adapters.silt.engine.commands.writing.checks import constraint_checks
from dbt.adapters.silt.engine.kernel.errors import InvalidPropertyError, InvalidStatementError, UnsupportedFeatureError
from dbt.adapters.silt.engine.kernel.near_names import nearest
from dbt.adapters.silt.engine.kernel.table.actions import Metadata
from dbt.adapters.silt.engine.kernel.table.column_mapping import MAX_COLUMN_ID, MODE, is_mapped, mapped
from dbt.adapters.silt.engine.kernel.table.keys import Key, checked_keys, constraint_names, key_properties, table_keys
from dbt.adapters.silt.engine.kernel.table.properties import (
    CONSTRAINT_PREFIX,
    EXPECT_PREFIX,
    FEATURE_PREFIX,
    KEY_PREFIX,
    TableProperties,
    checked,
    expectation_properties,
)
from dbt.adapters.silt.engine.kernel.transaction import row_tracking
from dbt.adapters.silt.engine.kernel.transaction.changes import Operation, ReadSet, as_json

_ROW_TRACKING = "delta.enableRowTracking"
_COMMENT = "comment"
"""The property for the table's comment, as in Spark."""

_VERSIONS = re.compile(r"delta\.min(?P<who>Reader|Writer)Version", re.IGNORECASE)


def set_properties(target: Target, properties: Mapping[str, str], settings: WriteSettings) -> Outcome:
    """Sets table properties; `delta.feature.<name>` = `supported` enables a feature.

    Raises:
        InvalidPropertyError: if a `delta.` property is unknown, has an invalid value, or is set by a statement of its
            own.
        ColumnNotFoundError: if a property names a column that does not exist.
        UnsupportedFeatureError: if a property needs a table feature that this engine does not write.
        ConcurrentModificationError: if another writer changed the table's metadata.
    """
    target.check_writable()
    asked = checked({key: value for key, value in properties.items() if key.lower() != _COMMENT})
    features = {key: value for key, value in asked.items() if key.startswith(FEATURE_PREFIX)}
    _check_asked(target, asked, features)
    stats_columns.check(asked, target.snapshot.schema, target.name)
    kept = {key: value for key, value in asked.items() if not _VERSIONS.fullmatch(key)}
    before = target.snapshot.metadata
    metadata = _with_configuration(before, {**before.configuration, **kept})
    new_id = target.log.clock.new_id
    metadata = mapped(metadata, before, new_id, target.name)
    if metadata.configuration.get(_ROW_TRACKING) != before.configuration.get(_ROW_TRACKING):
        metadata = row_tracking.enabled(metadata, target.snapshot.add_files(), new_id, target.name)
    for key, value in properties.items():
        if key.lower() == _COMMENT:
            metadata = replace(metadata, description=value)
    operation = Operation("SET TBLPROPERTIES", {"properties": as_json(dict(properties))})
    return commit_metadata(target, MetadataChange(operation, metadata, features=features), settings)


def unset_properties(target: Target, keys: Sequence[str], if_exists: bool, settings: WriteSettings) -> Outcome:
    """Removes table properties, so that their defaults apply again.

    Raises:
        InvalidPropertyError: if a property is not set and `if_exists` is False, or if it is a constraint or belongs to
            column mapping.
        ConcurrentModificationError: if another writer changed the table's metadata.
    """
    target.check_writable()
    metadata = target.snapshot.metadata
    configuration = dict(metadata.configuration)
    for key in keys:
        if key.lower() == _COMMENT:
            metadata = replace(metadata, description=None)
            continue
        _refuse_constraint(key, target)
        _refuse_mapping(key, target)
        found = _property_named(key, configuration)
        if found is not None:
            del configuration[found]
        elif not if_exists:
            near = nearest(key, configuration)
            remedy = "Use `unset tblproperties if exists`" if near is None else f"Did you mean `{near}`?"
            raise InvalidPropertyError(f"the table property `{key}` is not set", remedy=remedy, table=target.name)
    parameters = {"properties": as_json(list(keys)), "ifExists": if_exists}
    changed = replace(metadata, configuration=configuration)
    return commit_metadata(target, MetadataChange(Operation("UNSET TBLPROPERTIES", parameters), changed), settings)


def set_comment(target: Target, comment: str | None, settings: WriteSettings) -> Outcome:
    """Sets the table's comment; None or an empty string removes it.

    Raises:
        ConcurrentModificationError: if another writer changed the table's metadata.
    """
    target.check_writable()
    metadata = replace(target.snapshot.metadata, description=comment or None)
    operation = Operation("SET TBLPROPERTIES", {"properties": as_json({_COMMENT: comment or ""})})
    return commit_metadata(target, MetadataChange(operation, metadata), settings)


def add_constraint(
    spark: SparkSession, target: Target, name: str, condition: str, settings: WriteSettings, drops_rows: bool = False
) -> Outcome:
    """Adds a CHECK constraint, after reading the existing rows to check it.

    Raises:
        InvalidStatementError: if a constraint of that name exists, or the condition is invalid.
        CheckViolationError: if a row breaks the constraint.
        ConcurrentModificationError: if another writer changed any row of the table, or its metadata.
    """
    target.check_writable()
    if _constraint_named(name, target) is not None:
        raise InvalidStatementError(
            f"the constraint `{name}` already exists",
            remedy=f"Drop it first: alter table ... drop constraint {name}",
            table=target.name,
        )
    table_rules.check_conditions(spark, target.snapshot.schema, {name: condition}, target.name)
    added = {f"{CONSTRAINT_PREFIX}{name.lower()}": condition}
    rules = constraint_checks(target.snapshot.schema, TableProperties(added), target.name)
    check_rows(spark, target, target.snapshot.files, rules)
    metadata = target.snapshot.metadata
    added |= expectation_properties([name.lower()] if drops_rows else [])
    changed = replace(metadata, configuration={**metadata.configuration, **added})
    operation = Operation("ADD CONSTRAINT", {"name": name, "expr": condition})
    return commit_metadata(target, MetadataChange(operation, changed, ReadSet(whole_table=True)), settings)


def add_keys(target: Target, keys: Mapping[str, Key], settings: WriteSettings) -> Outcome:
    """Records keys, by name. The commit checks the existing rows of enforced keys.

    Raises:
        ColumnNotFoundError, InvalidStatementError: see `kernel.table.keys.checked_keys`.
        KeyViolationError, NotNullViolationError: if existing rows break an enforced key.
        ConcurrentModificationError: if another writer changed the table's metadata, or added rows to an enforced key.
    """
    target.check_writable()
    metadata = target.snapshot.metadata
    added = checked_keys(keys, target.snapshot.schema, target.name, table_keys(metadata.configuration).values())
    changed = replace(metadata, configuration={**metadata.configuration, **key_properties(added)})
    parameters = {"name": ", ".join(added), "expr": ", ".join(key.sql for key in added.values())}
    reads = ReadSet(whole_table=any(key.enforced for key in added.values()))
    return commit_metadata(target, MetadataChange(Operation("ADD CONSTRAINT", parameters), changed, reads), settings)


def drop_constraint(target: Target, name: str, if_exists: bool, settings: WriteSettings) -> Outcome:
    """Drops a CHECK constraint or a key.

    Raises:
        InvalidStatementError: if no constraint has that name and `if_exists` is False.
        ConcurrentModificationError: if another writer changed the table's metadata.
    """
    target.check_writable()
    key = _constraint_named(name, target)
    metadata = target.snapshot.metadata
    if key is None and not if_exists:
        known = ", ".join(constraint_names(metadata.configuration)) or "none"
        raise InvalidStatementError(
            f"the constraint `{name}` does not exist (constraints: {known})",
            remedy="Check its name, or use `drop constraint if exists`",
            table=target.name,
        )
    parameters = {"name": name, "existed": key is not None}
    if key is not None:
        parameters["expr"] = metadata.configuration[key]
    own = (key, f"{EXPECT_PREFIX}{name.lower()}")
    kept = {other: value for other, value in metadata.configuration.items() if other not in own}
    changed = replace(metadata, configuration=kept)
    return commit_metadata(target, MetadataChange(Operation("DROP CONSTRAINT", parameters), changed), settings)


def _check_asked(target: Target, asked: Mapping[str, str], features: Mapping[str, str]) -> None:
    """Checks that SET TBLPROPERTIES may set the properties."""
    for key in asked:
        _refuse_constraint(key, target)
    for key, value in features.items():
        if value.lower() not in ("supported", "enabled"):
            raise InvalidPropertyError(
                f"the table property `{key}` cannot be `{value}`, only `supported`", table=target.name
            )
    protocol = target.snapshot.protocol
    for key, value in asked.items():
        match = _VERSIONS.fullmatch(key)
        if match is None:
            continue
        current = protocol.min_reader_version if match["who"].lower() == "reader" else protocol.min_writer_version
        if int(value) > current:
            raise UnsupportedFeatureError(
                f"the protocol's {match['who'].lower()} version cannot be raised by its number",
                remedy="Enable the feature by its name: set tblproperties ('delta.feature.<name>' = 'supported')",
                table=target.name,
            )


def _refuse_constraint(key: str, target: Target) -> None:
    prefix = next(
        (each for each in (CONSTRAINT_PREFIX, KEY_PREFIX, EXPECT_PREFIX) if key.lower().startswith(each)), None
    )
    if prefix is not None:
        raise InvalidPropertyError(
            f"the constraint `{key[len(prefix) :]}` cannot be changed as a property",
            remedy="Use `alter table ... add constraint` and `drop constraint`",
            table=target.name,
        )


def _refuse_mapping(key: str, target: Target) -> None:
    if key.lower() in (MODE.lower(), MAX_COLUMN_ID.lower()) and is_mapped(target.snapshot.metadata.configuration):
        raise InvalidPropertyError(
            f"the table property `{key}` cannot be unset: it is needed to read the data files", table=target.name
        )


def _property_named(key: str, configuration: Mapping[str, str]) -> str | None:
    """Returns the stored name of a property: protocol names match in any case, the user's own exactly."""
    if key in configuration:
        return key
    folded = key.lower()
    if not folded.startswith("delta."):
        return None
    return next((name for name in configuration if name.lower() == folded), None)


def _constraint_named(name: str, target: Target) -> str | None:
    wanted = {f"{prefix}{name}".lower() for prefix in (CONSTRAINT_PREFIX, KEY_PREFIX)}
    return next((key for key in target.snapshot.metadata.configuration if key.lower() in wanted), None)


def _with_configuration(metadata: Metadata, configuration: Mapping[str, str]) -> Metadata:
    """Returns the metadata with other properties, without the properties that enable a feature by name."""
    kept = {key: value for key, value in configuration.items() if not key.startswith(FEATURE_PREFIX)}
    return replace(metadata, configuration=kept)
