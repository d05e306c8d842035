"""Checks the rules of every commit before anything is written.

Source: the Delta specification, and delta-spark's `prepareCommit`. Most rules can be broken only by a bug of this
engine, which is an InternalError; the remaining rules have their own errors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.files import stats_json
from dbt.adapters.silt.engine.kernel.files.statistics import indexed_columns
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.table import actions
from dbt.adapters.silt.engine.kernel.table.active_files import file_key
from dbt.adapters.silt.engine.kernel.table.clustering import clustering_columns
from dbt.adapters.silt.engine.kernel.table.column_mapping import check_mapping
from dbt.adapters.silt.engine.kernel.table.features import check_writable, has_feature
from dbt.adapters.silt.engine.kernel.table.properties import TableProperties
from dbt.adapters.silt.engine.kernel.table.schema import (
    CHANGE_TYPE,
    COMMIT_TIMESTAMP,
    COMMIT_VERSION,
    StructField,
    StructType,
    all_fields,
)
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes


def check_changes(changes: Changes, base: Snapshot | None, table: str) -> None:
    """Checks that a commit of these changes on this base follows the protocol.

    Args:
        base: the base; None for the table's first commit.

    Raises:
        UnsupportedFeatureError: if writing the table needs a feature that this engine does not have, or the table is
            clustered by a column without statistics.
        UnsupportedStatementError: if rows would be removed from an append-only table, or the column mapping changed
            together with data in a table that records its changes.
        InvalidNameError: if a table that records its changes would have a column named like a column of the feed.
        NotNullViolationError: if a partition column declared NOT NULL would hold a null.
        CorruptLogError: if the columns of the base break the rules of column mapping.
        InternalError: if any other rule is broken.
    """
    metadata = changes.metadata or (None if base is None else base.metadata)
    protocol = changes.protocol or (None if base is None else base.protocol)
    if metadata is None or protocol is None:
        raise errors.InternalError("the first commit of a table needs its protocol and metadata", table=table)
    check_writable(protocol, table, metadata)
    if base is not None:
        check_mapping(base.metadata, table, errors.CorruptLogError)
    if changes.metadata is not None:
        check_mapping(changes.metadata, table)
    _check_each_once(changes, table)
    _check_files(changes.adds, metadata, table)
    _check_change_files(changes.change_files, metadata, table)
    if TableProperties(metadata.configuration).enable_change_data_feed:
        _check_feed(changes, base, metadata, table)
    if base is not None and (changes.adds or changes.metadata or changes.domains):
        _check_clustering(metadata, {**base.domains, **{each.domain: each for each in changes.domains}}, table)
    if base is not None:
        _check_append_only(changes.removes, base, metadata)
        _check_identity(changes, base)


def loses_features(old: actions.Protocol, new: actions.Protocol) -> bool:
    """Returns whether the new protocol lacks a feature of the old protocol."""
    if new.min_reader_version < old.min_reader_version or new.min_writer_version < old.min_writer_version:
        return True
    named = (*(old.reader_features or ()), *(old.writer_features or ()))
    return not all(has_feature(new, name) for name in named)


def _check_each_once(changes: Changes, table: str) -> None:
    """Raises an error if a commit has two actions on the same file, transaction identifier or domain."""
    files: tuple[actions.AddFile | actions.RemoveFile, ...] = (*changes.adds, *changes.removes)
    named: dict[str, Iterable[str]] = {
        "added": (add.path for add in changes.adds),
        "added as change data": (file.path for file in changes.change_files),
        "removed": (remove.path for remove in changes.removes),
        "added or removed": (file_key(file.path, file.deletion_vector) for file in files),
        "recorded as transaction identifier": (each.app_id for each in (*changes.transactions, *changes.forgotten)),
        "set as domain": (domain.domain for domain in changes.domains),
    }
    for what, names in named.items():
        twice = sorted(name for name, times in Counter(names).items() if times > 1)
        if twice:
            raise errors.InternalError(f"{', '.join(twice)} would be {what} twice in one commit", table=table)


def _check_files(adds: Iterable[actions.AddFile], metadata: actions.Metadata, table: str) -> None:
    schema = StructType.from_json(metadata.schema_string)
    partitioning = [schema.require(name, table) for name in metadata.partition_columns]
    keys = set(_partition_keys(metadata))
    for add in adds:
        _check_file(add, keys, table)
        if add.deletion_vector is not None and not _has_num_records(add):
            raise errors.InternalError(f"{add.path} has a deletion vector and no number of rows", table=table)
        _check_partition_nulls(add, partitioning, table)


def _check_change_files(change_files: Iterable[actions.AddCDCFile], metadata: actions.Metadata, table: str) -> None:
    schema = StructType.from_json(metadata.schema_string)
    keys = {schema.require(name, table).physical_name for name in metadata.partition_columns}
    for file in change_files:
        _check_file(file, keys, table)
        if file.data_change:
            raise errors.InternalError(f"{file.path} is a change-data file, but is marked dataChange=true", table=table)


def _check_file(file: actions.AddFile | actions.AddCDCFile, keys: set[str], table: str) -> None:
    if set(file.partition_values) != keys:
        given, wanted = sorted(file.partition_values), sorted(keys)
        raise errors.InternalError(f"{file.path} has the partition values {given} instead of {wanted}", table=table)
    if file.size <= 0:
        raise errors.InternalError(f"{file.path} is an empty file", table=table)


def _check_feed(changes: Changes, base: Snapshot | None, metadata: actions.Metadata, table: str) -> None:
    """Raises an error if a commit is not allowed in a table that records its changes, as in delta-spark."""
    schema = StructType.from_json(metadata.schema_string)
    for name in (CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP):
        if name in schema:
            raise errors.InvalidNameError(
                f"a table that records its changes cannot have a column `{name}`: the change data feed uses that name",
                table=table,
            )
    if base is None or changes.metadata is None or not (changes.adds or changes.removes):
        return
    if _is_newly_mapped(base, metadata):
        raise errors.UnsupportedStatementError(
            "its columns cannot be mapped, dropped or renamed in the same commit as its data, because the table "
            "records its changes (`delta.enableChangeDataFeed` is true)",
            remedy="Change the columns by ALTER TABLE first, or set the property to false",
            table=table,
            version=base.version,
        )


def _is_newly_mapped(base: Snapshot, metadata: actions.Metadata) -> bool:
    """Returns whether column mapping is enabled, or a mapped column is dropped or renamed."""
    mode = TableProperties(metadata.configuration).column_mapping_mode
    if mode == "none":
        return False
    if base.properties.column_mapping_mode == "none":
        return True
    new = {field.physical_name: field.name for field in all_fields(StructType.from_json(metadata.schema_string))}
    return any(new.get(field.physical_name) != field.name for field in all_fields(base.schema))


def _check_partition_nulls(add: actions.AddFile, partitioning: Iterable[StructField], table: str) -> None:
    for field in partitioning:
        if not field.nullable and not add.partition_values[field.physical_name]:
            raise errors.NotNullViolationError(
                f"the partition column `{field.name}` is NOT NULL and would hold a null", table=table
            )


def _check_append_only(removes: Iterable[actions.RemoveFile], base: Snapshot, metadata: actions.Metadata) -> None:
    if TableProperties(metadata.configuration).append_only and any(remove.data_change for remove in removes):
        raise errors.UnsupportedStatementError(
            "the table is append-only (`delta.appendOnly` is true): its rows cannot be changed or deleted",
            remedy="Set the property to false first, or only insert",
            table=base.table,
            version=base.version,
        )


def _check_clustering(metadata: actions.Metadata, domains: Mapping[str, actions.DomainMetadata], table: str) -> None:
    """Raises an error if files of a clustered table would lack statistics of the clustering columns."""
    schema, properties = StructType.from_json(metadata.schema_string), TableProperties(metadata.configuration)
    indexed = {column.path for column in indexed_columns(schema, properties, metadata.partition_columns)}
    missing = [path for path in clustering_columns(domains) if path not in indexed]
    if missing:
        raise errors.UnsupportedFeatureError(
            f"the table is clustered by {', '.join('.'.join(path) for path in missing)}, but its properties exclude"
            " them from the statistics: it cannot be written",
            table=table,
            details={"features": ("clustering",)},
        )


def _check_identity(changes: Changes, base: Snapshot) -> None:
    """Raises an error if a commit would change the table's id, lose protocol features, or repartition kept files."""
    if changes.protocol is not None and loses_features(base.protocol, changes.protocol):
        raise errors.InternalError("the table's protocol would lose features", table=base.table, version=base.version)
    if changes.metadata is None:
        return
    if changes.metadata.id != base.metadata.id:
        raise errors.InternalError("the table's id would change", table=base.table, version=base.version)
    if _partition_keys(changes.metadata) != _partition_keys(base.metadata) and len(changes.removes) < base.num_files:
        raise errors.InternalError(
            "the table's partitioning would change, and files stay", table=base.table, version=base.version
        )


def _partition_keys(metadata: actions.Metadata) -> tuple[str, ...]:
    """Returns the physical names of the partition columns."""
    schema = StructType.from_json(metadata.schema_string)
    return tuple(schema.require(name).physical_name for name in metadata.partition_columns)


def _has_num_records(add: actions.AddFile) -> bool:
    return stats_json.record_count(add.stats) is not None
