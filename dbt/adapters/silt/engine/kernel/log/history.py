"""Finds the time of each commit, and the newest version at a given time.

From the version that enabled in-commit timestamps on, a commit's time is its in-commit timestamp (specification:
"In-Commit Timestamps"). Before that version it is the time in its `commitInfo` or, if that is missing, its file's
modification time, which a copy of the table changes. These two are raised if necessary, so that times strictly increase
with versions.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Final

from dbt.adapters.silt.engine.kernel.clock import utc_text
from dbt.adapters.silt.engine.kernel.errors import VersionNotFoundError
from dbt.adapters.silt.engine.kernel.log.commit_file import CommitFile, read_commit, read_info
from dbt.adapters.silt.engine.kernel.log.log_segment import LogListing, list_log
from dbt.adapters.silt.engine.kernel.storage.store import FileStatus, Store
from dbt.adapters.silt.engine.kernel.table.actions import Action, CommitInfo, changes_rows
from dbt.adapters.silt.engine.kernel.table.properties import TableProperties

_CLOCKS_DIFFER_MS: Final = 60_000
"""Differences between the clocks of a table's writers are not reported up to this limit."""
_SKEW_MS: Final = 3_600_000
"""The greatest difference between the clocks of a table's writers that a search for commits by time allows for."""
_LOOKED_AT: Final = (4, 8, 16, 32)
"""The sizes of the batches in which further commits are read, because times may not be in the order of versions."""
_READERS: Final = 16
_WINDOW: Final = 1_000
"""The number of commits that are read together, from the newest on."""


@dataclass(frozen=True)
class Commit:
    """A version of the log. `timestamp_ms` is milliseconds since 1970-01-01 UTC."""

    version: int
    timestamp_ms: int
    actions: tuple[Action, ...]

    @property
    def info(self) -> CommitInfo:
        """The commit's `commitInfo`; empty if the commit lacks it."""
        return next((action for action in self.actions if isinstance(action, CommitInfo)), CommitInfo())

    @property
    def changes_rows(self) -> bool:
        """Whether it added or removed rows; OPTIMIZE, ALTER TABLE, a comment and an empty commit do not."""
        return changes_rows(self.actions)


def commits(
    store: Store, listing: LogListing, properties: TableProperties, start: int, end: int | None, table: str
) -> Iterator[Commit]:
    """Yields the commits from `start`, or the first existing commit, to `end`, both included, oldest first.

    Raises:
        MissingLogVersionError: if a commit in between is missing.
        CorruptLogError: if a commit cannot be read.
    """
    file_times = file_timestamps(listing.commits)
    last = max(file_times, default=-1)
    earlier: int | None = None
    for version in range(max(start, min(file_times, default=0)), (last if end is None else min(end, last)) + 1):
        actions = read_commit(store, version, table, listing.commits.get(version)).actions(table)
        commit = Commit(version, file_times.get(version, 0), actions)
        stated = commit.info.in_commit_timestamp if has_in_commit_timestamp(version, properties) else None
        earlier = raised(commit.info, commit.timestamp_ms, earlier) if stated is None else stated
        yield replace(commit, timestamp_ms=earlier)


def commit_of(file: FileStatus, commit: CommitFile, properties: TableProperties, table: str) -> Commit:
    """Returns a commit with the time that it or its file states.

    Raises:
        CorruptLogError: if it cannot be read.
    """
    found = Commit(commit.version, 0, commit.actions(table))
    time = stated_time(found.info) or file.modified_ms
    return replace(found, timestamp_ms=snapshot_timestamp(found.info, commit.version, properties, time))


def raised(info: CommitInfo, file_time_ms: int, earlier_ms: int | None) -> int:
    """Returns the time of a commit without an in-commit timestamp, which is later than the previous commit's time.

    Args:
        file_time_ms: the time to use if the `commitInfo` has no time.
        earlier_ms: the time of the previous commit, if known.
    """
    time = stated_time(info) or file_time_ms
    return time if earlier_ms is None else max(time, earlier_ms + 1)


def stated_time(info: CommitInfo) -> int | None:
    """Returns the commit time recorded by the writer, if any."""
    return info.timestamp if info.timestamp is not None and info.timestamp > 0 else None


def snapshot_timestamp(info: CommitInfo, version: int, properties: TableProperties, file_time_ms: int) -> int:
    """Returns the time of a version according to the protocol: its in-commit timestamp, or else its file's time."""
    stated = info.in_commit_timestamp if has_in_commit_timestamp(version, properties) else None
    return file_time_ms if stated is None else stated


