"""Ends the log of a table that is dropped or replaced by a view, so that every concurrent writer loses."""

from __future__ import annotations

import enum
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from dbt.adapters.silt.engine.kernel import errors, foreign_json
from dbt.adapters.silt.engine.kernel.clock import Clock
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.storage.store import DOCUMENT_BYTES, ObjectMissing, PutResult, Store
from dbt.adapters.silt.engine.kernel.table import json_fields
from dbt.adapters.silt.engine.kernel.table.actions import Action, CommitInfo, serialize
from dbt.adapters.silt.engine.kernel.table.paths import LOG_FOLDER, commit_name, commit_path, parse_log_name
from dbt.adapters.silt.engine.kernel.transaction.changes import (
    DROP_OPERATION,
    DROPPED_PROPERTY,
    has_in_commit_timestamps,
    in_commit_timestamp,
)

REPLACED_BY_PROPERTY = "silt.replacedBy"
_END_ID_PROPERTY = "silt.dropId"

_DROP_MARKER = "_drop.json"


class EndResult(enum.Enum):
    """Whether a log was ended by this call or earlier."""

    ENDED = "ended"
    ENDED_BEFORE = "ended before"


def _anytime() -> None:
    """Raises nothing: the end is always allowed."""


@dataclass(frozen=True)
class End:
    """The conditions of the end of a log.

    Attributes:
        version: ends it only if this is its newest version; None ends any version.
        replaced_by: the definition of the view that replaces the table.
        check: raises an error if the log may not be ended; called right before each try.
        settle: settles the newest publication in the log.
    """

    version: int | None = None
    replaced_by: str | None = None
    check: Callable[[], None] = _anytime
    settle: Callable[[DeltaLog], None] = DeltaLog.settle_publication


def is_table(log: DeltaLog) -> bool:
    """Returns whether a table exists that was not dropped, damaged or not."""
    return has_log(log) and not is_dropped(log)


def has_log(log: DeltaLog) -> bool:
    """Returns whether a table's log exists, also of a table that a drop has ended."""
    return log.store.status(commit_path(0)) is not None or log.exists()


def end_log(log: DeltaLog, clock: Clock, end: End | None = None) -> EndResult:
    """Commits the last version of a table: it changes the metadata, so every concurrent writer conflicts with it.

    A drop conflicts with nothing, so it takes the next free version and ignores other commits. It needs no snapshot: a
    log that is damaged, or of an unknown protocol, is ended as well. A marker is written before the commit, so that a
    drop that is interrupted right after the commit is recognised (`is_dropped`).

    Raises:
        ConcurrentModificationError: if the newest version is not the requested version; the table is unchanged.
        ForeignKeyViolationError: if an enforced foreign key references the table.
        ObjectMissing, NotATableError: if the log was deleted meanwhile.
    """
    end, end_id = end or End(), clock.new_id()
    announce_end(log)
    while True:
        newest = newest_version(log.store)
        snapshot = readable(log)
        if snapshot is not None and snapshot.version < newest:  # before the commit of an undecided publication
            end.settle(log)
            snapshot = readable(log)
        if snapshot is not None and is_last(snapshot):
            is_own = snapshot.metadata.configuration.get(_END_ID_PROPERTY) == end_id  # its answer was lost
            return EndResult.ENDED if is_own else EndResult.ENDED_BEFORE
        if end.version not in (None, newest):
            raise errors.ConcurrentModificationError(
                f"another writer has committed after version {end.version}, so it was not dropped",
                table=log.name,
                version=newest,
            )
        end.check()
        if log.publications is not None and snapshot is not None:
            log.publications.check_droppable(log, snapshot)
        last = {
            _END_ID_PROPERTY: end_id,
            **({} if end.replaced_by is None else {REPLACED_BY_PROPERTY: end.replaced_by}),
        }
        actions = _last_actions(snapshot, clock, last)
        if put_version(log, snapshot, newest + 1, actions) is PutResult.CREATED:
            return EndResult.ENDED


def announce_end(log: DeltaLog) -> None:
    """Writes the marker that makes `is_dropped` look at the log."""
    log.store.put(
        _DROP_MARKER, json.dumps({"format": json_fields.FORMAT, "readable": readable(log) is not None}).encode()
    )


def is_dropped(log: DeltaLog) -> bool:
    """Returns whether a drop has ended the log, and was interrupted before it moved the folder away."""
    try:
        was_readable = foreign_json.loads(log.store.read(_DROP_MARKER, DOCUMENT_BYTES))["readable"]
    except ObjectMissing:
        return False
    except (errors.UnusableFileError, ValueError, KeyError, TypeError):
        was_readable = True  # not written by a drop
    snapshot = readable(log)
    return not was_readable if snapshot is None else is_last(snapshot)


def is_last(snapshot: Snapshot) -> bool:
    """Returns whether the snapshot is of the version that has ended its log."""
    return DROPPED_PROPERTY in snapshot.metadata.configuration


def readable(log: DeltaLog) -> Snapshot | None:
    """Returns the newest snapshot, or None if the log is damaged or of an unknown protocol."""
    try:
        return log.snapshot()
    except (errors.TableDamagedError, errors.UnsupportedFeatureError, errors.InvalidPropertyError):
        return None


def put_version(log: DeltaLog, snapshot: Snapshot | None, version: int, actions: Sequence[Action]) -> PutResult:
    """Writes a version into the snapshot's own log; if the storage has folders, a lock ensures that.

    Raises:
        ObjectMissing: if that log was deleted, and another may have replaced it.
    """
    if snapshot is None or snapshot.log_folder is None or log.store.has_folders:
        return log.store.put_if_absent(commit_path(version), serialize(actions))
    return snapshot.log_folder.put_if_absent(commit_name(version), serialize(actions))


def newest_version(store: Store) -> int:
    """Returns the newest version in the names of the log's files, damaged or not, or -1 if no file has a version."""
    try:
        files = store.list_from(LOG_FOLDER)
    except ObjectMissing:
        return -1
    parsed = (parse_log_name(file.name) for file in files)
    return max((name.version for name in parsed if name is not None), default=-1)


def timed_info(info: CommitInfo, snapshot: Snapshot | None, clock: Clock) -> CommitInfo:
    """Adds the time of a commit, and an in-commit timestamp if the table has in-commit timestamps.

    Args:
        snapshot: the version before the commit, if that version can be read.
    """
    info = replace(info, timestamp=clock.now_ms())
    if snapshot is None or not has_in_commit_timestamps(snapshot.metadata):
        return info
    return replace(info, in_commit_timestamp=in_commit_timestamp(clock.now_ms(), snapshot.timestamp))


def _last_actions(snapshot: Snapshot | None, clock: Clock, last: Mapping[str, str]) -> list[Action]:
    info = CommitInfo(operation=DROP_OPERATION, is_blind_append=False, txn_id=clock.new_id())
    info = timed_info(info, snapshot, clock)
    if snapshot is None:
        return [info]
    properties = {**snapshot.metadata.configuration, DROPPED_PROPERTY: str(info.timestamp), **last}
    return [info, replace(snapshot.metadata, configuration=properties)]
