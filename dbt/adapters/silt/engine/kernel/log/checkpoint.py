"""Writes a checkpoint, classic or V2, and the hint that points to it.

Source: the Delta specification, sections "Checkpoints", "V2 Spec", "Last Checkpoint File" and "Action Reconciliation".
"""

from __future__ import annotations

import hashlib
import json
import urllib.parse
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dbt.adapters.silt.engine.kernel.clock import Clock
from dbt.adapters.silt.engine.kernel.errors import InternalError
from dbt.adapters.silt.engine.kernel.log.checkpoint_rows import (
    CHECKPOINT_METADATA,
    SIDECAR,
    actions,
    file_rows,
    header_rows,
    rows,
)
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.storage.store import Store
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, Json
from dbt.adapters.silt.engine.kernel.table.features import has_feature
from dbt.adapters.silt.engine.kernel.table.paths import (
    LAST_CHECKPOINT,
    SIDECAR_FOLDER,
    checkpoint_path,
    uuid_checkpoint_path,
)

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
