"""Reads the `commitInfo` of each commit of a log without the other actions.

Replaying a thousand tables to find who committed what, and when, would take a while.
"""

from __future__ import annotations

from dataclasses import dataclass

from dbt.adapters.silt.engine.kernel.log.commit_info import read_info
from dbt.adapters.silt.engine.kernel.log.history import file_timestamps, raised
from dbt.adapters.silt.engine.kernel.log.log_segment import list_log
from dbt.adapters.silt.engine.kernel.storage.store import Store
from dbt.adapters.silt.engine.kernel.table.actions import CommitInfo


@dataclass(frozen=True)
class CommitHead:
    """One version of the log.

    Attributes:
        timestamp_ms: when it was committed, milliseconds since 1970-01-01 UTC.
        info: empty where the commit has no `commitInfo`.
    """

    version: int
    timestamp_ms: int
    info: CommitInfo


def read_heads(store: Store, table: str) -> list[CommitHead]:
    """The commits whose files are still there, oldest first.

    Args:
        table: for messages.

    Raises:
        NotATableError: there is no log.
        MissingLogVersionError: a commit disappeared since it was listed.
        CorruptLogError: one cannot be read.
        StorageError: the storage failed.
    """
    files = list_log(store, table).commits
    times = file_timestamps(files)
    found: list[CommitHead] = []
    for version in sorted(files):
        info = read_info(store, version, files[version], table)
        earlier = found[-1].timestamp_ms if found else None
        found.append(CommitHead(version, info.in_commit_timestamp or raised(info, times[version], earlier), info))
    return found
