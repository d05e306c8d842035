"""Finds the last change of the rows of a table, which need not be its last commit.

OPTIMIZE, ALTER TABLE, a comment, or an empty commit change no rows.
"""

from __future__ import annotations

from dbt.adapters.silt.engine.kernel.log.log import DeltaLog


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
