"""Tells when each version was committed, and which version was the newest at a time.

A commit's time is, from the version that enabled them on, its in-commit timestamp (specification: "In-Commit
Timestamps"). Before that it is the time that its `commitInfo` states; of a commit that states none, its file's
modification time, which a copy of the table changes. Both are raised where needed, so that times strictly increase with
versions.
"""

from __future__ import annotations

import bisect
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from dbt.adapters.silt.engine.kernel.clock import utc_text
from dbt.adapters.silt.engine.kernel.errors import VersionNotFoundError
from dbt.adapters.silt.engine.kernel.log.commit_file import read_commit
from dbt.adapters.silt.engine.kernel.log.commit_info import read_info
from dbt.adapters.silt.engine.kernel.log.log_segment import LogListing
from dbt.adapters.silt.engine.kernel.storage.store import FileStatus, Store
from dbt.adapters.silt.engine.kernel.table.actions import Action, CommitInfo
from dbt.adapters.silt.engine.kernel.table.properties import TableProperties

_CLOCKS_DIFFER_MS: Final = 60_000
"""Clocks of machines that write to one table may differ so much without a word."""
_SKEW_MS: Final = 3_600_000
"""How far the clocks of the writers of one table may be apart, where commits are looked for by time."""


@dataclass(frozen=True)
class Commit:
    """One version of the log. `timestamp_ms` is milliseconds since 1970-01-01 UTC."""

    version: int
    timestamp_ms: int
    actions: tuple[Action, ...]

    @property
    def info(self) -> CommitInfo:
        """The commit's `commitInfo`; empty where it has none."""
        return next((action for action in self.actions if isinstance(action, CommitInfo)), CommitInfo())


def commits(
    store: Store, listing: LogListing, properties: TableProperties, start: int, end: int | None, table: str
) -> Iterator[Commit]:
    """The commits from `start`, or the first that is there, to `end`, both included, oldest first.

    Raises:
        MissingLogVersionError: one between two others is missing.
        CorruptLogError: one cannot be read.
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


def raised(info: CommitInfo, file_time_ms: int, earlier_ms: int | None) -> int:
    """The time of a commit without an in-commit timestamp, which is after that of the commit before it.

    Args:
        file_time_ms: taken where the commit states no time.
        earlier_ms: the time of the commit before it; None where that is not known.
    """
    time = stated_time(info) or file_time_ms
    return time if earlier_ms is None else max(time, earlier_ms + 1)


def stated_time(info: CommitInfo) -> int | None:
    """When the writer says that it committed; None where it does not say."""
    return info.timestamp if info.timestamp is not None and info.timestamp > 0 else None


def snapshot_timestamp(info: CommitInfo, version: int, properties: TableProperties, file_time_ms: int) -> int:
    """The time of a version as the protocol knows it: its in-commit timestamp, else its file's."""
    stated = info.in_commit_timestamp if has_in_commit_timestamp(version, properties) else None
    return file_time_ms if stated is None else stated


def has_in_commit_timestamp(version: int, properties: TableProperties) -> bool:
    first = properties.in_commit_timestamp_enablement_version or 0
    return properties.enable_in_commit_timestamps and version >= first


def file_timestamps(files: Mapping[int, FileStatus]) -> dict[int, int]:
    """By version: the file's modification time, or one millisecond after the version before where that is later."""
    times: dict[int, int] = {}
    latest: int | None = None
    for version in sorted(files):
        modified = files[version].modified_ms
        latest = modified if latest is None else max(modified, latest + 1)
        times[version] = latest
    return times


@dataclass(frozen=True)
class Future:
    """Versions from `first` to `newest` carry times that have not come yet, the first of them `time_ms`."""

    first: int
    newest: int
    time_ms: int

    @property
    def note(self) -> str:
        """What that means for whoever asks for a time, as a clause."""
        several = self.newest > self.first
        which = f"versions {self.first} to {self.newest} carry" if several else f"version {self.first} carries"
        until = f"until then `timestamp as of` gives version {self.first - 1}: ask for a version by its number"
        times = f"times in the future, from {_utc(self.time_ms)} on" if several else f"the time {_utc(self.time_ms)}"
        return f"{which} {times} (a clock ran ahead); {until}" if self.first else f"{which} {times} (a clock ran ahead)"


