"""Finds when the rows of a table last changed, which is not the time of its last commit.

OPTIMIZE, ALTER TABLE, a comment, or an empty commit change no rows.
"""

from __future__ import annotations

from dbt.adapters.silt.engine.kernel.log.history import Commit
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, RemoveFile


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
        if _changes_rows(commit):
            break
    return found


def _changes_rows(commit: Commit) -> bool:
    return any(isinstance(action, AddFile | RemoveFile) and action.data_change for action in commit.actions)
