"""Deletes the part of the log that no version within the table's retention needs.

Source: the Delta specification, section "Metadata Cleanup". A checkpoint stays, and all files of its version or
later. Files are deleted in the order of their versions, a checkpoint before the commit of its version: wherever that
stops, the log begins later and has no gap, and a deleted version is reported as deleted.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Final

from dbt.adapters.silt.engine.kernel.errors import SiltError
from dbt.adapters.silt.engine.kernel.log.checkpoint_read import read_header
from dbt.adapters.silt.engine.kernel.log.history import file_timestamps
from dbt.adapters.silt.engine.kernel.log.log_segment import CheckpointFiles, LogListing, LogSegment, list_log
from dbt.adapters.silt.engine.kernel.log.replay import replay
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.storage.store import FileStatus, ObjectMissing, Store
from dbt.adapters.silt.engine.kernel.table.features import has_feature
from dbt.adapters.silt.engine.kernel.table.paths import (
    LOG_FOLDER,
    SIDECAR_FOLDER,
    LogFileKind,
    LogFileName,
    checkpoint_path,
    parse_log_name,
)
from dbt.adapters.silt.engine.kernel.table.properties import TableProperties

_logger = logging.getLogger(__name__)

_DAY_MS: Final = 86_400_000
_CHECKPOINTS = (LogFileKind.CLASSIC_CHECKPOINT, LogFileKind.MULTI_PART_CHECKPOINT, LogFileKind.UUID_CHECKPOINT)


def clean_up(store: Store, snapshot: Snapshot, now_ms: int) -> int:
    """Deletes what has expired of the log, if the table's properties ask for it.

    Args:
        snapshot: the newest version; its properties say what expires. A log that has replaced its own is left alone.
        now_ms: milliseconds since 1970-01-01 UTC.

    Returns:
        How many files were deleted.

    Raises:
        NotATableError, ObjectMissing: the log is gone.
        StorageError: the log cannot be listed, or a file of it not deleted.
    """
    if not snapshot.properties.enable_expired_log_cleanup:
        return 0
    listing = list_log(store, snapshot.table)
    cutoff_ms = expiry(snapshot.properties, now_ms)
    files = _named(store)
    for checkpoint in _boundaries(listing, cutoff_ms, snapshot):
        expired = _before(checkpoint.version, files)
        if not expired:
            return 0
        if _is_whole(store, checkpoint, snapshot.table):
            _keep_old_readers_informed(store, listing, snapshot)
            return _delete(store, expired, snapshot, now_ms)
    return 0


def expiry(properties: TableProperties, now_ms: int) -> int:
    """The time before which versions have expired: the UTC midnight before the retention began."""
    return (now_ms - properties.log_retention_ms) // _DAY_MS * _DAY_MS


def _boundaries(listing: LogListing, cutoff_ms: int, snapshot: Snapshot) -> Iterator[CheckpointFiles]:
    """The checkpoints that the log may begin with, the newest first."""
    times = file_timestamps(listing.commits)
    newest_expired = max((version for version, time in times.items() if time <= cutoff_ms), default=-1)
    for checkpoint in listing.checkpoints:
        if checkpoint.version <= newest_expired and checkpoint.version >= _protected(snapshot):
            yield checkpoint


def _protected(snapshot: Snapshot) -> int:
    """The version before which the history must be deleted all at once (table feature `checkpointProtection`)."""
    if not has_feature(snapshot.protocol, "checkpointProtection"):
        return 0
    return snapshot.properties.require_checkpoint_protection_before_version


def _named(store: Store) -> list[tuple[LogFileName, FileStatus]]:
    found = store.list_from(LOG_FOLDER)
    return [(name, status) for status in found if (name := parse_log_name(status.name)) is not None]


def _before(version: int, files: Sequence[tuple[LogFileName, FileStatus]]) -> list[tuple[LogFileName, FileStatus]]:
    """The files to delete so that the log begins at that version, in the order in which they are deleted."""
    expired = [
        (name, status)
        for name, status in files
        if name.version < version or (name.kind is LogFileKind.COMPACTION and name.version <= version)
    ]
    return sorted(expired, key=lambda each: (each[0].version, each[0].kind not in _CHECKPOINTS, each[1].name))


def _is_whole(store: Store, checkpoint: CheckpointFiles, table: str) -> bool:
    """Whether the checkpoint can be read: only the files before it could replace it."""
    try:
        replay(store, LogSegment(checkpoint.version, checkpoint, ()), table)
    except SiltError as error:
        _logger.warning("%s: the log is not cleaned up to %s: %s", table, checkpoint.name, error)
        return False
    return True


def _keep_old_readers_informed(store: Store, listing: LogListing, snapshot: Snapshot) -> None:
    """A reader that knows no UUID-named checkpoints finds the protocol, and so the feature it lacks, in a classic one.

    Source: "Handling Backward compatibility while moving to UUID-named v2 Checkpoints".
    """
    newest = listing.checkpoints[0]
    has_classic = any(
        checkpoint.kind is not LogFileKind.UUID_CHECKPOINT and checkpoint.version == newest.version
        for checkpoint in listing.checkpoints
    )
    if not has_classic and newest.name.endswith(".parquet"):
        snapshot.put_in_log(store, checkpoint_path(newest.version), store.read(newest.files[0].path))


def _delete(store: Store, expired: Sequence[tuple[LogFileName, FileStatus]], snapshot: Snapshot, now_ms: int) -> int:
    deleted = 0
    for _, status in expired:
        if snapshot.log_folder is not None and not snapshot.log_folder.is_current():
            return deleted
        store.delete(status.path)
        deleted += 1
    if any(name.kind in _CHECKPOINTS for name, _ in expired):
        deleted += _delete_sidecars(store, snapshot.table, now_ms)
    return deleted


def _delete_sidecars(store: Store, table: str, now_ms: int) -> int:
    """The sidecars that no checkpoint names, and that are too old to belong to one that is still being written."""
    oldest_ms = now_ms // _DAY_MS * _DAY_MS - _DAY_MS
    try:
        old = [status for status in store.list_from(SIDECAR_FOLDER) if status.modified_ms < oldest_ms]
    except ObjectMissing:
        return 0
    named = _named_sidecars(store, table) if old else None
    if named is None:
        return 0
    unnamed = [status for status in old if status.path not in named]
    for status in unnamed:
        store.delete(status.path)
    return len(unnamed)


def _named_sidecars(store: Store, table: str) -> set[str] | None:
    """The sidecars that checkpoints name; None where one cannot be read, so that any may be named."""
    named: set[str] = set()
    for checkpoint in list_log(store, table).checkpoints:
        try:
            named.update(read_header(store, checkpoint, table).file_paths)
        except SiltError as error:
            _logger.warning("%s: sidecars are not cleaned up: %s", table, error)
            return None
    return named
