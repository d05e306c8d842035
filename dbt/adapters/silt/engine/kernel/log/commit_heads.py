"""Reads the `commitInfo` of each commit of a log without the other actions.

It is the first line of every commit of this engine, so that only that line is read: replaying a thousand tables to find
who committed what, and when, would take a while.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dbt.adapters.silt.engine.kernel.log.commit_file import corrupt_commit
from dbt.adapters.silt.engine.kernel.log.history import file_timestamps
from dbt.adapters.silt.engine.kernel.log.log_segment import list_log, missing_version
from dbt.adapters.silt.engine.kernel.storage.store import FileStatus, ObjectMissing, Store
from dbt.adapters.silt.engine.kernel.table.actions import CommitInfo, parse

_PIECE: Final = 64 << 10


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
    found = []
    for version in sorted(files):
        info = _info(store, version, files[version], table)
        found.append(CommitHead(version, info.in_commit_timestamp or times[version], info))
    return found


def _info(store: Store, version: int, file: FileStatus, table: str) -> CommitInfo:
    try:
        first = _first_line(store, file)
        infos = [action for action in parse(first) if isinstance(action, CommitInfo)]
        if not infos:  # other engines write it at any line, or not at all
            lines = [line for line in store.read(file.path).split(b"\n") if b'"commitInfo"' in line]
            infos = [action for action in parse(b"\n".join(lines)) if isinstance(action, CommitInfo)]
    except ObjectMissing as error:
        raise missing_version(version, table) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise corrupt_commit(version, f"it cannot be read ({error})", table) from error
    return infos[0] if infos else CommitInfo()


def _first_line(store: Store, file: FileStatus) -> bytes:
    if file.size <= _PIECE:
        return store.read(file.path).partition(b"\n")[0]
    data = b""
    with store.open_input(file.path) as source:
        while b"\n" not in data and (piece := source.read(_PIECE)):
            data += piece
    return data.partition(b"\n")[0]
