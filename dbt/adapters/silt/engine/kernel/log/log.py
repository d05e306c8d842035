"""Defines DeltaLog, which reads the snapshots of a table and writes its checkpoints and checksums."""

from __future__ import annotations

import contextlib
import logging
import threading
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar

import pyarrow as pa

from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.clock import Clock, SystemClock
from dbt.adapters.silt.engine.kernel.files.file_guard import FileGuard
from dbt.adapters.silt.engine.kernel.log import history, log_segment
from dbt.adapters.silt.engine.kernel.log.checkpoint_write import write_checkpoint
from dbt.adapters.silt.engine.kernel.log.checksum import checksum_of_commit, contradiction, lost_commit
from dbt.adapters.silt.engine.kernel.log.cleanup import clean_up, expiry
from dbt.adapters.silt.engine.kernel.log.commit_file import CommitFile, fetched, later_commits, read_info
from dbt.adapters.silt.engine.kernel.log.history import Commit
from dbt.adapters.silt.engine.kernel.log.replay import TableState, advance, replay, tombstones
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.publication_marks import PublicationRegister, marked, publication_of
from dbt.adapters.silt.engine.kernel.storage.store import FileStatus, ObjectMissing, PinnedFolder, Store
from dbt.adapters.silt.engine.kernel.table.paths import LOG_FOLDER, commit_path
from dbt.adapters.silt.engine.kernel.table.properties import TableProperties

_logger = logging.getLogger(__name__)

T = TypeVar("T")

_CLOCKS_DIFFER_MS = 86_400_000
_READS = 20


@dataclass(frozen=True)
class _Loaded:
    """A replayed version. `commit` distinguishes this log from a later log at the same location."""

    state: TableState
    snapshot: Snapshot
    commit: FileStatus | None


