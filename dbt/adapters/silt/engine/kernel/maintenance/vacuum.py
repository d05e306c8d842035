"""Finds the files in a table's folder that no version within the retention needs.

A version is within the retention if it was the newest version at any time since the cutoff. The files of such a version
are active now, or were removed by a commit after the version that was the newest at the cutoff; files with tombstones
younger than the cutoff are kept as well, regardless of their commit. All other files are deleted once they are older
than the cutoff: a younger file may be about to be committed. A writer that takes longer than the retention to commit
its files loses them.

Hidden names, which begin with `_` or `.`, do not belong to the table and are kept, except leftovers of Delta's writers:
`_change_data`, folders of partitions `_column=value`, Spark's `_temporary`, Hadoop's checksums `.name.crc`, a store's
temporary files, and everything in the folders that this engine's writes create, each named by a universally unique id.
`_delta_log` is kept, except for a store's temporary files. Every folder with its own log is another table and is kept.

Source: the Delta specification, "Vacuum Protocol Check"; delta-spark's VacuumCommand.
"""

from __future__ import annotations

import contextlib
import json
import logging
import posixpath
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.silt.engine.kernel import errors, foreign_json
from dbt.adapters.silt.engine.kernel.files import deletion_vectors
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.printable import UUID
from dbt.adapters.silt.engine.kernel.progress import Progress, silent
from dbt.adapters.silt.engine.kernel.storage.local_store import is_temporary_name
from dbt.adapters.silt.engine.kernel.storage.store import DEEPEST, DOCUMENT_BYTES, FileStatus, ObjectMissing, Store
from dbt.adapters.silt.engine.kernel.table.actions import AddCDCFile, DeletionVector, RemoveFile
from dbt.adapters.silt.engine.kernel.table.paths import (
    LAST_VACUUM_INFO,
    LOG_FOLDER,
    SIDECAR_FOLDER,
    decode_path,
    is_absolute,
)

_logger = logging.getLogger(__name__)

START: Final = "VACUUM START"
END: Final = "VACUUM END"
"""The operations in the history before and after the files are deleted."""

_LONGEST_MS = 86_400_000
_WRITERS_FOLDERS = ("_change_data", "_temporary")
_LAST_VERSION = "latestCommitVersionOutsideOfRetentionWindow"


@dataclass(frozen=True)
class Needed:
    """The files that must be kept.

    Args:
        paths: paths below the table's folder.
        names: the last names of files elsewhere that a table needs if it was cloned or has another path. All files with
            such a name are kept: the paths do not show whether they are the same file.
    """

    paths: frozenset[str]
    names: frozenset[str]

    def holds(self, path: str) -> bool:
        return path in self.paths or path.rpartition("/")[2] in self.names


@dataclass(frozen=True)
class Garbage:
    """The files and folders that may be deleted.

    Args:
        files: the statuses of the files.
        folders: the folders that are empty once the files are deleted, each before its parent.
        folders_seen: the number of listed folders.
    """

    files: tuple[FileStatus, ...] = ()
    folders: tuple[str, ...] = ()
    folders_seen: int = 0

    @property
    def size(self) -> int:
        """The total size of the files in bytes."""
        return sum(file.size for file in self.files)


def newest_version_at(log: DeltaLog, cutoff_ms: int) -> int | None:
    """Returns the newest version at the cutoff, or None if the log begins later."""
    try:
        return log.version_at(cutoff_ms, or_newest=True)
    except errors.VersionNotFoundError:
        return None


def needed(log: DeltaLog, snapshot: Snapshot, cutoff_ms: int, held: Iterable[str] = ()) -> Needed:
    """Returns the files of the snapshot, and of all versions that were the newest at the cutoff or after it.

    Args:
        held: more files that must be kept, as `named_files` returns them.

    Raises:
        TableDamagedError, StorageError: if the log cannot be read.
    """
    tombstones = log.tombstones(snapshot)
    young = pc.greater_equal(pc.fill_null(tombstones["deletion_timestamp"], 0), cutoff_ms)
    newest = newest_version_at(log, cutoff_ms)
    named = [*held, *named_files(snapshot.files), *named_files(tombstones.filter(young))]
    for commit in log.commits(0 if newest is None else newest + 1):
        for action in commit.actions:
            named.extend(_of_action(action))
    root = log.store.root.rstrip("/") + "/"
    within = [_normal(path.removeprefix(root)) for path in named]
    return Needed(
        frozenset(path for path in within if not is_absolute(path)),
        frozenset(path.rpartition("/")[2] for path in within if is_absolute(path)),
    )