def future(store: Store, listing: LogListing, properties: TableProperties, now_ms: int, table: str) -> Future | None:
    """The newest versions whose times have not come yet, by more than clocks may differ; None without any."""
    committed_at = _times(store, listing, properties, table)
    found: dict[int, int] = {}
    for version in sorted(listing.commits, reverse=True):
        time = committed_at(version)
        if time <= now_ms + _CLOCKS_DIFFER_MS:
            break
        found[version] = time
    return Future(min(found), max(found), found[min(found)]) if found else None


def version_at(
    store: Store,
    listing: LogListing,
    properties: TableProperties,
    timestamp_ms: int,
    table: str,
    or_newest: bool = False,
) -> int:
    """The newest version that was committed at that time or before.

    Args:
        or_newest: whether a time after the newest commit means that commit. A reader who gives such a time would get
            other rows for the same time later, so delta-spark allows it only in RESTORE.

    Raises:
        VersionNotFoundError: the time lies before the first version that can be rebuilt, or after the newest.
    """
    file_times = file_timestamps(listing.commits)
    earliest = listing.earliest or 0
    committed_at = _times(store, listing, properties, table)
    rebuildable = [version for version in file_times if version >= earliest]
    candidates = [version for version in rebuildable if _may_be_at(version, timestamp_ms, properties)]
    in_order = bool(candidates) and has_in_commit_timestamp(candidates[0], properties)
    position = _position(candidates, committed_at, timestamp_ms, 0 if in_order else _SKEW_MS)
    if position == 0:
        first = (
            f"; version {rebuildable[0]} was committed at {_utc(committed_at(rebuildable[0]))}" if rebuildable else ""
        )
        raise VersionNotFoundError(f"there is no version at or before {_utc(timestamp_ms)}{first}", table=table)
    found = candidates[position - 1]
    if not or_newest and found == max(file_times) and committed_at(found) < timestamp_ms:
        newest = f"the newest version {found}, committed at {_utc(committed_at(found))}"
        raise VersionNotFoundError(
            f"{_utc(timestamp_ms)} is after {newest}",
            remedy="Ask for that time or an earlier one, or leave the time out to read the newest version",
            table=table,
        )
    return found


def _times(store: Store, listing: LogListing, properties: TableProperties, table: str) -> Callable[[int], int]:
    """Tells when a version was committed, of those that are listed; each commit is read once, when it is asked for."""
    file_times = file_timestamps(listing.commits)

    @functools.cache
    def committed_at(version: int) -> int:
        info = read_info(store, version, listing.commits[version], table)
        stated = info.in_commit_timestamp if has_in_commit_timestamp(version, properties) else stated_time(info)
        return stated or file_times[version]

    return committed_at


def _position(versions: Sequence[int], committed_at: Callable[[int], int], timestamp_ms: int, skew_ms: int) -> int:
    """How many of the versions were committed at that time or before, where each is after the one before it.

    Args:
        committed_at: the times that the commits state; looked up for few of them.
        skew_ms: how far the clocks of writers may be apart.
    """
    first = last = bisect.bisect_right(versions, timestamp_ms, key=committed_at)
    step = 1
    while first > 0 and committed_at(versions[first - 1]) > timestamp_ms - skew_ms:
        first, step = max(first - step, 0), step * 2
    step = 1
    while last < len(versions) and committed_at(versions[last]) <= timestamp_ms + skew_ms:
        last, step = min(last + step, len(versions)), step * 2
    time: int | None = None
    for index in range(first, last):
        own = committed_at(versions[index])
        time = own if time is None else max(own, time + 1)
        if time > timestamp_ms:
            return index
    return last


def _may_be_at(version: int, timestamp_ms: int, properties: TableProperties) -> bool:
    """Whether the version and the time are on the same side of the enablement of in-commit timestamps.

    File times before the enablement and in-commit timestamps after it need not be in order with one another.
    """
    enabled_at = properties.in_commit_timestamp_enablement_timestamp
    if not properties.enable_in_commit_timestamps or enabled_at is None:
        return True
    return has_in_commit_timestamp(version, properties) == (timestamp_ms >= enabled_at)


def _utc(timestamp_ms: int) -> str:
    return utc_text(timestamp_ms, "+00:00", "milliseconds")
