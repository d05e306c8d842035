"""The rules that a commit keeps whatever came before it, checked before anything is written.

Source: the Delta specification, and the reference implementation's `prepareCommit`. Most of them only our own code
could break, which is an InternalError; what a user can ask for has an error of its own.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable

from dbt.adapters.silt.engine.kernel.actions import AddFile, Metadata, Protocol, RemoveFile
from dbt.adapters.silt.engine.kernel.changes import Changes
from dbt.adapters.silt.engine.kernel.columns import file_key
from dbt.adapters.silt.engine.kernel.errors import InternalError, NotNullViolationError, UnsupportedStatementError
from dbt.adapters.silt.engine.kernel.features import check_writable, has_feature
from dbt.adapters.silt.engine.kernel.properties import TableProperties
from dbt.adapters.silt.engine.kernel.schema import StructField, StructType
from dbt.adapters.silt.engine.kernel.snapshot import Snapshot


def check_changes(changes: Changes, base: Snapshot | None, table: str) -> None:
    """Passes where a commit of these changes on that base follows the protocol.

    Args:
        base: None where the commit is the table's first.

    Raises:
        UnsupportedFeatureError: the table needs a feature to be written that this engine does not have.
        UnsupportedStatementError: rows would be removed from an append-only table.
        NotNullViolationError: a partition column declared NOT NULL would hold a null.
        InternalError: any other rule is broken.
    """
    metadata = changes.metadata or (None if base is None else base.metadata)
    protocol = changes.protocol or (None if base is None else base.protocol)
    if metadata is None or protocol is None:
        raise InternalError("the first commit of a table needs its protocol and metadata", table=table)
    check_writable(protocol, table, metadata)
    _check_each_once(changes, table)
    _check_files(changes.adds, metadata, table)
    if base is not None:
        _check_append_only(changes.removes, base, metadata)
        _check_identity(changes, base)


def loses_features(old: Protocol, new: Protocol) -> bool:
    """Whether the new protocol lacks something that the old one has."""
    if new.min_reader_version < old.min_reader_version or new.min_writer_version < old.min_writer_version:
        return True
    named = (*(old.reader_features or ()), *(old.writer_features or ()))
    return not all(has_feature(new, name) for name in named)


def _check_each_once(changes: Changes, table: str) -> None:
    """One commit says one thing about a file, a transaction identifier, a domain."""
    files: tuple[AddFile | RemoveFile, ...] = (*changes.adds, *changes.removes)
    named: dict[str, Iterable[str]] = {
        "added": (add.path for add in changes.adds),
        "removed": (remove.path for remove in changes.removes),
        "added or removed": (file_key(file.path, file.deletion_vector) for file in files),
        "recorded as transaction identifier": (transaction.app_id for transaction in changes.transactions),
        "set as domain": (domain.domain for domain in changes.domains),
    }
    for what, names in named.items():
        twice = sorted(name for name, times in Counter(names).items() if times > 1)
        if twice:
            raise InternalError(f"{', '.join(twice)} would be {what} twice in one commit", table=table)


def _check_files(adds: Iterable[AddFile], metadata: Metadata, table: str) -> None:
    schema = StructType.from_json(metadata.schema_string)
    partitioning = [schema.require(name, table) for name in metadata.partition_columns]
    keys = {field.physical_name for field in partitioning}
    for add in adds:
        if set(add.partition_values) != keys:
            given, wanted = sorted(add.partition_values), sorted(keys)
            raise InternalError(f"{add.path} has the partition values {given} instead of {wanted}", table=table)
        if add.size <= 0:
            raise InternalError(f"{add.path} is an empty file", table=table)
        if add.deletion_vector is not None and not _has_num_records(add):
            raise InternalError(f"{add.path} has a deletion vector and no number of rows", table=table)
        _check_partition_nulls(add, partitioning, table)


def _check_partition_nulls(add: AddFile, partitioning: Iterable[StructField], table: str) -> None:
    for field in partitioning:
        if not field.nullable and not add.partition_values[field.physical_name]:
            raise NotNullViolationError(
                f"the partition column `{field.name}` is NOT NULL and would hold a null", table=table
            )


def _check_append_only(removes: Iterable[RemoveFile], base: Snapshot, metadata: Metadata) -> None:
    if TableProperties(metadata.configuration).append_only and any(remove.data_change for remove in removes):
        raise UnsupportedStatementError(
            "the table is append-only (`delta.appendOnly` is true): its rows cannot be changed or deleted",
            remedy="Set the property to false first, or only insert",
            table=base.table,
            version=base.version,
        )


def _check_identity(changes: Changes, base: Snapshot) -> None:
    """What stays as it is while a table lives."""
    if changes.protocol is not None and loses_features(base.protocol, changes.protocol):
        raise InternalError("the table's protocol would lose features", table=base.table, version=base.version)
    if changes.metadata is None:
        return
    if changes.metadata.id != base.metadata.id:
        raise InternalError("the table's id would change", table=base.table, version=base.version)
    if changes.metadata.partition_columns != base.partition_columns and len(changes.removes) < base.num_files:
        raise InternalError(
            "the table's partitioning would change, and files stay", table=base.table, version=base.version
        )


def _has_num_records(add: AddFile) -> bool:
    return add.stats is not None and "numRecords" in json.loads(add.stats)