def untracked(store: Store, snapshot: Snapshot, keep: Needed, cutoff_ms: int, progress: Progress = silent) -> Garbage:
    """Finds all deletable files and folders by listing the table's folder (VACUUM FULL).

    Raises:
        StorageError: if the folder cannot be listed.
    """
    search = _Search(store, tuple(_partition_names(snapshot)), keep, cutoff_ms, progress)
    search.look_into("", of_writer=False)
    search.files.extend(_left_in_log(store, cutoff_ms))
    return Garbage(tuple(search.files), tuple(search.folders), search.folders_seen)


def _left_in_log(store: Store, cutoff_ms: int) -> Iterator[FileStatus]:
    """Yields temporary files of killed writers in the log's folders."""
    for folder in (LOG_FOLDER, SIDECAR_FOLDER):
        with contextlib.suppress(ObjectMissing):
            for file in store.list_from(folder):
                if is_temporary_name(file.name) and file.modified_ms < cutoff_ms:
                    yield file


def named_by_log(log: DeltaLog, keep: Needed, cutoff_ms: int) -> Garbage:
    """Finds the deletable files that commits removed since the last VACUUM, without a listing (VACUUM LITE).

    Raises:
        UnsupportedStatementError: if commits since the last VACUUM were deleted from the log.
        TableDamagedError, StorageError: if the log cannot be read.
    """
    newest = newest_version_at(log, cutoff_ms)
    if newest is None:
        return Garbage()
    start = _first_unseen(log)
    named = (path for commit in log.commits(start, newest) for each in commit.actions for path in _of_action(each))
    root = log.store.root.rstrip("/") + "/"
    within = sorted({_normal(path.removeprefix(root)) for path in named})
    own = (path for path in within if not is_absolute(path) and not path.startswith(".."))
    found = (log.store.status(path) for path in own if not keep.holds(path))
    return Garbage(tuple(status for status in found if status is not None and status.modified_ms < cutoff_ms))


def _normal(path: str) -> str:
    """Normalizes the path: if it then begins with `..`, it is not in the table's folder, and is never deleted."""
    return path if is_absolute(path) or ".." not in path else posixpath.normpath(path)


def running_since(log: DeltaLog) -> int | None:
    """Returns the version of a running VACUUM's start, if any. After a day a VACUUM counts as killed."""
    oldest_ms = log.clock.now_ms() - _LONGEST_MS
    for commit in log.newest_commits():
        info = commit.info
        if info.operation == START and commit.timestamp_ms >= oldest_ms:
            return commit.version
        if info.operation == END or commit.timestamp_ms < oldest_ms:
            return None
    return None


def remember(log: DeltaLog, cutoff_ms: int) -> None:
    """Records the version up to which all deletable files are deleted; a failure only slows a later VACUUM LITE."""
    info = {_LAST_VERSION: newest_version_at(log, cutoff_ms)}
    try:
        log.store.put(LAST_VACUUM_INFO, json.dumps(info).encode())
    except (errors.SiltError, ObjectMissing) as error:
        _logger.warning("%s: %s was not written: %s", log.name, LAST_VACUUM_INFO, error)


def _first_unseen(log: DeltaLog) -> int:
    earliest = next((commit.version for commit in log.commits()), 0)
    last = _last_seen(log)
    start = 0 if last is None else last + 1
    if start < earliest:
        raise errors.UnsupportedStatementError(
            f"VACUUM LITE needs the commits from version {start} on, but the log begins with version {earliest}",
            remedy="Run VACUUM without LITE once",
            table=log.name,
        )
    return start


