"""Creates tables that consist only of a log: with many files on a local disk, and with many commits in memory."""

from __future__ import annotations

import json
from pathlib import Path

import obstore

from benchmarks.long_logs.tables import LogTable, make, path, stats
from dbt.adapters.silt.engine.kernel.clock import SystemClock
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.storage.object_store import ObjectStore
from dbt.adapters.silt.engine.kernel.table.actions import (
    AddFile,
    CommitInfo,
    Metadata,
    Protocol,
    SetTransaction,
    serialize,
)
from dbt.adapters.silt.engine.kernel.table.paths import LAST_CHECKPOINT, LOG_FOLDER, commit_path
from dbt.adapters.silt.engine.kernel.table.schema import PrimitiveType, StructField, StructType

SCHEMA = StructType((StructField("id", PrimitiveType("long")),))
_CHECKPOINT_EVERY = 10


def many_files(files: int, folder: Path, is_v2: bool) -> ObjectStore:
    """Creates a table with a checkpoint of many files: one classic file, or sidecars of 50,000 files each."""
    make(LogTable("many files", files, files), folder)
    store = ObjectStore(f"file://{folder}").never_reused()
    if is_v2:
        log = DeltaLog(store, "t")
        metadata = log.snapshot().metadata
        v2 = Metadata(metadata.id, metadata.schema_string, configuration={"delta.checkpointPolicy": "v2"})
        protocol = Protocol(3, 7, ("v2Checkpoint",), ("v2Checkpoint",))
        store.put_if_absent(commit_path(1), serialize([_info(), protocol, v2]))
        log.checkpoint(log.snapshot())
        store.delete(f"{LOG_FOLDER}/{0:020}.checkpoint.parquet")
    return store


def many_commits(commits: int, units: int, sidecars: int = 0) -> ObjectStore:
    """Creates a table of one file with many commits within the retention, with checksums and checkpoints.

    Args:
        units: the number of recorded transaction identifiers, which the newest checkpoint contains.
        sidecars: the number of sidecars next to the log.
    """
    store = ObjectStore("memory:///").child("t").never_reused()
    units_done = [SetTransaction(f"silt/shop/model.shop.orders/{number:032x}/main", 1, 1) for number in range(units)]
    metadata = Metadata("an-id", SCHEMA.to_json(), configuration={})
    store.put(commit_path(0), serialize([_info(), Protocol(1, 2), metadata, AddFile("a", {}, 1, 1), *units_done]))
    log = DeltaLog(store, "t", SystemClock())
    log.checkpoint(log.snapshot())
    checkpoint = store.read(f"{LOG_FOLDER}/{0:020}.checkpoint.parquet")
    entry, checksum = serialize([_info()]), json.dumps({"numFiles": 1}).encode()
    for version in range(1, commits):
        _put(store, f"{version:020}.json", entry)
        _put(store, f"{version:020}.crc", checksum)
        if version % _CHECKPOINT_EVERY == 0:
            # Only the newest checkpoint is read; older ones are empty, since they would not fit into memory.
            _put(
                store,
                f"{version:020}.checkpoint.parquet",
                checkpoint if version + _CHECKPOINT_EVERY >= commits else b"",
            )
    for number in range(sidecars):
        _put(store, f"_sidecars/{number:036}.parquet", b"")
    newest = (commits - 1) // _CHECKPOINT_EVERY * _CHECKPOINT_EVERY
    store.put(LAST_CHECKPOINT, json.dumps({"version": newest}).encode())
    return store


def new_file(number: int) -> AddFile:
    """Returns a file with the statistics of `LogTable`."""
    return AddFile(path(number), {}, 10_000, 1_700_000_000_000, stats=stats(number))


def commit_of_others(store: ObjectStore, first: int, count: int) -> None:
    """Writes commits of another writer, each with one file."""
    for version in range(first, first + count):
        store.put_if_absent(commit_path(version), serialize([_info(), new_file(10_000_000 + version)]))


def _info() -> CommitInfo:
    return CommitInfo(timestamp=1_700_000_000_000, operation="WRITE", is_blind_append=True)


def _put(store: ObjectStore, name: str, data: bytes) -> None:
    obstore.put(store._client, f"t/{LOG_FOLDER}/{name}", data)
