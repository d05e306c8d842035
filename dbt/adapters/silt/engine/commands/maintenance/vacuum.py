"""Runs VACUUM: deletes the files that no version of the table within the retention needs; runs no Spark job.

A version of the log records the start and the amount to delete, another version the end. The files are deleted in
between, in any order: no readable version needs them, so a killed VACUUM has only deleted less, and the next VACUUM
deletes the rest. On a full disk, files are deleted before the first of these versions, until there is room for it.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Final

from dbt.adapters.silt.engine.commands import commit
from dbt.adapters.silt.engine.commands.target import Outcome, WriteSettings
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.maintenance import vacuum as rules
from dbt.adapters.silt.engine.kernel.maintenance.vacuum import Garbage, Needed
from dbt.adapters.silt.engine.kernel.progress import Progress
from dbt.adapters.silt.engine.kernel.storage.store import FileStatus
from dbt.adapters.silt.engine.kernel.table.actions import Json
from dbt.adapters.silt.engine.kernel.table.features import check_writable
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet, as_strings
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitResult

OPERATION: Final = "VACUUM"
RETENTION_CHECK: Final = "silt.retentionDurationCheck.enabled"
"""The session's setting; false allows a retention shorter than `delta.deletedFileRetentionDuration`."""

_logger = logging.getLogger(__name__)

_COMPLETED = "COMPLETED"
_FAILED = "FAILED"
_DELETERS = 8
_BATCH = 1000


@dataclass(frozen=True)
class Retention:
    """The time for which VACUUM keeps files that the newest version does not need.

    Args:
        specified_ms: milliseconds; None for the table's `delta.deletedFileRetentionDuration`.
        is_checked: whether a shorter time than the table's is rejected.
        held: the files that each open transaction needs, which are kept whatever their age, by the transaction's id.
    """

    specified_ms: int | None = None
    is_checked: bool = True
    held: Mapping[str, Collection[str]] = field(default_factory=dict)

    def of(self, snapshot: Snapshot) -> int:
        """Returns the retention in milliseconds.

        Raises:
            RetentionTooShortError: if it is shorter than the table's and checked, or negative.
        """
        configured = snapshot.properties.deleted_file_retention_ms
        if self.specified_ms is None:
            return configured
        if self.specified_ms < 0:
            raise errors.RetentionTooShortError(
                "a retention cannot be negative", remedy="Give a number of hours, 0 or more", table=snapshot.table
            )
        if self.is_checked and self.specified_ms < configured:
            raise errors.RetentionTooShortError(
                f"a retention of {_hours(self.specified_ms)} is shorter than the table's {_hours(configured)} "
                "(`delta.deletedFileRetentionDuration`): files that readers and writers still use would be deleted",
                table=snapshot.table,
            )
        return self.specified_ms


@dataclass(frozen=True)
class Vacuumed:
    """The result of a VACUUM.

    Args:
        outcome: the outcome; None for a dry run.
        garbage: the files and folders that were, or in a dry run would be, deleted.
        cutoff_ms: files that were needed after this time are kept, in milliseconds since 1970-01-01 UTC.
        folders_deleted: the number of deleted empty folders.
    """

    outcome: Outcome | None
    garbage: Garbage
    cutoff_ms: int
    folders_deleted: int = 0


@dataclass(frozen=True)
class _Run:
    log: DeltaLog
    retention: Retention
    settings: WriteSettings


def vacuum(
    log: DeltaLog, retention: Retention, settings: WriteSettings, lite: bool = False, dry_run: bool = False
) -> Vacuumed:
    """Deletes the files that no version within the retention needs.

    Args:
        lite: deletes only files that commits have removed, without listing the table's folder.
        dry_run: deletes and commits nothing.

    Raises:
        RetentionTooShortError: see `Retention.of`; nothing was deleted.
        UnsupportedFeatureError: if this engine may not write the table, and so may not know all needed files.
        UnsupportedStatementError: if `lite` is set, and the log lacks commits that it needs.
        StorageError: if the table's folder cannot be listed, or some files cannot be deleted; the rest were deleted.
    """
    snapshot = log.snapshot()
    check_writable(snapshot.protocol, log.name, snapshot.metadata)
    cutoff_ms = log.clock.now_ms() - retention.of(snapshot)
    run = _Run(log, retention, settings)
    garbage = _garbage(run, snapshot, cutoff_ms, lite)
    if dry_run:
        return Vacuumed(None, garbage, cutoff_ms)
    started = _start_with_room(run, garbage, cutoff_ms)
    if started.version != snapshot.version + 1:
        garbage = _still_garbage(run, garbage, cutoff_ms)
    deleted, failure = _delete(log, garbage.files, settings.progress)
    folders = [folder for folder in garbage.folders if failure is None and log.store.delete_empty_folder(folder)]
    if failure is not None:
        _end(run, _FAILED, {})
        raise failure
    rules.remember(log, cutoff_ms)
    ended = _end(run, _COMPLETED, {"numDeletedFiles": deleted, "numVacuumedDirectories": garbage.folders_seen})
    return Vacuumed(
        Outcome(OPERATION, log.name, ended.version, attempts=ended.attempts), garbage, cutoff_ms, len(folders)
    )