def _last_seen(log: DeltaLog) -> int | None:
    """Returns the version that the last VACUUM recorded, if it can be read."""
    try:
        body = foreign_json.loads(log.store.read(LAST_VACUUM_INFO, DOCUMENT_BYTES))
    except (ObjectMissing, errors.UnusableFileError, ValueError):
        return None
    version = body.get(_LAST_VERSION) if isinstance(body, dict) else None
    return version if isinstance(version, int) else None


def named_files(files: pa.Table) -> Iterator[str]:
    """Yields the paths in rows of active or removed files: of data files and of deletion vectors."""
    for path in files["path"].to_pylist():
        yield decode_path(path)
    vectors = files["deletion_vector"]
    if vectors.null_count < len(vectors):
        for vector in vectors.to_pylist():
            if vector is not None:
                yield from _of_vector(DeletionVector(**vector))


def _of_vector(vector: DeletionVector) -> Iterator[str]:
    name = deletion_vectors.file_name(vector)
    if name is not None:
        yield name


def _of_action(action: object) -> Iterator[str]:
    """Yields the files that were needed until the commit of this action, or are needed to read its changes."""
    if isinstance(action, AddCDCFile):
        yield decode_path(action.path)
    if isinstance(action, RemoveFile):
        yield decode_path(action.path)
        if action.deletion_vector is not None:
            yield from _of_vector(action.deletion_vector)


def _partition_names(snapshot: Snapshot) -> Iterator[str]:
    for name in snapshot.partition_columns:
        yield name
        yield snapshot.schema.require(name, snapshot.table).physical_name


class _Search:
    """A walk over a table's folder."""

    def __init__(
        self, store: Store, partition_names: Iterable[str], keep: Needed, cutoff_ms: int, progress: Progress
    ) -> None:
        self.files: list[FileStatus] = []
        self.folders: list[str] = []
        self.folders_seen = 0
        self._store = store
        self._tree = store.tree()
        self._partitions = tuple(f"{name}=" for name in partition_names)
        self._keep = keep
        self._cutoff_ms = cutoff_ms
        self._progress = progress

    def look_into(self, folder: str, of_writer: bool) -> bool:
        """Collects the deletable files and folders in the folder; returns whether that is its whole content.

        Args:
            of_writer: whether the folder is, or is within, a folder that a writer created for its own files, whose
                content is not hidden.
        """
        if folder.count("/") > DEEPEST:
            return False  # no engine writes files there
        modified_ms = self._store.folder_modified_ms(folder)
        try:
            files, names = self._tree.content(folder)
        except ObjectMissing:
            return True  # another process has deleted it
        if folder and LOG_FOLDER in names:
            return False
        self.folders_seen += 1
        self._progress("folders listed", self.folders_seen)
        goes = self._sort_out(files, of_writer)
        for name in dict.fromkeys(names):
            inner = of_writer or name in _WRITERS_FOLDERS or (not folder and UUID.fullmatch(name) is not None)
            is_looked_into = name != LOG_FOLDER and (inner or not self._is_hidden(name))
            goes = is_looked_into and self.look_into(f"{folder}/{name}" if folder else name, inner) and goes
        goes = goes and modified_ms is not None and modified_ms < self._cutoff_ms
        if goes and folder:
            self.folders.append(folder)
        return goes

    def _sort_out(self, files: list[FileStatus], of_writer: bool) -> bool:
        """Collects the deletable files of a folder; returns whether these are all of its files."""
        old = [file for file in files if file.modified_ms < self._cutoff_ms and not self._keep.holds(file.path)]
        stay = {file.name for file in files} - {file.name for file in old}
        going = {file.path: file for file in old if of_writer or not _is_hidden_file(file.name, stay)}
        self.files.extend(going.values())
        return all(file.path in going for file in files)

    def _is_hidden(self, name: str) -> bool:
        return name.startswith(("_", ".")) and not name.startswith(self._partitions)


def _is_hidden_file(name: str, stay: set[str]) -> bool:
    if not name.startswith(("_", ".")) or is_temporary_name(name):
        return False
    checked = name.removeprefix(".").removesuffix(".crc")
    return f".{checked}.crc" != name or checked in stay
