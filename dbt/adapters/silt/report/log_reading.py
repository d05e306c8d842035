"""Reads the versions of a table, each with its changes of the table's files.

The sums of the newest version are the snapshot's. The sums of earlier versions are computed backwards from the newest
version, so they are right even if the log's first commits are gone.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from dbt.adapters.silt.engine.kernel.files import stats_json
from dbt.adapters.silt.engine.kernel.log.commit_file import counts_of, read_commits, read_info
from dbt.adapters.silt.engine.kernel.log.history import file_timestamps, raised
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.log_segment import list_log
from dbt.adapters.silt.engine.kernel.storage.store import FileStatus
from dbt.adapters.silt.engine.kernel.table.actions import Action, AddFile, CommitInfo, Metadata, RemoveFile
from dbt.adapters.silt.engine.kernel.table.active_files import file_key
from dbt.adapters.silt.engine.kernel.table.paths import decode_path
from dbt.adapters.silt.engine.kernel.write_counts import WriteCounts

MOST_VERSIONS: Final = 1_000
"""The number of versions of a table that are read, newest first."""

_LARGE: Final = 4 << 20
"""The size in bytes above which only the first line of a commit is read, so its files are not counted."""

_RECORDS: Final = re.compile(r'\{"numRecords":(\d{1,18})[,}]')


@dataclass(frozen=True)
class FileChange:
    """The changes of a table's files by a commit.

    Attributes:
        rows: the number of rows gained, if it can be determined.
    """

    added: int = 0
    removed: int = 0
    bytes_added: int = 0
    bytes_removed: int = 0
    rows: int | None = 0


@dataclass(frozen=True)
class Version:
    """A version of a table.

    Attributes:
        timestamp_ms: the commit time, milliseconds since 1970-01-01 UTC.
        info: empty if the commit has no `commitInfo`.
        metadata: the table's metadata, if the commit changes it.
        change: the changes of files, unless the commit was too large to be read.
    """

    version: int
    timestamp_ms: int
    info: CommitInfo
    metadata: Metadata | None
    change: FileChange | None


@dataclass(frozen=True)
class Removed:
    """A file that is no longer in the table.

    Attributes:
        size: size in bytes, if the log contains it.
        removed_ms: the time of removal, milliseconds since 1970-01-01 UTC.
    """

    size: int | None
    removed_ms: int


@dataclass(frozen=True)
class History:
    """The versions that were read, oldest first, and the files that they removed and that no later version has.

    Attributes:
        left_out: the number of older versions in the log that were not read.
    """

    versions: tuple[Version, ...]
    removed: tuple[Removed, ...]
    left_out: int = 0


@dataclass
class _Files:
    """The known files while the commits are read in their order.

    Attributes:
        live: rows and bytes of the files that commits added, by key; rows may be unknown.
        removed: by path: a file with a new deletion vector still exists.
    """

    live: dict[str, tuple[int | None, int]] = field(default_factory=dict)
    removed: dict[str, Removed] = field(default_factory=dict)

    def apply(self, actions: Iterable[Action], counts: WriteCounts, time_ms: int) -> FileChange:
        """Applies a commit."""
        adds = [action for action in actions if isinstance(action, AddFile)]
        removes = [action for action in actions if isinstance(action, RemoveFile)]
        gone = [self._remove(action, time_ms) for action in removes]
        come, replaced = [], []
        for action in adds:
            key = file_key(action.path, action.deletion_vector)
            self.removed.pop(decode_path(action.path), None)
            if key in self.live:
                replaced.append(self.live[key])
            self.live[key] = _rows(action), action.size
            come.append(self.live[key])
        return _change(come, [*gone, *replaced], counts)

    def _remove(self, action: RemoveFile, time_ms: int) -> tuple[int | None, int]:
        key = file_key(action.path, action.deletion_vector)
        rows, size = self.live.pop(key, (None, action.size or 0))
        self.removed[decode_path(action.path)] = Removed(action.size, action.deletion_timestamp or time_ms)
        return rows, size


def history(log: DeltaLog, newest: int) -> History:
    """Reads the versions up to the newest, as far back as the log goes, and no more than `MOST_VERSIONS`.

    Raises:
        NotATableError, TableDamagedError, StorageError: if the log cannot be read.
    """
    listed = list_log(log.store, log.name).commits
    there = sorted(version for version in listed if version <= newest)
    chosen = {version: listed[version] for version in there[-MOST_VERSIONS:]}
    times, files, found = file_timestamps(chosen), _Files(), list[Version]()
    for version, actions in _read(log, chosen):
        info = next((action for action in actions if isinstance(action, CommitInfo)), CommitInfo())
        earlier = found[-1].timestamp_ms if found else None
        time_ms = info.in_commit_timestamp or raised(info, times[version], earlier)
        metadata = next((action for action in actions if isinstance(action, Metadata)), None)
        is_whole = chosen[version].size <= _LARGE
        change = files.apply(actions, counts_of(info), time_ms) if is_whole else None
        found.append(Version(version, time_ms, info, metadata, change))
    return History(tuple(found), tuple(files.removed.values()), len(there) - len(chosen))


def _read(log: DeltaLog, chosen: Mapping[int, FileStatus]) -> Iterator[tuple[int, tuple[Action, ...]]]:
    """Yields the actions of each commit, but only the `commitInfo` of a large commit."""
    for is_large, group in itertools.groupby(chosen.items(), key=lambda each: each[1].size > _LARGE):
        for first, run in _consecutive(dict(group)):
            if is_large:
                infos = (read_info(log.store, first + at, file, log.name) for at, file in enumerate(run))
                yield from ((first + at, (info,)) for at, info in enumerate(infos))
            else:
                commits = read_commits(log.store, first, run, log.name)
                yield from ((commit.version, commit.actions(log.name)) for commit in commits)


def _consecutive(files: Mapping[int, FileStatus]) -> Iterator[tuple[int, list[FileStatus]]]:
    """Yields the first version of each run of consecutive versions, with the files of the run."""
    for _, group in itertools.groupby(enumerate(files), key=lambda each: each[1] - each[0]):
        versions = [version for _, version in group]
        yield versions[0], [files[version] for version in versions]


def _change(come: list[tuple[int | None, int]], lost: list[tuple[int | None, int]], counts: WriteCounts) -> FileChange:
    rows = [count for count, _ in come], [count for count, _ in lost]
    sums = [sum(size for _, size in each) for each in (come, lost)]
    return FileChange(len(come), len(lost), sums[0], sums[1], _difference(*rows, counts))


def _difference(come: list[int | None], lost: list[int | None], counts: WriteCounts) -> int | None:
    """Returns the rows gained, by the files' statistics if known, else by the metrics of the commit."""
    if None not in come and None not in lost:
        return sum(each or 0 for each in come) - sum(each or 0 for each in lost)
    known = counts.rows_affected is not None
    return (counts.rows_inserted or 0) - (counts.rows_deleted or 0) if known else None


def _rows(add: AddFile) -> int | None:
    """Returns the rows of a file, without rows deleted by its deletion vector."""
    deleted = 0 if add.deletion_vector is None else add.deletion_vector.cardinality
    found = _RECORDS.match(add.stats or "")
    count = int(found[1]) if found else stats_json.record_count(add.stats)
    return None if count is None else count - deleted
