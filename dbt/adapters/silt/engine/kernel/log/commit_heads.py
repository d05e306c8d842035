"""Reads the `commitInfo` of each commit of a log without the other actions.

Replaying the logs of a thousand tables only to find their commits' authors and times would be slow.
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
    """A version of the log.

    Attributes:
        timestamp_ms: the time of the commit, milliseconds since 1970-01-01 UTC.
        info: its `commitInfo`; empty if the commit lacks it.
    """

    version: int
    timestamp_ms: int
    info: CommitInfo


def read_heads(store: Store, table: str) -> list[CommitHead]:
    """Reads the heads of the commits whose files still exist, oldest first.

    Args:
        table: the table's name, for messages.

    Raises:
        NotATableError: if the log does not exist.
        MissingLogVersionError: if a commit disappeared after the listing.
        CorruptLogError: if a commit cannot be read.
        StorageError: if the storage failed.
    """
    files = list_log(store, table).commits
    times = file_timestamps(files)
    found: list[CommitHead] = []
    for version in sorted(files):
        info = read_info(store, version, files[version], table)
        earlier = found[-1].timestamp_ms if found else None
        found.append(CommitHead(version, info.in_commit_timestamp or raised(info, times[version], earlier), info))
    return found
