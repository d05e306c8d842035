"""Finds the files of the log from which a version of a table can be built: commits, usually after a checkpoint.

Source: the Delta specification, sections "Checkpoints" and "Last Checkpoint File". `_last_checkpoint` only determines
the start of the listing: if it is wrong, that costs time, never correctness.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dbt.adapters.silt.engine.kernel import errors, foreign_json
from dbt.adapters.silt.engine.kernel.storage.store import DOCUMENT_BYTES, FileStatus, ObjectMissing, Store
from dbt.adapters.silt.engine.kernel.table import paths


@dataclass(frozen=True)
class CheckpointFiles:
    """A complete checkpoint, with its parts in order."""

    version: int
    kind: paths.LogFileKind
    files: tuple[FileStatus, ...]

    @property
    def name(self) -> str:
        return self.files[0].name


@dataclass(frozen=True)
class Compaction:
    """A log compaction file, which may be read in place of the commits `first` to `last`."""

    first: int
    last: int
    status: FileStatus


@dataclass(frozen=True)
class LogSegment:
    """The files from which a version can be built.

    Args:
        commits: the files of `checkpoint.version + 1` (or 0) to `version`, without gaps.
        compactions: compactions that may replace some of these commits, oldest first; they do not overlap.
    """

    version: int
    checkpoint: CheckpointFiles | None
    commits: tuple[FileStatus, ...]
    compactions: tuple[Compaction, ...] = ()

    @property
    def first_commit(self) -> int:
        return 0 if self.checkpoint is None else self.checkpoint.version + 1


@dataclass(frozen=True)
class LogListing:
    """The log files found by a listing.

    Args:
        commits: commit files by version.
        checkpoints: complete checkpoints, newest first; at the same version, a single file before several parts.
        start: the first version of the listing.
        compactions: log compaction files in any order.
    """

    commits: Mapping[int, FileStatus] = field(default_factory=dict)
    checkpoints: tuple[CheckpointFiles, ...] = ()
    start: int = 0
    compactions: tuple[Compaction, ...] = ()

    @property
    def newest(self) -> int | None:
        """The newest version in the listing; None if it is empty."""
        versions = itertools.chain(self.commits, (checkpoint.version for checkpoint in self.checkpoints))
        return max(versions, default=None)

    @property
    def earliest(self) -> int | None:
        """The earliest version that can be rebuilt, if any."""
        if 0 in self.commits:
            return 0
        return min((checkpoint.version for checkpoint in self.checkpoints), default=None)

    def segments(self, version: int) -> Iterator[LogSegment]:
        """Yields the segments from which the version can be built, cheapest first."""
        for checkpoint in self.checkpoints:
            if checkpoint.version <= version and self._gap(checkpoint.version + 1, version) is None:
                yield self._segment(version, checkpoint)
        if self.start == 0 <= version and self._gap(0, version) is None:
            yield self._segment(version, None)

    def missing(self, version: int) -> int | None:
        """Returns the first missing commit after the newest checkpoint at or before the version, if any."""
        usable = (checkpoint.version for checkpoint in self.checkpoints if checkpoint.version <= version)
        return self._gap(next(usable, -1) + 1, version)

    def _gap(self, first: int, last: int) -> int | None:
        return next((version for version in range(first, last + 1) if version not in self.commits), None)

    def _segment(self, version: int, checkpoint: CheckpointFiles | None) -> LogSegment:
        first = 0 if checkpoint is None else checkpoint.version + 1
        commits = tuple(self.commits[v] for v in range(first, version + 1))
        return LogSegment(version, checkpoint, commits, tuple(self._compactions(first, version)))

    def _compactions(self, first: int, last: int) -> Iterator[Compaction]:
        """Yields compactions within these versions that do not overlap: the longest for each first version."""
        within = (each for each in self.compactions if first <= each.first < each.last <= last)
        for compaction in sorted(within, key=lambda each: (each.first, -each.last)):
            if compaction.first >= first:
                yield compaction
                first = compaction.last + 1


def list_log(store: Store, table: str, start: int = 0) -> LogListing:
    """Lists the log's files of version `start` and later.

    Raises:
        NotATableError: if the log's folder does not exist.
        StorageError: if the listing failed.
    """
    try:
        found = store.list_from(paths.LOG_FOLDER, paths.version_prefix(start) if start else "")
    except ObjectMissing as error:
        raise errors.NotATableError(
            f"{store.root} holds no {paths.LOG_FOLDER}: it is not a Delta table", table=table
        ) from error
    return listing_of(
        [(name, status) for status in found if (name := paths.parse_log_name(status.name)) is not None], start
    )


def listing_of(named: Sequence[tuple[paths.LogFileName, FileStatus]], start: int = 0) -> LogListing:
    """Creates a listing from these files of version `start` and later."""
    commits = {name.version: status for name, status in named if name.kind is paths.LogFileKind.COMMIT}
    compactions = tuple(
        Compaction(name.version, name.last_version, status) for name, status in named if name.last_version is not None
    )
    return LogListing(commits, _checkpoints(named), start, compactions)


def newest_listing(store: Store, table: str) -> LogListing:
    """Lists the log's files without gaps from a checkpoint, or from commit 0, to the newest version.

    Raises:
        NotATableError: if the log does not exist or is empty.
        MissingLogVersionError: if a commit is missing.
        StorageError: if the listing failed.
    """
    hint = last_checkpoint_hint(store)
    if hint is not None:
        listing = list_log(store, table, hint)
        if listing.newest is not None and next(listing.segments(listing.newest), None) is not None:
            return listing
    return complete_listing(store, table)


def listing_with(store: Store, version: int, table: str) -> LogListing:
    """Returns a listing from which the version can be built, even if later versions cannot.

    Raises:
        VersionNotFoundError: if the version does not exist or was cleaned up.
        MissingLogVersionError: if a commit that the version needs is missing.
        NotATableError, StorageError: as `newest_listing`.
    """
    hint = last_checkpoint_hint(store)
    for start in (0,) if hint is None or hint > version else (hint, 0):
        listing = with_unlisted(store, list_log(store, table, start), version)
        if next(listing.segments(version), None) is not None:
            return listing
    if listing.newest is None:
        raise _no_table(store, table)
    if listing.earliest is not None and listing.earliest <= version <= listing.newest:
        raise missing_version(listing.missing(version) or version, table)
    raise errors.VersionNotFoundError(
        f"there is no version {version}; the log has versions {listing.earliest} to {listing.newest}", table=table
    )


def complete_listing(store: Store, table: str) -> LogListing:
    """Lists the whole log. Raises as `newest_listing`."""
    listed = list_log(store, table)
    listing = with_unlisted(store, listed, listed.newest or 0)
    if listing.newest is None:
        raise _no_table(store, table)
    if next(listing.segments(listing.newest), None) is None:
        raise missing_version(listing.missing(listing.newest) or 0, table)
    return listing


def with_unlisted(store: Store, listing: LogListing, version: int) -> LogListing:
    """Adds the existing commits up to a version that the listing did not show.

    A listing may be out of date, or commits may have been written during it.
    """
    if listing.start > 0 and all(checkpoint.version > version for checkpoint in listing.checkpoints):
        return listing
    found: dict[int, FileStatus] = {}
    while (missing := replace(listing, commits={**listing.commits, **found}).missing(version)) is not None:
        status = store.status(paths.commit_path(missing))
        if status is None:
            break
        found[missing] = status
    return replace(listing, commits={**listing.commits, **found})


def _no_table(store: Store, table: str) -> errors.NotATableError:
    return errors.NotATableError(
        f"{store.root}/{paths.LOG_FOLDER} holds no commit: it is not a Delta table", table=table
    )


def missing_version(version: int, table: str) -> errors.MissingLogVersionError:
    return errors.MissingLogVersionError(
        f"the log has a gap: {paths.commit_name(version)} is missing", table=table, details={"missing": version}
    )


def last_checkpoint_hint(store: Store) -> int | None:
    """Returns the version that `_last_checkpoint` names, if the file exists and is usable."""
    try:
        version = foreign_json.loads(store.read(paths.LAST_CHECKPOINT, DOCUMENT_BYTES))["version"]
    except (ObjectMissing, errors.StorageError, errors.UnusableFileError, ValueError, KeyError, TypeError):
        return None
    return version if isinstance(version, int) and 0 <= version <= paths.MOST_VERSION else None


def _checkpoints(named: Sequence[tuple[paths.LogFileName, FileStatus]]) -> tuple[CheckpointFiles, ...]:
    single = [
        CheckpointFiles(name.version, name.kind, (status,))
        for name, status in named
        if name.kind in (paths.LogFileKind.CLASSIC_CHECKPOINT, paths.LogFileKind.UUID_CHECKPOINT)
    ]
    parts: dict[tuple[int, int], dict[int, FileStatus]] = {}
    for name, status in named:
        if name.kind is paths.LogFileKind.MULTI_PART_CHECKPOINT and name.part is not None and name.parts is not None:
            parts.setdefault((name.version, name.parts), {})[name.part] = status
    multi = [
        CheckpointFiles(version, paths.LogFileKind.MULTI_PART_CHECKPOINT, tuple(found[n] for n in range(1, count + 1)))
        for (version, count), found in parts.items()
        if len(found) == count and min(found) == 1 and max(found) == count
    ]
    return tuple(sorted([*single, *multi], key=lambda checkpoint: checkpoint.version, reverse=True))
