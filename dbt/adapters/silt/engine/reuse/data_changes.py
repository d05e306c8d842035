"""Finds the commits of a log that changed data: OPTIMIZE, changes of properties and empty commits did not."""

from __future__ import annotations

from dbt.adapters.silt.engine.kernel.log.history import Commit
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, RemoveFile


def changes_data(commit: Commit) -> bool:
    """Returns whether the commit added or removed rows."""
    return any(isinstance(action, AddFile | RemoveFile) and action.data_change for action in commit.actions)


def last_change(log: DeltaLog, after: int) -> int | None:
    """Returns the newest version after `after` that changed data, else `after` itself.

    Returns None if the table has no such version, or its log no longer contains every later commit.
    """
    newest = log.snapshot().version
    if newest <= after:
        return after if newest == after else None
    oldest = newest + 1
    for commit in log.newest_commits():
        if commit.version <= after:
            break
        if changes_data(commit):
            return commit.version
        oldest = commit.version
    return after if oldest == after + 1 else None
