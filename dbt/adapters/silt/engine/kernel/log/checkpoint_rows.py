"""Builds the rows of a checkpoint, each with a single action in the column of the action's name.

Source: the Delta specification, sections "Checkpoints" and "Checkpoint Schema".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import pyarrow as pa

from dbt.adapters.silt.engine.kernel.files.stats_parsed_write import partition_values_parsed, stats_parsed
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.table.actions import (
    AddFile,
    DomainMetadata,
    Json,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
)
from dbt.adapters.silt.engine.kernel.table.active_files import DELETION_VECTOR, FILES, STRING_MAP, TOMBSTONES, camel

SIDECAR: Final = "sidecar"
CHECKPOINT_METADATA: Final = "checkpointMetadata"

_BATCH_ROWS = 65_536
_TEXTS = pa.list_(pa.string())
_VECTOR = pa.struct([pa.field(camel(member.name), member.type) for member in DELETION_VECTOR])
_DATA_CHANGE = pa.field("dataChange", pa.bool_())

_Members: TypeAlias = dict[str, pa.Array]


def header_rows(snapshot: Snapshot) -> pa.Table:
    """Builds the rows of all actions except the file actions."""
    return rows(
        [
            actions(Protocol.key, [snapshot.protocol.to_json()]),
            actions(Metadata.key, [_metadata_row(snapshot.metadata)]),
            actions(SetTransaction.key, [txn.to_json() for txn in snapshot.transactions.values()]),
            actions(DomainMetadata.key, [domain.to_json() for domain in snapshot.domains.values()]),
        ]
    )


def file_rows(snapshot: Snapshot, tombstones: pa.Table) -> pa.Table:
    """Builds the rows of the snapshot's files and of the removed files (schema `active_files.TOMBSTONES`)."""
    adds = _file_actions(AddFile.key, snapshot.active.whole(), FILES, lambda batch: _add_members(batch, snapshot))
    removes = _file_actions(RemoveFile.key, tombstones, TOMBSTONES, _members)
    return rows([adds, removes])


def actions(key: str, bodies: Sequence[Mapping[str, Json]]) -> pa.Table:
    """Builds the rows of actions of a kind, with only the kind's column; a body has its maps as pairs."""
    return pa.table({key: pa.array(bodies, _TYPES[key])})


def rows(parts: Sequence[pa.Table]) -> pa.Table:
    """Concatenates the parts; the result has the columns of all parts."""
    return pa.concat_tables(parts, promote_options="default")


def _metadata_row(metadata: Metadata) -> dict[str, Any]:
    """Converts the metadata to a row, with maps as pairs for Arrow."""
    return {
        **metadata.to_json(),
        "format": {"provider": metadata.format_provider, "options": list(metadata.format_options.items())},
        "configuration": list(metadata.configuration.items()),
    }


def _file_actions(
    key: str, files: pa.Table, schema: pa.Schema, members: Callable[[pa.RecordBatch], _Members]
) -> pa.Table:
    batches = files.select(schema.names).combine_chunks().to_batches(max_chunksize=_BATCH_ROWS)
    batches = batches or [pa.RecordBatch.from_pylist([], schema=schema)]
    found = [members(batch) for batch in batches]
    # A column that cannot be typed in one batch is omitted from all of them: a column has a single type.
    kept = [name for name in found[0] if all(name in each for each in found)]
    return pa.Table.from_batches([_one_column(key, {name: each[name] for name in kept}) for each in found])


def _one_column(key: str, members: _Members) -> pa.RecordBatch:
    structs = pa.StructArray.from_arrays(
        list(members.values()), fields=[pa.field(name, values.type) for name, values in members.items()]
    )
    return pa.RecordBatch.from_arrays([structs], names=[key])


def _add_members(batch: pa.RecordBatch, snapshot: Snapshot) -> _Members:
    members = _members(batch)
    properties = snapshot.properties
    if not properties.checkpoint_write_stats_as_json:
        del members["stats"]
    if properties.checkpoint_write_stats_as_struct:
        members["stats_parsed"] = stats_parsed(batch.column("stats"), snapshot.metadata)
        values = partition_values_parsed(batch.column("partition_values"), snapshot.metadata)
        if values is not None:
            members["partitionValues_parsed"] = values
    return members


def _members(batch: pa.RecordBatch) -> _Members:
    """Returns the fields by the specification's names."""
    found = {camel(name): _renamed(batch.column(name)) for name in batch.schema.names}
    return {**found, _DATA_CHANGE.name: pa.repeat(pa.scalar(False), batch.num_rows)}


def _renamed(column: pa.Array) -> pa.Array:
    """Renames the fields of a column of deletion vectors as in the specification; returns other columns unchanged."""
    if column.type != DELETION_VECTOR:
        return column
    if column.null_count == len(column):
        return pa.nulls(len(column), _VECTOR)
    members = [column.field(index) for index in range(column.type.num_fields)]
    return pa.StructArray.from_arrays(members, fields=list(_VECTOR), mask=column.is_null())


_TYPES: Mapping[str, pa.StructType] = {
    SetTransaction.key: pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())]),
    Metadata.key: pa.struct(
        [
            ("id", pa.string()),
            ("name", pa.string()),
            ("description", pa.string()),
            ("format", pa.struct([("provider", pa.string()), ("options", STRING_MAP)])),
            ("schemaString", pa.string()),
            ("partitionColumns", _TEXTS),
            ("configuration", STRING_MAP),
            ("createdTime", pa.int64()),
        ]
    ),
    Protocol.key: pa.struct(
        [
            ("minReaderVersion", pa.int32()),
            ("minWriterVersion", pa.int32()),
            ("readerFeatures", _TEXTS),
            ("writerFeatures", _TEXTS),
        ]
    ),
    DomainMetadata.key: pa.struct([("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())]),
    CHECKPOINT_METADATA: pa.struct([("version", pa.int64()), ("tags", STRING_MAP)]),
    SIDECAR: pa.struct(
        [("path", pa.string()), ("sizeInBytes", pa.int64()), ("modificationTime", pa.int64()), ("tags", STRING_MAP)]
    ),
}
