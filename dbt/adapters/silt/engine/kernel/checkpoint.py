"""Writing a classic checkpoint, and the hint that points to it.

Source: the Delta specification, sections "Checkpoints", "Last Checkpoint File" and "Action Reconciliation".
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dbt.adapters.silt.engine.kernel.actions import (
    AddFile,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
)
from dbt.adapters.silt.engine.kernel.columns import DELETION_VECTOR, FILES, STRING_MAP, TOMBSTONES, camel
from dbt.adapters.silt.engine.kernel.errors import InternalError
from dbt.adapters.silt.engine.kernel.paths import LAST_CHECKPOINT, checkpoint_path
from dbt.adapters.silt.engine.kernel.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.store import Store

_TEXTS = pa.list_(pa.string())
_VECTOR = pa.struct([pa.field(camel(member.name), member.type) for member in DELETION_VECTOR])
_DATA_CHANGE = pa.field("dataChange", pa.bool_())


def _file_struct(schema: pa.Schema) -> pa.StructType:
    members = [
        pa.field(camel(member.name), _VECTOR if member.type == DELETION_VECTOR else member.type) for member in schema
    ]
    return pa.struct([*members, _DATA_CHANGE])


_TYPES: Mapping[str, pa.StructType] = {
    SetTransaction.key: pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())]),
    AddFile.key: _file_struct(FILES),
    RemoveFile.key: _file_struct(TOMBSTONES),
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
}
_SCHEMA = pa.schema(list(_TYPES.items()))


def write_checkpoint(store: Store, snapshot: Snapshot, tombstones: pa.Table, now_ms: int) -> None:
    """Writes the snapshot's checkpoint and points `_last_checkpoint` to it.

    Args:
        tombstones: the removed files at the snapshot's version, schema `columns.TOMBSTONES`; those older than the
            table's retention are left out.
        now_ms: milliseconds since 1970-01-01 UTC.

    Raises:
        StorageError: a file cannot be written.
    """
    live = live_tombstones(tombstones, now_ms - snapshot.properties.deleted_file_retention_ms)
    rows = checkpoint_rows(snapshot, live)
    if len(rows) - rows[AddFile.key].null_count != snapshot.num_files:
        raise InternalError("the checkpoint lacks files", table=snapshot.table, version=snapshot.version)
    data = _parquet(rows)
    store.put(checkpoint_path(snapshot.version), data)
    hint = {
        "version": snapshot.version,
        "size": rows.num_rows,
        "sizeInBytes": len(data),
        "numOfAddFiles": snapshot.num_files,
    }
    store.put(LAST_CHECKPOINT, json.dumps(hint, separators=(",", ":")).encode())


def live_tombstones(tombstones: pa.Table, oldest_ms: int) -> pa.Table:
    """The tombstones that were made after that time; one without a time counts as made in 1970."""
    made = pc.fill_null(tombstones["deletion_timestamp"], 0)
    return tombstones.filter(pc.greater(made, oldest_ms))


def checkpoint_rows(snapshot: Snapshot, tombstones: pa.Table) -> pa.Table:
    """The checkpoint's rows: one action each, in the column of its name."""
    properties = snapshot.properties
    # Statistics as columns are not written; as text they are better than none.
    keeps_stats = properties.checkpoint_write_stats_as_json or properties.checkpoint_write_stats_as_struct
    return pa.concat_tables(
        [
            _actions(Protocol.key, [snapshot.protocol.to_json()]),
            _actions(Metadata.key, [_metadata_row(snapshot.metadata)]),
            _actions(SetTransaction.key, [txn.to_json() for txn in snapshot.transactions.values()]),
            _actions(DomainMetadata.key, [domain.to_json() for domain in snapshot.domains.values()]),
            _file_actions(AddFile.key, snapshot.files if keeps_stats else _without_stats(snapshot.files)),
            _file_actions(RemoveFile.key, tombstones),
        ]
    )


def _actions(key: str, bodies: Sequence[Mapping[str, Any]]) -> pa.Table:
    return _rows(key, pa.chunked_array([pa.array(bodies, _TYPES[key])], _TYPES[key]))


def _metadata_row(metadata: Metadata) -> dict[str, Any]:
    """Arrow takes a map as pairs."""
    return {
        **metadata.to_json(),
        "format": {"provider": metadata.format_provider, "options": list(metadata.format_options.items())},
        "configuration": list(metadata.configuration.items()),
    }


def _file_actions(key: str, files: pa.Table) -> pa.Table:
    kind = _TYPES[key]
    structs = [
        pa.StructArray.from_arrays(
            [*map(_renamed, batch.columns), pa.repeat(pa.scalar(False), batch.num_rows)], fields=list(kind)
        )
        for batch in files.to_batches()
    ]
    return _rows(key, pa.chunked_array(structs, kind))


def _renamed(column: pa.Array) -> pa.Array:
    """A column of deletion vectors with the specification's names; any other as it is."""
    if column.type != DELETION_VECTOR:
        return column
    if column.null_count == len(column):
        return pa.nulls(len(column), _VECTOR)
    members = [column.field(index) for index in range(column.type.num_fields)]
    return pa.StructArray.from_arrays(members, fields=list(_VECTOR), mask=column.is_null())


def _rows(key: str, actions: pa.ChunkedArray) -> pa.Table:
    columns = [
        actions if name == key else pa.chunked_array([pa.nulls(len(actions), kind)], kind)
        for name, kind in _TYPES.items()
    ]
    return pa.Table.from_arrays(columns, schema=_SCHEMA)


def _without_stats(files: pa.Table) -> pa.Table:
    position = files.schema.get_field_index("stats")
    return files.set_column(position, FILES.field("stats"), pa.nulls(files.num_rows, pa.string()))


def _parquet(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, compression="snappy", write_page_checksum=True)
    data: bytes = sink.getvalue().to_pybytes()
    return data
