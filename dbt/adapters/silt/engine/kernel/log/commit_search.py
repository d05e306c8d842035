"""Finds commits: the commit of a transaction identifier or a file, and the last commit that changed rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from dbt.adapters.silt.engine.kernel.errors import SiltError, TableDamagedError
from dbt.adapters.silt.engine.kernel.log.builds import DEFINITIONS_KEY, FILES_KEY, UNITS_KEY
from dbt.adapters.silt.engine.kernel.log.history import Commit
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, CommitInfo, Json, RemoveFile, SetTransaction
from dbt.adapters.silt.engine.kernel.table.paths import decode_path

_TRUNCATE: Final = "TRUNCATE"
_DELETE: Final = "DELETE"
_OF_STATEMENTS: Final = ("readVersions", DEFINITIONS_KEY, FILES_KEY)
_NO_CONDITIONS: Final[tuple[Json, ...]] = (None, "", "[]", [])


@dataclass(frozen=True)
class _RecordedCommit:
    """The newest commit that recorded a transaction identifier.

    Attributes:
        commit: the commit; of several statements that it holds, its `info` is that of the statement.
        emptied_at: the newest later version that removed all rows of the table, if any.
    """

    commit: Commit
    emptied_at: int | None = None


def find_commit(log: DeltaLog, app_id: str) -> _RecordedCommit | None:
    """Finds the commit that last recorded a transaction identifier, if the log still has it."""
    emptied_at: int | None = None
    for commit in log.newest_commits():
        if any(isinstance(action, SetTransaction) and action.app_id == app_id for action in commit.actions):
            return _RecordedCommit(_of_unit(commit, app_id), emptied_at)
        if emptied_at is None and _empties(commit):
            emptied_at = commit.version
    return None


def _of_unit(commit: Commit, app_id: str) -> Commit:
    """Returns the commit with the fields of the statement that has a transaction identifier."""
    units = commit.info.extra.get(UNITS_KEY)
    own = units.get(app_id) if isinstance(units, Mapping) else None
    if not isinstance(own, Mapping):
        return commit
    whole = {name: value for name, value in commit.info.to_json().items() if name not in _OF_STATEMENTS}
    others = tuple(each for each in commit.actions if not isinstance(each, CommitInfo))
    return replace(commit, actions=(CommitInfo.from_json({**whole, **own}), *others))


def _empties(commit: Commit) -> bool:
    info = commit.info
    if info.operation == _DELETE:
        return info.operation_parameters.get("predicate") in _NO_CONDITIONS
    return info.operation == _TRUNCATE


Damaged = TypeVar("Damaged", bound=TableDamagedError)


def with_origin(log: DeltaLog, snapshot: Snapshot, error: Damaged) -> Damaged:
    """Adds the statement that restores the table to the version before the data file to the error about the file.

    Returns the error unchanged if that commit is unknown or restoring does not help: the snapshot is not the newest
    version or does not have the file, the first version added the file, or the error already has its own remedy.

    Args:
        error: an error with the file as `path` in its details.
    """
    name = _name(str(error.details.get("path", "")))
    if error.action == type(error).remedy and log.if_file_is_missing is not None:
        return _with_remedy(error, log.if_file_is_missing)
    commit = _commit_of(log, snapshot, name) if name and error.action == type(error).remedy else None
    if commit is None or commit.version == 0:
        return error
    came = f"Version {commit.version} ({commit.info.operation or 'an unnamed operation'}) added the file"
    remedy = (
        f"{came}: restore it from a copy, or `restore table {log.name} to version as of {commit.version - 1}` and run "
        "later statements again; `silt check` finds other damage"
    )
    return _with_remedy(error, remedy)


def _with_remedy(error: Damaged, remedy: str) -> Damaged:
    return type(error)(error.problem, remedy=remedy, table=error.table, version=error.version, details=error.details)


def _commit_of(log: DeltaLog, snapshot: Snapshot, name: str) -> Commit | None:
    """Finds the newest commit that added a file of that name, if the snapshot is the newest and has the file."""
    try:
        if log.snapshot().version != snapshot.version:
            return None
        last = next((each for each in log.newest_commits() if name in (_added(each) | _removed(each))), None)
        return last if last is not None and name in _added(last) else None
    except SiltError:
        return None  # the error about the file matters more


def _added(commit: Commit) -> set[str]:
    return {_name(each.path) for each in commit.actions if isinstance(each, AddFile)}


def _removed(commit: Commit) -> set[str]:
    return {_name(each.path) for each in commit.actions if isinstance(each, RemoveFile)}


def _name(path: str) -> str:
    return decode_path(path).rpartition("/")[2]


def last_data_change(log: DeltaLog) -> int:
    """Returns the time of the newest commit that changed rows, in milliseconds since 1970-01-01 UTC.

    For a table that never had rows, this is the time of its creation. If the log was cleaned up since, it is the time
    of the oldest remaining commit: the rows are at least that old.

    Raises:
        NotATableError, TableDamagedError, StorageError: if the log cannot be read.
    """
    found = log.committed_at(log.snapshot())
    for commit in log.newest_commits():
        found = commit.timestamp_ms
        if commit.changes_rows:
            break
    return found


def last_change(log: DeltaLog, newest: int, after: int) -> int | None:
    """Returns the newest version after `after` that changed data, else `after` itself.

    Returns None if the table has no such version, or its log no longer contains every later commit.

    Args:
        newest: version of the snapshot in use; changes in later versions count too.
    """
    if newest <= after:
        return after if newest == after else None
    oldest = newest + 1
    for commit in log.newest_commits():
        if commit.version <= after:
            break
        if commit.changes_rows:
            return commit.version
        oldest = commit.version
    return after if oldest == after + 1 else None