def has_in_commit_timestamp(version: int, properties: TableProperties) -> bool:
    first = properties.in_commit_timestamp_enablement_version or 0
    return properties.enable_in_commit_timestamps and version >= first


def file_timestamps(files: Mapping[int, FileStatus]) -> dict[int, int]:
    """Returns a time by version: the file's modification time, but at least 1 ms after the previous version's time."""
    times: dict[int, int] = {}
    latest: int | None = None
    for version in sorted(files):
        modified = files[version].modified_ms
        latest = modified if latest is None else max(modified, latest + 1)
        times[version] = latest
    return times


@dataclass(frozen=True)
class Future:
    """The versions from `first` to `newest`, whose times are in the future; `time_ms` is the first of these times."""

    first: int
    newest: int
    time_ms: int

    @property
    def note(self) -> str:
        """The consequence of such times for queries by timestamp, as a clause."""
        several = self.newest > self.first
        which = f"versions {self.first} to {self.newest} have" if several else f"version {self.first} has"
        until = f"until then `timestamp as of` returns version {self.first - 1}: request a version by its number"
        times = f"times in the future, from {_utc(self.time_ms)} on" if several else f"the time {_utc(self.time_ms)}"
        return f"{which} {times} (a clock ran ahead); {until}" if self.first else f"{which} {times} (a clock ran ahead)"


def is_in_future(time_ms: int, now_ms: int) -> bool:
    """Returns whether the time is in the future by more than the clocks of machines may differ."""
    return time_ms > now_ms + _CLOCKS_DIFFER_MS


def future_of(times: Mapping[int, int], now_ms: int) -> Future | None:
    """Returns the versions with times in the future, if any.

    Args:
        times: times by version, in milliseconds since 1970-01-01 UTC, strictly increasing.
    """
    first = min((version for version, time in times.items() if is_in_future(time, now_ms)), default=None)
    return None if first is None else Future(first, max(times), times[first])


class _Times:
    """The times of commits, from `commitInfo` or else from their files; each is read once."""

    def __init__(
        self,
        store: Store,
        listing: LogListing,
        properties: TableProperties,
        file_times: Mapping[int, int],
        table: str,
    ) -> None:
        self._store, self._listing, self._properties = store, listing, properties
        self._file_times, self._table = file_times, table
        self._known: dict[int, int] = {}

    def of(self, version: int) -> int:
        if version not in self._known:
            self._known[version] = self._stated(version)
        return self._known[version]

    def read(self, versions: Sequence[int]) -> None:
        """Reads the times of these commits in parallel."""
        unknown = [version for version in versions if version not in self._known]
        with ThreadPoolExecutor(_READERS) as pool:
            self._known.update(zip(unknown, pool.map(self._stated, unknown), strict=True))

    def raised(self, versions: Sequence[int]) -> dict[int, int]:
        """Returns the times of consecutive versions by version, raised so that they strictly increase."""
        self.read(versions)
        found: dict[int, int] = {}
        latest: int | None = None
        for version in versions:
            own = self.of(version)
            latest = found[version] = own if latest is None else max(own, latest + 1)
        return found

    def _stated(self, version: int) -> int:
        info = read_info(self._store, version, self._listing.commits[version], self._table)
        is_in_commit = has_in_commit_timestamp(version, self._properties)
        return (info.in_commit_timestamp if is_in_commit else stated_time(info)) or self._file_times[version]


def future_in(store: Store, listing: LogListing, properties: TableProperties, now_ms: int, table: str) -> Future | None:
    """Returns the newest versions with times in the future, if any.

    Reads only the newest commits and the first commits whose files have modification times in the future.

    Raises:
        MissingLogVersionError: if a commit disappeared after the listing.
        CorruptLogError: if a commit cannot be read.
    """
    file_times = file_timestamps(listing.commits)
    times = _Times(store, listing, properties, file_times, table)
    versions, by_files = sorted(file_times), future_of(file_times, now_ms)
    pointed_at = 0 if by_files is None else versions.index(by_files.first)
    looked_at = {*versions[-_READERS:], *(versions[pointed_at:][:_READERS] if by_files else ())}
    found = future_of(times.raised(sorted(looked_at)), now_ms)
    if found is None:
        return None
    before = versions[: versions.index(found.first)]
    first = [*before, found.first][_position(before, times, now_ms + _CLOCKS_DIFFER_MS, 0)]
    return Future(first, versions[-1], found.time_ms if first == found.first else times.of(first))


