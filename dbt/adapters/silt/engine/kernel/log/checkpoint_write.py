"""Writes a checkpoint, classic or V2, and the hint that points to it.

Source: the Delta specification, sections "Checkpoints", "V2 Spec", "Last Checkpoint File" and "Action Reconciliation".
"""

from __future__ import annotations

import hashlib
import json
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dbt.adapters.silt.engine.kernel.clock import Clock
from dbt.adapters.silt.engine.kernel.errors import InternalError
from dbt.adapters.silt.engine.kernel.files.stats_parsed_write import partition_values_parsed, stats_parsed
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.storage.store import Store
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
from dbt.adapters.silt.engine.kernel.table.features import has_feature
from dbt.adapters.silt.engine.kernel.table.paths import (
    LAST_CHECKPOINT,
    SIDECAR_FOLDER,
    checkpoint_path,
    uuid_checkpoint_path,
)

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


PART_ACTIONS = 50_000
"""The maximum number of file actions in a V2 checkpoint's own file, or in each of its sidecars."""


def write_checkpoint(store: Store, snapshot: Snapshot, tombstones: pa.Table, clock: Clock) -> None:
    """Writes the snapshot's checkpoint, of the kind that the table requests, and points `_last_checkpoint` to it.

    Args:
        tombstones: the removed files at the snapshot's version, schema `active_files.TOMBSTONES`; tombstones older than
            the table's retention are omitted.

    Raises:
        ObjectMissing: if the snapshot's log was deleted.
        StorageError: if a file cannot be written.
    """
    live = live_tombstones(tombstones, clock.now_ms() - snapshot.properties.deleted_file_retention_ms)
    header, files = header_rows(snapshot), file_rows(snapshot, live)
    if len(files) - files[AddFile.key].null_count != snapshot.num_files:
        raise InternalError("the checkpoint lacks files", table=snapshot.table, version=snapshot.version)
    hint: dict[str, Json] = {"version": snapshot.version, "numOfAddFiles": snapshot.num_files}
    writes_v2 = snapshot.properties.checkpoint_policy == "v2" and has_feature(snapshot.protocol, "v2Checkpoint")
    if writes_v2:
        hint |= _write_v2(store, snapshot, header, files, clock)
    else:
        hint |= _write_classic(store, snapshot, header, files)
    hint["checksum"] = json_checksum(hint)
    store.put(LAST_CHECKPOINT, json.dumps(hint, separators=(",", ":")).encode())


def live_tombstones(tombstones: pa.Table, oldest_ms: int) -> pa.Table:
    """Returns the tombstones created after that time; a tombstone without a time counts as created in 1970."""
    made = pc.fill_null(tombstones["deletion_timestamp"], 0)
    return tombstones.filter(pc.greater(made, oldest_ms))


def json_checksum(body: dict[str, Json]) -> str:
    """Computes the checksum of a JSON object without its `checksum` entry (specification: "JSON checksum")."""
    entries = _canonical_entries({key: value for key, value in body.items() if key != "checksum"})
    text = ",".join(f"{path}={value}" for path, value in sorted(entries, key=lambda entry: entry[0].encode()))
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def _write_classic(store: Store, snapshot: Snapshot, header: pa.Table, files: pa.Table) -> dict[str, Any]:
    top = rows([header, files])
    data = _parquet(top)
    snapshot.put_in_log(store, checkpoint_path(snapshot.version), data)
    return {"size": top.num_rows, "sizeInBytes": len(data)}


def _write_v2(store: Store, snapshot: Snapshot, header: pa.Table, files: pa.Table, clock: Clock) -> dict[str, Any]:
    """Writes the checkpoint after its sidecars, so that a visible checkpoint is complete."""
    sidecars = _write_sidecars(store, files, clock) if files.num_rows > PART_ACTIONS else []
    sidecar_bytes = sum(sidecar["sizeInBytes"] for sidecar in sidecars)
    tags = {"numOfAddFiles": str(snapshot.num_files)}
    if sidecars:
        tags |= {"sidecarNumActions": str(files.num_rows), "sidecarSizeInBytes": str(sidecar_bytes)}
    about = actions(CHECKPOINT_METADATA, [{"version": snapshot.version, "tags": list(tags.items())}])
    rest = actions(SIDECAR, [{**sidecar, "tags": None} for sidecar in sidecars]) if sidecars else files
    top = rows([about, header, rest])
    data = _parquet(top)
    path = uuid_checkpoint_path(snapshot.version, clock.new_id())
    snapshot.put_in_log(store, path, data)
    return {
        "size": top.num_rows + (files.num_rows if sidecars else 0),
        "sizeInBytes": len(data) + sidecar_bytes,
        "v2Checkpoint": {
            "path": path.rpartition("/")[2],
            "sizeInBytes": len(data),
            "modificationTime": clock.now_ms(),
        },
    }


def _write_sidecars(store: Store, files: pa.Table, clock: Clock) -> list[dict[str, Any]]:
    store.make_folder(SIDECAR_FOLDER)
    written: list[dict[str, Any]] = []
    for start in range(0, files.num_rows, PART_ACTIONS):
        name = f"{clock.new_id()}.parquet"
        data = _parquet(files.slice(start, PART_ACTIONS))
        store.put(f"{SIDECAR_FOLDER}/{name}", data)
        written.append({"path": name, "sizeInBytes": len(data), "modificationTime": clock.now_ms()})
    return written


def _parquet(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="snappy", write_page_checksum=True)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _canonical_entries(value: Json, path: Sequence[str] = ()) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _canonical_entries(inner, (*path, _canonical_text(key)))
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            yield from _canonical_entries(inner, (*path, str(position)))
    else:
        yield "+".join(path), _canonical_text(value) if isinstance(value, str) else json.dumps(value)


def _canonical_text(text: str) -> str:
    return f'"{urllib.parse.quote(text, safe="-._~")}"'