class DeltaLog:
    """The log of the table at a store's root. Safe to share between threads.

    Args:
        store: rooted at the table's folder, which need not exist yet.
        name: the table's name or path, for messages.

    >>> from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
    >>> from dbt.adapters.silt.engine.kernel.table.actions import AddFile, Metadata, Protocol, serialize
    >>> store = LocalStore(folder)
    >>> store.make_folder("_delta_log")
    >>> metadata = Metadata("an-id", '{"type": "struct", "fields": []}')
    >>> store.put("_delta_log/00000000000000000000.json", serialize([Protocol(), metadata]))
    >>> store.put("_delta_log/00000000000000000001.json", serialize([AddFile("a.parquet", {}, 10, 0)]))
    >>> log = DeltaLog(store, "main.orders")
    >>> log.snapshot().version, log.snapshot().num_files
    (1, 1)
    >>> log.snapshot_at(0).num_files
    0
    """

    if_file_is_missing: ClassVar[str | None] = None
    """The remedy for a missing data file of a version, if it is not the usual remedy."""

    def __init__(self, store: Store, name: str, clock: Clock | None = None) -> None:
        self.store = store
        self.name = name
        self.clock: Clock = clock or SystemClock()
        self.guard = FileGuard()
        self.publications: PublicationRegister | None = None
        self._lock = threading.RLock()
        self._newest: _Loaded | None = None
        self._compared: tuple[TableState, str | None] | None = None
        self._seen: tuple[str, int] = ("", -1)
        self._ahead: dict[int, tuple[FileStatus, CommitFile]] = {}
        self._handed_out: Callable[[], Snapshot | None] = _no_snapshot

    def __repr__(self) -> str:
        return f"DeltaLog({self.name!r}, {self.store.root!r})"

    @property
    def line(self) -> str:
        """The place of the versions: two handles of a table with the same place have the same rows at a version."""
        return self.store.root

    def exists(self) -> bool:
        """Returns whether the log exists and has a commit or checkpoint.

        Raises:
            StorageError: if the storage failed.
        """
        try:
            if log_segment.list_log(self.store, self.name).newest is not None:
                return True
        except errors.NotATableError:
            pass  # a listing may be out of date
        return self._commit_status(0) is not None

    def snapshot(self) -> Snapshot:
        """Reads the newest version; the state of the previous call is kept, so only later commits are read.

        A version that its checksum contradicts is read with a warning; its `doubt` describes the contradiction. If a
        publication in the log is not published, the newest version is the version before its commit.

        Raises:
            NotATableError: if the log does not exist.
            UnsupportedFeatureError: if reading the table needs a feature that this engine does not have.
            TableDamagedError: if the log cannot be read (a subclass for each cause).
            StorageError: if the storage failed.
        """
        with self._lock:
            loaded, folder = self._of_one_log(self._refreshed)
            if (undecided := self._undecided(loaded)) is not None:
                return self._snapshot_before(undecided)
            handed_out = self._handed_out()
            if handed_out is not None and _is_same(handed_out, loaded.snapshot, folder):
                return handed_out
            return self._hand_out(self._with_doubt(loaded, folder), folder)

    def snapshot_at(self, version: int) -> Snapshot:
        """Reads the table as it was at a version. In addition to the errors of `snapshot`:

        Raises:
            VersionNotFoundError: if the version does not exist or was cleaned up.
        """
        with self._lock:
            loaded, folder = self._of_one_log(lambda: self._loaded_at(version))
            return replace(self._with_doubt(loaded, folder, is_newest=False), log_folder=folder)

    def committed_at(self, snapshot: Snapshot) -> int:
        """Returns the time of a version's commit as in the table's history (milliseconds since 1970-01-01 UTC).

        Without in-commit timestamps, this is the time in the `commitInfo`, or the snapshot's timestamp if that time or
        the commit's file is missing.

        Raises:
            CorruptLogError: if the commit cannot be read.
            StorageError: if the storage failed.
        """
        status = self._commit_status(snapshot.version)
        if status is None or history.has_in_commit_timestamp(snapshot.version, snapshot.properties):
            return snapshot.timestamp
        try:
            info = read_info(self.store, snapshot.version, status, self.name)
        except errors.MissingLogVersionError:
            return snapshot.timestamp
        return history.stated_time(info) or snapshot.timestamp

    def version_at(self, timestamp_ms: int, or_newest: bool = False) -> int:
        """Returns the newest version committed at that time (milliseconds since 1970-01-01 UTC) or before.

        Args:
            or_newest: whether a time after the newest commit means that commit.

        Raises:
            VersionNotFoundError: if the time is before the first version or after the newest version.
        """
        properties = self.snapshot().properties
        listing = log_segment.complete_listing(self.store, self.name)
        found = history.version_at(self.store, listing, properties, timestamp_ms, self.name, or_newest)
        if (future := self.in_future()) is not None and found >= future.first - 1:
            _logger.warning("%s: %s", self.name, future.note)
        return found

    def in_future(self) -> history.Future | None:
        """Returns the newest versions with times in the future, if any, as after a commit with a fast clock."""
        properties = self.snapshot().properties
        listing = log_segment.list_log(self.store, self.name)
        return history.future_in(self.store, listing, properties, self.clock.now_ms(), self.name)

    def version_from(self, timestamp_ms: int) -> int:
        """Returns the oldest version committed at that time (milliseconds since 1970-01-01 UTC) or after it, or the
        number after the newest version if all versions are older.
        """
        properties = self.snapshot().properties
        listing = log_segment.complete_listing(self.store, self.name)
        try:
            return history.version_at(self.store, listing, properties, timestamp_ms - 1, self.name, True) + 1
        except errors.VersionNotFoundError:
            return listing.earliest or 0

    def commits(self, start: int = 0, end: int | None = None) -> Iterator[Commit]:
        """Reads the remaining commits from `start` to `end`, both included, oldest first."""
        snapshot = self.snapshot()
        listing = log_segment.with_unlisted(self.store, log_segment.list_log(self.store, self.name), snapshot.version)
        return history.commits(self.store, listing, snapshot.properties, start, end, self.name)

    def newest_commits(self) -> Iterator[Commit]:
        """Yields the commits whose files still exist, newest first, and reads them lazily.

        Their times are as their writers or files state them, so they need not be in the order of the versions.
        """
        snapshot = self.snapshot()
        for version in range(snapshot.version, -1, -1):
            found = fetched(self.store, version, self.name)
            if found is None:
                self._check_cleaned_up(version)
                return
            yield history.commit_of(*found, snapshot.properties, self.name)

    def _check_cleaned_up(self, version: int) -> None:
        """Raises MissingLogVersionError if the log has a commit before a version that is missing."""
        if min(log_segment.list_log(self.store, self.name).commits, default=version) < version:
            raise log_segment.missing_version(version, self.name)

    def read_ahead(self, version: int) -> Iterator[CommitFile]:
        """Yields the commits from a version on, oldest first; the next snapshot does not read them again if no other
        table can use this location.

        Raises:
            MissingLogVersionError: if a commit disappeared while it was read.
            StorageError: if a commit cannot be read.
        """
        while version in self._ahead:
            yield self._ahead[version][1]
            version += 1
        for found in later_commits(self.store, version, self.name):
            if self.store.is_never_reused:
                self._ahead = {**self._ahead, found[1].version: found}
            yield found[1]

    def after_commit(self, version: int) -> None:
        """Writes the checksum after a commit and, at each checkpoint interval, a checkpoint, and cleans up the log.

        The commit is valid even if this fails, so a failure is only logged.
        """
        with self._logged_failure(version, "the state after the commit could not be read"), self._lock:
            loaded, folder = self._of_one_log(lambda: self._refreshed(version))
            snapshot = replace(loaded.snapshot, log_folder=folder)
            if snapshot.version == version:
                self._compared = loaded.state, None
                with self._logged_failure(version, "its version checksum could not be written"):
                    checksum_of_commit(self.store, snapshot, loaded.state)
            if version > 0 and version % snapshot.properties.checkpoint_interval == 0:
                with self._logged_failure(version, "its checkpoint could not be written or older files not deleted"):
                    self.checkpoint(self.snapshot_at(version))
                    clean_up(self.store, snapshot, self.clock.now_ms(), self._oldest_cut_ms)

    def tend(self) -> bool:
        """Writes a checkpoint if more commits follow the newest than its interval, as after commits of other engines,
        and cleans up the log; returns whether it did. Raises as `checkpoint`.
        """
        snapshot = self.snapshot()
        listing = log_segment.newest_listing(self.store, self.name)
        newest = listing.checkpoints[0].version if listing.checkpoints else -1
        if snapshot.version - newest <= snapshot.properties.checkpoint_interval:
            return False
        self.checkpoint(snapshot)
        clean_up(self.store, snapshot, self.clock.now_ms(), self._oldest_cut_ms)
        return True

    def _oldest_cut_ms(self) -> int | None:
        return None if self.publications is None else self.publications.oldest_cut_ms()

    @contextlib.contextmanager
    def _logged_failure(self, version: int, what: str) -> Iterator[None]:
        """Logs a failure of work after a commit, with the note that the statement need not be run again."""
        try:
            yield
        except Exception as error:
            problem = error.problem if isinstance(error, errors.SiltError) else repr(error)
            _logger.warning(
                "%s@v%s is committed and need not be run again, but %s: %s", self.name, version, what, problem
            )
            _logger.debug("%s@v%s: %s", self.name, version, what, exc_info=True)

    def checkpoint(self, snapshot: Snapshot) -> None:
        """Writes the snapshot's checkpoint to the log from which the snapshot was read.

        Raises:
            NotATableError: if that log was deleted.
            TableDamagedError: if the log cannot be read.
            StorageError: if a file cannot be read or written.
        """
        try:
            write_checkpoint(self.store, snapshot, self.tombstones(snapshot), self.clock)
        except ObjectMissing as error:
            raise self._gone(snapshot) from error

    def may_be_cleaned_up(self, snapshot: Snapshot) -> bool:
        """Returns whether the version is so old that a clean-up may delete it and the next version at any time.

        The clean-up goes by the clock of another machine, which may be ahead of this clock by up to a day.
        """
        return snapshot.timestamp <= expiry(snapshot.properties, self.clock.now_ms() + _CLOCKS_DIFFER_MS)

    def tombstones(self, snapshot: Snapshot) -> pa.Table:
        """Reads the removed files at the snapshot's version, in schema `TOMBSTONES`. Raises as `checkpoint`."""
        folder = snapshot.log_folder
        try:
            listing = log_segment.listing_with(self.store, snapshot.version, self.name)
            found = self._first_readable(
                listing, snapshot.version, lambda segment: tombstones(self.store, segment, self.name)
            )
        except (errors.TableDamagedError, errors.VersionNotFoundError) as error:
            if folder is None or folder.is_current():
                raise
            raise self._gone(snapshot) from error
        if folder is not None and not folder.is_current():
            raise self._gone(snapshot)
        return found

    def _gone(self, snapshot: Snapshot) -> errors.NotATableError:
        return errors.NotATableError("the table was dropped or re-created", table=self.name, version=snapshot.version)

    def _with_doubt(self, loaded: _Loaded, folder: PinnedFolder, is_newest: bool = True) -> Snapshot:
        """Adds to the snapshot a contradiction by checksums, which are read once for each state."""
        snapshot = loaded.snapshot
        if is_newest and self._compared is not None and self._compared[0] is loaded.state:
            return replace(snapshot, doubt=self._compared[1])
        doubt = contradiction(self.store, snapshot.version, loaded.state)
        if doubt is None and is_newest:
            doubt = lost_commit(self.store, snapshot.version + 1)
        if doubt is not None and not (folder.is_current() and self.exists()):
            return (
                snapshot  # the checksum belongs to a table that replaced this table, or was written after its deletion
            )
        if is_newest:
            self._compared = loaded.state, doubt
        if doubt is not None:
            what = "reads may lack rows or return extra rows, and writes are refused; `silt check` shows the damage"
            _logger.warning("%s@v%s: %s: %s", self.name, snapshot.version, doubt, what)
        return replace(snapshot, doubt=doubt)

    def _of_one_log(self, read: Callable[[], _Loaded]) -> tuple[_Loaded, PinnedFolder]:
        """Reads a single incarnation of the log, even if the table is dropped and re-created meanwhile."""
        for left in reversed(range(_READS)):
            folder = self._folder()
            try:
                loaded = read()
            except errors.MissingLogVersionError:
                # A clean-up may have deleted the commit since the listing; then the log begins with a later checkpoint.
                if not left and folder.is_current():
                    raise
            except errors.TableDamagedError:
                if folder.is_current():
                    raise
            else:
                folder = folder if loaded.commit is None else folder.known_by(loaded.commit)
                if folder.is_current():
                    return loaded, folder
            self._newest = None
        raise errors.StorageError("the table was re-created repeatedly during the read", table=self.name)

    def _folder(self) -> PinnedFolder:
        """Returns the log's current folder, which is the folder of the snapshot in use if that is still current."""
        handed_out = self._handed_out()
        held = None if handed_out is None else handed_out.log_folder
        if held is not None and held.is_current():
            return held
        try:
            return self.store.pin(LOG_FOLDER)
        except ObjectMissing as error:
            self._newest = None
            raise errors.NotATableError(
                f"{self.store.root} holds no {LOG_FOLDER}: it is not a Delta table", table=self.name
            ) from error

    def _hand_out(self, snapshot: Snapshot, folder: PinnedFolder) -> Snapshot:
        """Returns the snapshot, and the log folder from which it was read.

        Only the snapshot's users keep the folder's descriptor open: an idle log has no open descriptor.
        """
        pinned = replace(snapshot, log_folder=folder)
        self._handed_out = weakref.ref(pinned)
        return pinned

    def _refreshed(self, up_to: int | None = None) -> _Loaded:
        """Reads the newest state.

        Args:
            up_to: a version known to exist; later versions are not looked for.
        """
        known = self._newest
        if known is None or not (self.store.is_never_reused or self._is_current(known)):
            self._newest = None
            listing = log_segment.newest_listing(self.store, self.name)
            # The listing may be out of date.
            self._newest = self._advanced(self._load(listing, listing.newest or 0))
        else:
            self._newest = self._advanced(known, up_to)
        self._check_not_older(self._newest.snapshot)
        return self._newest

    def _check_not_older(self, snapshot: Snapshot) -> None:
        """Raises StorageError if the newest version in the storage is older than at an earlier read."""
        table, version = self._seen
        if snapshot.metadata.id == table and snapshot.version < version:
            self._newest = None
            raise errors.StorageError(
                f"the newest version in the storage is {snapshot.version}, but an earlier read found version {version}",
                remedy="Run it again; if an older copy of the table was restored on purpose, start a new process",
                table=self.name,
            )
        self._seen = snapshot.metadata.id, snapshot.version

    def _loaded_at(self, version: int) -> _Loaded:
        known = self._newest
        if known is not None and known.snapshot.version == version and self._is_current(known):
            return known
        try:
            return self._load(log_segment.listing_with(self.store, version, self.name), version)
        except (errors.CorruptCheckpointError, errors.MissingLogVersionError):
            # A clean-up since the listing may have deleted the version; then it is not damaged.
            return self._load(log_segment.listing_with(self.store, version, self.name), version)

    def _is_current(self, known: _Loaded) -> bool:
        status = self._commit_status(known.snapshot.version)
        return status is not None and known.commit is not None and status.has_content_of(known.commit)

    def _advanced(self, known: _Loaded, up_to: int | None = None) -> _Loaded:
        """Applies later commits to the known state, or reads the log again if a clean-up deleted that version."""
        read = list(self._later(known.snapshot.version + 1, up_to))
        found = [commit for _, commit in read]
        if not found and self.may_be_cleaned_up(known.snapshot) and not self._is_current(known):
            return self._load(listing := log_segment.newest_listing(self.store, self.name), listing.newest or 0)
        if not found:
            return known
        return self._loaded(advance(known.state, found, self.name), found[-1].version, read[-1][0])

    def _later(self, version: int, up_to: int | None) -> Iterator[tuple[FileStatus, CommitFile]]:
        """Yields the commits from a version on, without reading commits again that `read_ahead` has read."""
        ahead, self._ahead = self._ahead, {}
        while version in ahead and (up_to is None or version <= up_to):
            yield ahead[version]
            version += 1
        yield from later_commits(self.store, version, self.name, up_to)

    def _load(self, listing: log_segment.LogListing, version: int) -> _Loaded:
        state = self._first_readable(listing, version, lambda segment: replay(self.store, segment, self.name))
        return self._loaded(state, version, listing.commits.get(version))

    def _loaded(self, state: TableState, version: int, commit: FileStatus | None) -> _Loaded:
        properties = TableProperties(state.metadata.configuration)
        timestamp = 0 if commit is None else commit.modified_ms
        if commit is not None and history.has_in_commit_timestamp(version, properties):
            info = read_info(self.store, version, commit, self.name)
            timestamp = history.snapshot_timestamp(info, version, properties, timestamp)
        return _Loaded(state, Snapshot.of(state, self.name, version, timestamp, self.clock.now_ms()), commit)

    def _first_readable(
        self, listing: log_segment.LogListing, version: int, read: Callable[[log_segment.LogSegment], T]
    ) -> T:
        """Returns the result for the first segment whose checkpoint can be read."""
        failures: dict[log_segment.CheckpointFiles | None, errors.CorruptCheckpointError] = {}
        for segment in self._segments(listing, version):
            if segment.checkpoint in failures:
                continue
            try:
                found = read(segment)
            except errors.CorruptCheckpointError as error:
                failures[segment.checkpoint] = error
            else:
                for failure in failures.values():
                    older = "the commits are" if segment.checkpoint is None else f"{segment.checkpoint.name} is"
                    _logger.warning("%s: %s; %s read instead", self.name, failure.problem, older)
                return found
        for failure in failures.values():
            raise failure
        raise log_segment.missing_version(listing.missing(version) or version, self.name)

    def _segments(self, listing: log_segment.LogListing, version: int) -> Iterator[log_segment.LogSegment]:
        yield from listing.segments(version)
        if listing.start > 0:
            yield from log_segment.list_log(self.store, self.name).segments(version)

    def settle_publication(self) -> None:
        """Completes or undoes the newest publication in the log, before a commit that is based on no snapshot.

        Raises:
            As `snapshot`.
        """
        publication = self.newest_publication()
        if publication is not None and self.publications is not None:
            self.publications.settle(publication)

    def newest_publication(self) -> int | None:
        """Returns the newest publication in the log, or None if all publications in it are settled.

        Raises:
            As `snapshot`.
        """
        with self._lock:
            loaded, _ = self._of_one_log(self._refreshed)
        return marked(loaded.state.transactions)

    def _undecided(self, newest: _Loaded) -> int | None:
        """Returns the version of the commit of a publication that is not published, if the log has such a commit.

        A publication whose commit was cleaned up was decided long ago.
        """
        publication = marked(newest.state.transactions)
        if publication is None or self.publications is None or self.publications.is_published(publication):
            return None
        for version in range(newest.snapshot.version, -1, -1):
            status = self._commit_status(version)
            if status is None:
                return None
            if publication_of(read_info(self.store, version, status, self.name)) == publication:
                return version
        return None

    def _snapshot_before(self, version: int) -> Snapshot:
        """Reads the version before a commit that is not published."""
        if version == 0:
            raise errors.NotATableError("the transaction that creates the table is not committed", table=self.name)
        return self.snapshot_at(version - 1)

    def _commit_status(self, version: int) -> FileStatus | None:
        return self.store.status(commit_path(version))


def _is_same(handed_out: Snapshot, newest: Snapshot, folder: PinnedFolder) -> bool:
    same_version = handed_out.version == newest.version and handed_out.metadata is newest.metadata
    return same_version and handed_out.active is newest.active and handed_out.log_folder is folder


def _no_snapshot() -> None:
    """Replaces the weak reference until there is a snapshot."""