def version_at(
    store: Store,
    listing: LogListing,
    properties: TableProperties,
    timestamp_ms: int,
    table: str,
    or_newest: bool = False,
) -> int:
    """Returns the newest version that was committed at that time or before.

    Because the clocks of writers differ, the times of earlier commits that may be out of order are read as well. If
    these commits exceed the limits in `_LOOKED_AT`, an earlier commit by a writer with a fast clock is missed.

    Args:
        or_newest: whether a time after the newest commit means that commit. A query with such a time could return
            different rows later, so delta-spark allows it only in RESTORE.

    Raises:
        VersionNotFoundError: if the time is before the first version that can be rebuilt, or after the newest version.
    """
    file_times = file_timestamps(listing.commits)
    earliest = listing.earliest or 0
    times = _Times(store, listing, properties, file_times, table)
    rebuildable = [version for version in file_times if version >= earliest]
    candidates = [version for version in rebuildable if _may_be_at(version, timestamp_ms, properties)]
    in_order = bool(candidates) and has_in_commit_timestamp(candidates[0], properties)
    position = _position(candidates, times, timestamp_ms, 0 if in_order else _SKEW_MS)
    if position == 0:
        first = f"; version {rebuildable[0]} was committed at {_utc(times.of(rebuildable[0]))}" if rebuildable else ""
        raise VersionNotFoundError(f"there is no version at or before {_utc(timestamp_ms)}{first}", table=table)
    found = candidates[position - 1]
    if not or_newest and found == max(file_times) and times.of(found) < timestamp_ms:
        newest = f"the newest version {found}, committed at {_utc(times.of(found))}"
        raise VersionNotFoundError(
            f"{_utc(timestamp_ms)} is after {newest}",
            remedy="Use that time or an earlier time, or omit the time to read the newest version",
            table=table,
        )
    return found


def _position(versions: Sequence[int], times: _Times, timestamp_ms: int, skew_ms: int) -> int:
    """Counts the versions that were committed at that time or before, after raising times so that they increase.

    Args:
        skew_ms: the greatest difference between the clocks of writers.
    """
    end = bisect.bisect_right(versions, timestamp_ms, key=times.of)
    # The version at `end` is later than `timestamp_ms`; only an earlier version can be the first later version.
    first = end
    for count in _LOOKED_AT:
        if first == 0 or times.of(versions[first - 1]) <= timestamp_ms - skew_ms:
            break
        start = max(first - count, 0)
        times.read(versions[start:first])
        first = start
    time: int | None = None
    for index in range(first, end):
        own = times.of(versions[index])
        time = own if time is None else max(own, time + 1)
        if time > timestamp_ms:
            return index
    return end


def _may_be_at(version: int, timestamp_ms: int, properties: TableProperties) -> bool:
    """Returns whether the version and the time are on the same side of the enablement of in-commit timestamps.

    File times before the enablement may be later than in-commit timestamps after it.
    """
    enabled_at = properties.in_commit_timestamp_enablement_timestamp
    if not properties.enable_in_commit_timestamps or enabled_at is None:
        return True
    return has_in_commit_timestamp(version, properties) == (timestamp_ms >= enabled_at)


def _utc(timestamp_ms: int) -> str:
    return utc_text(timestamp_ms, "+00:00", "milliseconds")


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
    return _heads(store, files, sorted(files), table)


def newest_heads(store: Store, table: str) -> Iterator[CommitHead]:
    """Yields the same heads, newest first, and reads them only shortly before. Raises as `read_heads`."""
    files = list_log(store, table).commits
    versions = sorted(files)
    for end in range(len(versions), 0, -_WINDOW):
        start = max(end - _WINDOW, 0)
        # The time of a commit depends on the time of the commit before it.
        found = _heads(store, files, versions[max(start - _LOOKED_AT[-1], 0) : end], table)
        yield from found[: -(end - start) - 1 : -1]


def _heads(store: Store, files: Mapping[int, FileStatus], versions: Sequence[int], table: str) -> list[CommitHead]:
    times = file_timestamps({version: files[version] for version in versions})
    found: list[CommitHead] = []
    for version in versions:
        info = read_info(store, version, files[version], table)
        earlier = found[-1].timestamp_ms if found else None
        found.append(CommitHead(version, info.in_commit_timestamp or raised(info, times[version], earlier), info))
    return found