def _garbage(run: _Run, snapshot: Snapshot, cutoff_ms: int, lite: bool) -> Garbage:
    log, progress = run.log, run.settings.progress
    for transaction, files in run.retention.held.items():
        _logger.info("%s: %s files are kept for the open transaction %s", log.name, len(files), transaction)
    keep = _needed(run, snapshot, cutoff_ms)
    if lite:
        return rules.named_by_log(log, keep, cutoff_ms)
    return rules.untracked(log.store, snapshot, keep, cutoff_ms, progress)


def _needed(run: _Run, snapshot: Snapshot, cutoff_ms: int) -> Needed:
    held = (path for files in run.retention.held.values() for path in files)
    return rules.needed(run.log, snapshot, cutoff_ms, held)


def _still_garbage(run: _Run, garbage: Garbage, cutoff_ms: int) -> Garbage:
    """Returns the garbage without files that later commits added to the table again, as RESTORE does."""
    keep = _needed(run, run.log.snapshot(), cutoff_ms)
    return replace(garbage, files=tuple(file for file in garbage.files if not keep.holds(file.path)))


def _delete(log: DeltaLog, files: Sequence[FileStatus], progress: Progress) -> tuple[int, errors.StorageError | None]:
    """Deletes the files, and returns the number of deleted files and the error if some files remain."""
    deleted = 0
    failures: list[errors.StorageError] = []
    with ThreadPoolExecutor(_DELETERS) as pool:
        for start in range(0, len(files), _BATCH):
            results = []
            for result in pool.map(lambda file: _try_to_delete(log, file.path), files[start : start + _BATCH]):
                results.append(result)
                progress("files deleted", start + len(results), len(files))
            failures.extend(result for result in results if result is not None)
            deleted += results.count(None)
            _logger.info("%s: %s of %s files deleted", log.name, deleted, len(files))
    if not failures:
        return deleted, None
    failure = errors.StorageError(
        f"{len(failures)} of {len(files)} files could not be deleted, the first because {failures[0].problem}",
        remedy="Check that the storage can be written, then run VACUUM again",
        table=log.name,
    )
    failure.__cause__ = failures[0]
    return deleted, failure


def _try_to_delete(log: DeltaLog, path: str) -> errors.StorageError | None:
    try:
        log.store.delete(path)
    except errors.StorageError as error:
        return error
    return None


def _start_with_room(run: _Run, garbage: Garbage, cutoff_ms: int) -> CommitResult:
    """Commits the start of the run. If the disk is full, garbage is deleted before that, the largest file first.

    Raises:
        NoSpaceError: if the disk is still full without the garbage.
    """
    largest = sorted(garbage.files, key=lambda file: file.size)
    while True:
        try:
            return _start(run, garbage)
        except errors.NoSpaceError as error:
            if not largest:
                remedy = "VACUUM cannot delete more files of this table now: drop a table, or free space in another way"
                raise errors.NoSpaceError(error.problem, remedy=remedy, table=run.log.name) from error
            file = largest.pop()
            if _still_garbage(run, replace(garbage, files=(file,)), cutoff_ms).files:
                run.log.store.delete(file.path)


def _start(run: _Run, garbage: Garbage) -> CommitResult:
    specified = run.retention.specified_ms
    parameters: dict[str, Json] = {
        "retentionCheckEnabled": run.retention.is_checked,
        "defaultRetentionMillis": run.log.snapshot().properties.deleted_file_retention_ms,
    }
    if specified is not None:
        parameters["specifiedRetentionMillis"] = specified
    metrics = {"numFilesToDelete": len(garbage.files), "sizeOfDataToDelete": garbage.size}
    without_unit = replace(run.settings, txn=None)
    return _commit(run.log, Operation(rules.START, parameters, as_strings(metrics)), without_unit)


def _end(run: _Run, status: str, metrics: Mapping[str, int]) -> CommitResult:
    settings = run.settings if status == _COMPLETED else replace(run.settings, txn=None)
    return _commit(run.log, Operation(rules.END, {"status": status}, as_strings(metrics)), settings)


def _commit(log: DeltaLog, operation: Operation, settings: WriteSettings) -> CommitResult:
    """Commits an entry of the history after the newest version, whichever that is."""
    attempts = 1
    while True:
        try:
            return commit.commit(log, log.snapshot(), Changes(operation), ReadSet(), replace(settings, reads=ReadSet()))
        except (errors.MetadataChangedError, errors.ProtocolChangedError):
            if attempts >= settings.commit.max_attempts:
                raise
            attempts += 1


def _hours(milliseconds: int) -> str:
    return f"{milliseconds / 3_600_000:g} hours"
