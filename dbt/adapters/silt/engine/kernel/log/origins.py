"""Finds the version that added a damaged file, so that an error about the file can name a remedy."""

from __future__ import annotations

from typing import TypeVar

from dbt.adapters.silt.engine.kernel.errors import SiltError, TableDamagedError
from dbt.adapters.silt.engine.kernel.log.history import Commit
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, RemoveFile
from dbt.adapters.silt.engine.kernel.table.paths import decode_path

Damaged = TypeVar("Damaged", bound=TableDamagedError)


def with_origin(log: DeltaLog, snapshot: Snapshot, error: Damaged) -> Damaged:
    """Adds the statement that restores the table to the version before the data file to the error about the file.

    Returns the error unchanged if that commit is unknown or restoring does not help: the snapshot is not the newest
    version or does not have the file, the first version added the file, or the error already has its own remedy.

    Args:
        error: an error with the file as `path` in its details.
    """
    name = _name(str(error.details.get("path", "")))
    commit = _commit_of(log, snapshot, name) if name and error.action == type(error).remedy else None
    if commit is None or commit.version == 0:
        return error
    came = f"Version {commit.version} ({commit.info.operation or 'an unnamed operation'}) added the file"
    remedy = (
        f"{came}: restore it from a copy, or `restore table {log.name} to version as of {commit.version - 1}` and run "
        "later statements again; `silt check` finds other damage"
    )
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
