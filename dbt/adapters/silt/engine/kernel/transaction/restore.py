"""Restores an earlier version of a table as a new version: its files, its schema and its properties.

No data file is written or read. The units of work that were committed after the restored version are undone, so the
same commit forgets their transaction identifiers, and a rerun does them again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.files import data_files
from dbt.adapters.silt.engine.kernel.files.deletion_vectors import file_name
from dbt.adapters.silt.engine.kernel.files.file_guard import Content
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.maintenance import vacuum
from dbt.adapters.silt.engine.kernel.publication_marks import OF_TABLES
from dbt.adapters.silt.engine.kernel.table import active_files
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, DomainMetadata, Json, Metadata, SetTransaction
from dbt.adapters.silt.engine.kernel.table.clustering import CLUSTERING_DOMAIN
from dbt.adapters.silt.engine.kernel.table.column_mapping import MAX_COLUMN_ID, max_column_id
from dbt.adapters.silt.engine.kernel.table.features import check_writable, merged
from dbt.adapters.silt.engine.kernel.table.identity import with_farthest_marks
from dbt.adapters.silt.engine.kernel.table.paths import decode_path
from dbt.adapters.silt.engine.kernel.table.properties import ENABLEMENT_TIMESTAMP, ENABLEMENT_VERSION, IsolationLevel
from dbt.adapters.silt.engine.kernel.transaction import commit as transaction
from dbt.adapters.silt.engine.kernel.transaction.changes import (
    NOT_DONE,
    RESTORE_OPERATION,
    RESTORED_VERSION,
    Changes,
    Operation,
    ReadSet,
    as_strings,
)
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitResult, CommitSettings
from dbt.adapters.silt.engine.kernel.transaction.validation import check_changes

# In-commit timestamps continue: these properties record the first commit that has them.
_IN_COMMIT_TIMESTAMPS = ("delta.enableInCommitTimestamps", ENABLEMENT_VERSION, ENABLEMENT_TIMESTAMP)
_FILES_NAMED = 100


@dataclass(frozen=True)
class RestorePoint:
    """The version to restore, and the time as written if the statement named a time."""

    version: int
    timestamp: str | None = None


@dataclass(frozen=True)
class Restoration:
    """A restore that is possible and not yet committed.

    Attributes:
        base: the version before the restore.
        back_to: the version to restore.
        changes: the actions to commit; empty if nothing differs.
        expired: whether a restored file is old enough for a VACUUM to delete it.
    """

    base: Snapshot
    back_to: Snapshot
    changes: Changes
    expired: bool


def prepare(log: DeltaLog, base: Snapshot, point: RestorePoint) -> Restoration:
    """Computes the changes that restore an earlier version; writes nothing.

    The protocol never loses a feature.

    Args:
        base: the newest version.

    Raises:
        VersionNotFoundError: if the log does not contain the version.
        DataFileMissingError: if data files of the version are missing.
        DataFileChangedError: if a data file no longer matches its entry in the log.
        CorruptLogError: if a version checksum contradicts the version.
        UnsupportedStatementError: if the restored table is append-only and rows would be removed.
        UnsupportedFeatureError: if writing the table needs a feature that this engine does not have.
        ConcurrentModificationError: if a VACUUM is running, and files to be restored were removed longer ago than the
            table's retention.
    """
    check_writable(base.protocol, base.table, base.metadata)
    then = log.snapshot_at(point.version)
    then.check_undoubted()
    # The restored version does not depend on anything that the newest version lost, so restoring repairs the table.
    base = replace(base, doubt=None)
    back = then.files.filter(pc.invert(_is_among(then.files, base.files)))
    gone = base.files.filter(pc.invert(_is_among(base.files, then.files)))
    adds = tuple(replace(add, data_change=True) for add in then.add_files(back))
    expired = _expired(log, base, back)
    if expired:
        _check_no_vacuum(log, base)
    _check_there(log, base, then, adds)
    removed_at = log.clock.now_ms()
    removes = tuple(add.remove(removed_at) for add in base.add_files(gone))
    changes = Changes(_operation(point, then, back, gone), adds, removes, forgotten=forgotten_after(base, then))
    changes = _with_definition(changes, base, then)
    check_changes(changes, base, base.table)
    return Restoration(base, then, changes, expired)


def commit(log: DeltaLog, restoration: Restoration, settings: CommitSettings) -> CommitResult:
    """Commits the restoration that `prepare` has computed.

    Raises:
        ConcurrentModificationError: if another writer changed the table since `base`.
        The other errors of `transaction.commit`.
    """
    # Always Serializable: rows that other writers add in the meantime are not in the restored version.
    settings = replace(settings, isolation_level=IsolationLevel.SERIALIZABLE)
    if restoration.expired:
        # Only one attempt: a commit in between might be the start of a VACUUM.
        settings = replace(settings, max_attempts=1)
    reads = ReadSet(whole_table=True, transactions=True)
    try:
        return transaction.commit(log, restoration.base, restoration.changes, reads, settings)
    except errors.CommitAttemptsExhaustedError as error:
        raise _lost_race(error) if restoration.expired else error from error


def forgotten_after(now: Snapshot, then: Snapshot) -> tuple[SetTransaction, ...]:
    """Returns the transaction identifiers recorded between two snapshots, with the versions to reset them to."""
    changes = []
    for app_id, recorded in now.transactions.items():
        if app_id in OF_TABLES:
            continue
        earlier = then.transactions.get(app_id)
        version = NOT_DONE if earlier is None else earlier.version
        if recorded != earlier and recorded.version != version:
            changes.append(SetTransaction(app_id, version))
    return tuple(changes)


def _with_definition(changes: Changes, now: Snapshot, then: Snapshot) -> Changes:
    """Adds the changes of protocol, metadata and domains to the changes."""
    metadata, protocol = _restored_metadata(now, then), merged(now.protocol, then.protocol)
    return replace(
        changes,
        metadata=None if metadata == now.metadata else metadata,
        protocol=None if protocol == now.protocol else protocol,
        domains=_restored_domains(now, then),
    )


def _restored_metadata(now: Snapshot, then: Snapshot) -> Metadata:
    """Returns the earlier metadata, with the present values of counters and of properties about the log itself."""
    configuration = {k: v for k, v in then.metadata.configuration.items() if k not in _IN_COMMIT_TIMESTAMPS}
    configuration |= {k: v for k, v in now.metadata.configuration.items() if k in _IN_COMMIT_TIMESTAMPS}
    if MAX_COLUMN_ID in configuration:
        configuration[MAX_COLUMN_ID] = str(max(map(max_column_id, (now.metadata, then.metadata))))
    schema = with_farthest_marks(then.schema, now.schema)
    text = then.metadata.schema_string if schema == then.schema else schema.to_json()
    return replace(then.metadata, schema_string=text, configuration=configuration)


def _restored_domains(now: Snapshot, then: Snapshot) -> tuple[DomainMetadata, ...]:
    """Returns the domains to set: only the clustering columns are restored, as in delta-spark."""
    present, earlier = now.domains.get(CLUSTERING_DOMAIN), then.domains.get(CLUSTERING_DOMAIN)
    if earlier is not None:
        return () if present == earlier else (earlier,)
    return () if present is None else (replace(present, removed=True),)


def _check_there(log: DeltaLog, base: Snapshot, then: Snapshot, adds: Sequence[AddFile]) -> None:
    vectors = [add.deletion_vector for add in adds if add.deletion_vector is not None]
    names = dict.fromkeys([decode_path(add.path) for add in adds] + [file_name(vector) for vector in vectors])
    missing = data_files.missing(log.store, [name for name in names if name is not None])
    if missing:
        files = "file is" if len(missing) == 1 else "files are"
        raise errors.DataFileMissingError(
            f"version {then.version} cannot be restored: {len(missing)} data {files} missing, such as {missing[0]}",
            remedy="Restore a later version, or restore the files from a backup first; nothing was changed",
            table=base.table,
            version=base.version,
            details={"version": then.version, "files": tuple(missing[:_FILES_NAMED]), "missing": len(missing)},
        )
    log.guard.check(log.store, active_files.files_table(adds), Content(then.metadata), base.table, then.version)


def _expired(log: DeltaLog, base: Snapshot, back: pa.Table) -> bool:
    """Returns whether a file to be restored is old enough for a VACUUM to delete it."""
    if not back.num_rows:
        return False
    limit = log.clock.now_ms() - base.properties.deleted_file_retention_ms
    tombstones = log.tombstones(base)
    young = tombstones.filter(pc.greater(pc.fill_null(tombstones["deletion_timestamp"], 0), limit))
    is_safe = pc.or_(_is_among(back, young), pc.greater(back["modification_time"], limit))
    return not pc.all(is_safe).as_py()


def _check_no_vacuum(log: DeltaLog, base: Snapshot) -> None:
    """Raises an error if a VACUUM is running. A VACUUM that begins later sees the files in use."""
    began = vacuum.running_since(log)
    if began is not None:
        raise errors.ConcurrentModificationError(
            f"the VACUUM of version {began} has not finished, and may delete files that would be restored",
            remedy="Nothing was changed: run it again once VACUUM END is in the history; a VACUUM that was killed "
            "counts as finished a day after it began",
            table=base.table,
            version=base.version,
        )


def _lost_race(error: errors.CommitAttemptsExhaustedError) -> errors.ConcurrentModificationError:
    return errors.ConcurrentModificationError(
        "another writer committed first, while files were to be restored that VACUUM may delete",
        table=error.table,
        version=error.version,
    )


def _is_among(files: pa.Table, others: pa.Table) -> pa.Array:
    """Returns for each file whether `others` has its path and deletion vector."""
    keys = active_files.keys_of(others)
    values = keys.combine_chunks() if isinstance(keys, pa.ChunkedArray) else keys
    return pc.is_in(active_files.keys_of(files), value_set=values)


def _operation(point: RestorePoint, then: Snapshot, back: pa.Table, gone: pa.Table) -> Operation:
    metrics: Mapping[str, int | None] = {
        "tableSizeAfterRestore": then.size_in_bytes,
        "numOfFilesAfterRestore": then.num_files,
        "numRemovedFiles": gone.num_rows,
        "numRestoredFiles": back.num_rows,
        "removedFilesSize": active_files.size(gone),
        "restoredFilesSize": active_files.size(back),
    }
    named: dict[str, Json] = {
        "version": point.version if point.timestamp is None else None,
        "timestamp": point.timestamp,
    }
    if point.timestamp is not None:
        # A time may resolve to another version after commits are cleaned up or files are copied.
        named[RESTORED_VERSION] = point.version
    return Operation(RESTORE_OPERATION, named, as_strings(metrics))
