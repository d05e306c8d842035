"""Deletes the part of the log that no version within the table's retention needs.

Source: the Delta specification, section "Metadata Cleanup". A checkpoint and all files of its version or later are
kept. Checkpoints and checksums are deleted first, then the commits in the order of their versions: after an
interruption at any step, the log begins later and has no gap, and a deleted version is reported as deleted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

from dbt.adapters.silt.engine.kernel.errors import SiltError
from dbt.adapters.silt.engine.kernel.log import log_segment
from dbt.adapters.silt.engine.kernel.log.checkpoint_read import read_header
from dbt.adapters.silt.engine.kernel.log.history import file_timestamps
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

_Named: TypeAlias = tuple[LogFileName, FileStatus]

_DAY_MS: Final = 86_400_000
_AT_ONCE: Final = 1000
_CHECKPOINTS = (LogFileKind.CLASSIC_CHECKPOINT, LogFileKind.MULTI_PART_CHECKPOINT, LogFileKind.UUID_CHECKPOINT)


def clean_up(
    store: Store, snapshot: Snapshot, now_ms: int, oldest_needed: Callable[[], int | None] = lambda: None
) -> int:
    """Deletes the expired files of the log if the table's properties enable the clean-up.

    Args:
        snapshot: the newest version, whose properties set the retention. If another log has replaced the snapshot's
            log, that log is not changed.
        now_ms: milliseconds since 1970-01-01 UTC.
        oldest_needed: returns the time of the oldest version that must be kept, because a branch begins with it, if
            any; called only if files have expired.

    Returns:
        The number of deleted files.

    Raises:
        NotATableError, ObjectMissing: if the log was deleted.
        StorageError: if the log cannot be listed or a file cannot be deleted.
    """
    if not snapshot.properties.enable_expired_log_cleanup:
        return 0
    cutoff_ms = expiry(snapshot.properties, now_ms)
    files = _oldest(store, cutoff_ms)
    listing = log_segment.listing_of(files)
    newest = next(_boundaries(listing, cutoff_ms, snapshot), None)
    if newest is None or not _files_before(newest.version, files):
        return 0
    needed_ms = oldest_needed()
    for checkpoint in _boundaries(listing, cutoff_ms if needed_ms is None else min(cutoff_ms, needed_ms), snapshot):
        expired = _files_before(checkpoint.version, files)
        if not expired:
            return 0
        if _is_whole(store, checkpoint, snapshot.table):
            _keep_old_readers_informed(store, snapshot)
            return _delete(store, expired, snapshot, now_ms)
    return 0


def expiry(properties: TableProperties, now_ms: int) -> int:
    """Returns the time before which versions have expired: the UTC midnight before the retention began."""
    return (now_ms - properties.log_retention_ms) // _DAY_MS * _DAY_MS


def _boundaries(
    listing: log_segment.LogListing, cutoff_ms: int, snapshot: Snapshot
) -> Iterator[log_segment.CheckpointFiles]:
    """Yields the checkpoints that the log may begin with, newest first."""
    times = file_timestamps(listing.commits)
    newest_expired = max((version for version, time in times.items() if time <= cutoff_ms), default=-1)
    for checkpoint in listing.checkpoints:
        if checkpoint.version <= newest_expired and checkpoint.version >= _protected(snapshot):
            yield checkpoint


def _protected(snapshot: Snapshot) -> int:
    """Returns the version before which history is only deleted as a whole (table feature `checkpointProtection`)."""
    if not has_feature(snapshot.protocol, "checkpointProtection"):
        return 0
    return snapshot.properties.require_checkpoint_protection_before_version


def _oldest(store: Store, cutoff_ms: int) -> list[_Named]:
    """Lists the log's files up to the first commit that has not expired: they include all files to delete.

    A log may have hundreds of thousands of files, and each checkpoint calls this.
    """
    found: list[_Named] = []
    latest = 0
    for status in store.files_in_order(LOG_FOLDER):
        name = parse_log_name(status.name)
        if name is None:
            continue
        found.append((name, status))
        if name.kind is LogFileKind.COMMIT:
            latest = max(status.modified_ms, latest + 1)
            if latest > cutoff_ms:
                break
    return found


def _files_before(version: int, files: Sequence[_Named]) -> list[_Named]:
    """Returns the files to delete so that the log begins at that version, in the order of their versions."""
    return [
        (name, status)
        for name, status in files
        if name.version < version or (name.kind is LogFileKind.COMPACTION and name.version <= version)
    ]


def _is_whole(store: Store, checkpoint: log_segment.CheckpointFiles, table: str) -> bool:
    """Returns whether the checkpoint can be read: if not, the files before it are its only replacement."""
    try:
        replay(store, log_segment.LogSegment(checkpoint.version, checkpoint, ()), table)
    except SiltError as error:
        _logger.warning("%s: the log was not cleaned up to %s: %s", table, checkpoint.name, error)
        return False
    return True


def _keep_old_readers_informed(store: Store, snapshot: Snapshot) -> None:
    """Keeps a classic checkpoint, in which readers without UUID-named checkpoints find the protocol's new feature.

    Source: "Handling Backward compatibility while moving to UUID-named v2 Checkpoints".
    """
    checkpoints = log_segment.list_log(store, snapshot.table, log_segment.last_checkpoint_hint(store) or 0).checkpoints
    checkpoints = checkpoints or log_segment.list_log(store, snapshot.table).checkpoints
    newest = checkpoints[0]
    has_classic = any(
        checkpoint.kind is not LogFileKind.UUID_CHECKPOINT and checkpoint.version == newest.version
        for checkpoint in checkpoints
    )
    if not has_classic and newest.name.endswith(".parquet"):
        snapshot.put_in_log(store, checkpoint_path(newest.version), store.read(newest.files[0].path))


def _delete(store: Store, expired: Sequence[_Named], snapshot: Snapshot, now_ms: int) -> int:
    deleted = 0
    for paths in _in_steps(store, expired):
        if snapshot.log_folder is not None and not snapshot.log_folder.is_current():
            return deleted
        store.delete_all(paths)
        deleted += len(paths)
    if any(name.kind in _CHECKPOINTS for name, _ in expired):
        deleted += _delete_sidecars(store, snapshot.table, now_ms)
    return deleted


def _in_steps(store: Store, expired: Sequence[_Named]) -> Iterator[list[str]]:
    """Yields the files of each deletion: many at once if no other table will use this location, but single commits.

    A reader or writer considers its version the newest if the next commit is missing, so commits are deleted in order.
    """
    commits = [status.path for name, status in expired if name.kind is LogFileKind.COMMIT]
    others = [status.path for name, status in expired if name.kind is not LogFileKind.COMMIT]
    size = _AT_ONCE if store.is_never_reused else 1
    yield from (others[start : start + size] for start in range(0, len(others), size))
    yield from ([path] for path in commits)


def _delete_sidecars(store: Store, table: str, now_ms: int) -> int:
    """Deletes sidecars that no checkpoint names and that are too old to belong to a checkpoint still being written."""
    oldest_ms = now_ms // _DAY_MS * _DAY_MS - _DAY_MS
    try:
        old = [status for status in store.list_from(SIDECAR_FOLDER) if status.modified_ms < oldest_ms]
    except ObjectMissing:
        return 0
    named = _named_sidecars(store, table) if old else None
    if named is None:
        return 0
    unnamed = [status.path for status in old if status.path not in named]
    store.delete_all(unnamed)
    return len(unnamed)


def _named_sidecars(store: Store, table: str) -> set[str] | None:
    """Returns the sidecars that checkpoints name, or None if a checkpoint cannot be read and may name any sidecar."""
    named: set[str] = set()
    for checkpoint in log_segment.list_log(store, table).checkpoints:
        try:
            named.update(read_header(store, checkpoint, table).file_paths)
        except SiltError as error:
            _logger.warning("%s: sidecars were not cleaned up: %s", table, error)
            return None
    return named
