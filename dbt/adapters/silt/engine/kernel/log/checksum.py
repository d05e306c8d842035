"""Writes the version checksum: a small file next to a commit that sums up the table, for readers to check against.

Source: the Delta specification, section "Version Checksum File".
"""

from __future__ import annotations

import json

import pyarrow.compute as pc

from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.storage.store import PutResult, Store
from dbt.adapters.silt.engine.kernel.table.actions import Json
from dbt.adapters.silt.engine.kernel.table.features import has_feature
from dbt.adapters.silt.engine.kernel.table.paths import checksum_path


def write_checksum(store: Store, snapshot: Snapshot) -> PutResult:
    """Writes the snapshot's `.crc`, unless there is one.

    Raises:
        ObjectMissing: the snapshot's log is gone.
        StorageError: it cannot be written.
    """
    return snapshot.put_in_log(store, checksum_path(snapshot.version), checksum(snapshot))


def checksum(snapshot: Snapshot) -> bytes:
    """The content of the snapshot's `.crc`."""
    body: dict[str, Json] = {
        "tableSizeBytes": snapshot.size_in_bytes,
        "numFiles": snapshot.num_files,
        "numMetadata": 1,
        "numProtocol": 1,
        "metadata": snapshot.metadata.to_json(),
        "protocol": snapshot.protocol.to_json(),
        "setTransactions": [transaction.to_json() for transaction in snapshot.transactions.values()],
        "domainMetadata": [domain.to_json() for domain in snapshot.domains.values()],
    }
    if has_feature(snapshot.protocol, "deletionVectors"):
        vectors = snapshot.files["deletion_vector"].combine_chunks().drop_null()
        body["numDeletedRecordsOpt"] = pc.sum(pc.struct_field(vectors, "cardinality")).as_py() or 0
        body["numDeletionVectorsOpt"] = len(vectors)
    if snapshot.properties.enable_in_commit_timestamps:
        body["inCommitTimestampOpt"] = snapshot.timestamp
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
