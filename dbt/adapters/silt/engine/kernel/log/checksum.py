"""Writes the version checksum, a small file next to a commit that summarizes the table, and compares tables with it.

If a commit is truncated at the end of a line, or missing, the log may still be readable: only the checksum of that
version contradicts it.
Source: the Delta specification, section "Version Checksum File".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pyarrow.compute as pc

from dbt.adapters.silt.engine.kernel import errors, foreign_json
from dbt.adapters.silt.engine.kernel.log.replay import TableState
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.storage.store import DOCUMENT_BYTES, ObjectMissing, PutResult, Store
from dbt.adapters.silt.engine.kernel.table.actions import Json, Metadata, Protocol
from dbt.adapters.silt.engine.kernel.table.column_mapping import effective
from dbt.adapters.silt.engine.kernel.table.features import has_feature
from dbt.adapters.silt.engine.kernel.table.paths import checksum_name, checksum_path, commit_path
from dbt.adapters.silt.engine.kernel.table.properties import TableProperties
from dbt.adapters.silt.engine.kernel.table.schema import StructType

TRANSACTIONS: Final = 1_000
"""The checksums of a table with more transaction identifiers omit them, as the specification allows: each commit
writes a checksum, and each opening of the table reads a checksum."""


def write_checksum(store: Store, snapshot: Snapshot) -> PutResult:
    """Writes the snapshot's `.crc` unless the file exists.

    Raises:
        ObjectMissing: if the snapshot's log was deleted.
        StorageError: if the checksum cannot be written.
    """
    return snapshot.put_in_log(store, checksum_path(snapshot.version), checksum(snapshot))


def checksum_of_commit(store: Store, snapshot: Snapshot, state: TableState) -> None:
    """Writes the `.crc` of a version that was just committed, and replaces the `.crc` of a lost commit of that version.

    Raises:
        ObjectMissing: if the snapshot's log was deleted.
        StorageError: if the checksum cannot be written.
    """
    path = checksum_path(snapshot.version)
    if write_checksum(store, snapshot) is PutResult.CREATED:
        return
    if next(differences(_parsed(store.read(path, DOCUMENT_BYTES)), state), None) is not None:
        store.put(path, checksum(snapshot))


def checksum(snapshot: Snapshot) -> bytes:
    """Returns the content of the snapshot's `.crc`."""
    body: dict[str, Json] = {
        "tableSizeBytes": snapshot.size_in_bytes,
        "numFiles": snapshot.num_files,
        "numMetadata": 1,
        "numProtocol": 1,
        "metadata": snapshot.metadata.to_json(),
        "protocol": snapshot.protocol.to_json(),
        "domainMetadata": [domain.to_json() for domain in snapshot.domains.values()],
    }
    if len(snapshot.transactions) <= TRANSACTIONS:
        body["setTransactions"] = [transaction.to_json() for transaction in snapshot.transactions.values()]
    if has_feature(snapshot.protocol, "deletionVectors"):
        vectors = snapshot.files_without_statistics["deletion_vector"].combine_chunks().drop_null()
        body["numDeletedRecordsOpt"] = pc.sum(pc.struct_field(vectors, "cardinality")).as_py() or 0
        body["numDeletionVectorsOpt"] = len(vectors)
    if snapshot.properties.enable_in_commit_timestamps:
        body["inCommitTimestampOpt"] = snapshot.timestamp
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def contradiction(store: Store, version: int, state: TableState) -> str | None:
    """Describes, in a clause, how the checksum of a version contradicts the table.

    Returns None if the checksum agrees, is missing (it is optional) or cannot be read.
    """
    try:
        found = next(differences(_parsed(store.read(checksum_path(version), DOCUMENT_BYTES)), state), None)
    except (ObjectMissing, errors.StorageError, errors.UnusableFileError):
        return None
    return None if found is None else f"the version checksum {checksum_name(version)} has {found}"


def lost_commit(store: Store, version: int) -> str | None:
    """Describes, in a clause, the evidence that the version's commit file was lost, if any."""
    try:
        is_lost = is_orphan(store, version)
    except errors.StorageError:
        return None
    return f"{checksum_name(version)} exists, but its commit is missing" if is_lost else None


def is_orphan(store: Store, version: int) -> bool:
    """Returns whether a version has a checksum but no commit: a checksum is only written after its commit."""
    return store.status(checksum_path(version)) is not None and store.status(commit_path(version)) is None


def differences(body: Json, state: TableState) -> Iterator[str]:
    """Yields the differences between a checksum and the log, such as `numFiles 3, but the log has 2`.

    Args:
        body: the content of the file; entries that do not have the form of a checksum's entries are ignored.
    """
    if not isinstance(body, dict):
        return
    files = state.files.without_statistics()
    sums = {"numFiles": files.num_rows, "tableSizeBytes": pc.sum(files["size"]).as_py() or 0}
    for name, value in sums.items():
        stated = body.get(name)
        if isinstance(stated, int) and stated != value:
            yield f"{name} {stated}, but the log has {value}"
    try:
        yield from _other_definition(body, state)
        yield from _other_transactions(body, state)
        yield from _other_domains(body, state)
    except (ValueError, KeyError, TypeError, AttributeError, errors.CorruptLogError, errors.UnsupportedFeatureError):
        return  # written by an engine that formats these entries differently


def _parsed(content: bytes) -> Json:
    """Parses the file's content; invalid JSON becomes null."""
    try:
        return foreign_json.loads(content)
    except ValueError:
        return None


def comparable_metadata(metadata: Metadata) -> tuple[object, ...]:
    """Returns the parts of the metadata that must be equal in all descriptions of a version."""
    used = effective(metadata)
    schema = StructType.from_json(used.schema_string)
    return used.id, schema, used.partition_columns, dict(used.configuration)


def comparable_protocol(protocol: Protocol) -> tuple[object, ...]:
    """Returns the protocol without the order of its features; an absent list of features equals an empty list."""
    features = (frozenset(each or ()) for each in (protocol.reader_features, protocol.writer_features))
    return (protocol.min_reader_version, protocol.min_writer_version, *features)


def _other_definition(body: Mapping[str, Any], state: TableState) -> Iterator[str]:
    if isinstance(body.get("metadata"), dict):
        if comparable_metadata(Metadata.from_json(body["metadata"])) != comparable_metadata(state.metadata):
            yield "metadata that differs from the log"
    if isinstance(body.get("protocol"), dict):
        if comparable_protocol(Protocol.from_json(body["protocol"])) != comparable_protocol(state.protocol):
            yield "a protocol that differs from the log"


def _other_transactions(body: Mapping[str, Any], state: TableState) -> Iterator[str]:
    """Yields differences of transaction identifiers; if they expire, a later checkpoint may have omitted some."""
    may_expire = TableProperties(state.metadata.configuration).set_transaction_retention_ms is not None
    for each in body.get("setTransactions") or ():
        found = state.transactions.get(each["appId"])
        if found is None and not may_expire:
            yield f"version {each['version']} of the transaction identifier {each['appId']}, which the log lacks"
        if found is not None and found.version != each["version"]:
            yield (
                f"version {each['version']} of the transaction identifier {each['appId']}, but the log "
                f"has version {found.version}"
            )


def _other_domains(body: Mapping[str, Any], state: TableState) -> Iterator[str]:
    if isinstance(body.get("domainMetadata"), list):
        stated = {each["domain"]: each["configuration"] for each in body["domainMetadata"] if not each.get("removed")}
        if stated != {name: domain.configuration for name, domain in state.domains.items()}:
            yield "domains of metadata that differ from the log"
