"""Reads commit files of the log: their bytes, the actions in them, and the commits after a version."""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from dbt.adapters.silt.engine.kernel.errors import CorruptLogError
from dbt.adapters.silt.engine.kernel.log.log_segment import list_log, missing_version
from dbt.adapters.silt.engine.kernel.storage.store import FileStatus, ObjectMissing, Store, read_whole
from dbt.adapters.silt.engine.kernel.table.actions import Action, AddFile, Metadata, Protocol, RemoveFile, parse
from dbt.adapters.silt.engine.kernel.table.active_files import KEY_SEPARATOR, file_key
from dbt.adapters.silt.engine.kernel.table.paths import commit_name, commit_path

_FEW: Final = 3
_READERS: Final = 16


@dataclass(frozen=True)
class CommitFile:
    """The bytes of a commit file."""

    version: int
    data: bytes

    def actions(self, table: str) -> tuple[Action, ...]:
        """Parses the commit's actions.

        Raises:
            CorruptLogError: if a line cannot be read; the message names the file and the line.
        """
        if not self.data.strip():
            raise corrupt_commit(self.version, "it is empty", table)
        try:
            actions = tuple(parse(self.data))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise self._corrupt(table, error) from error
        if problem := _contradiction(actions):
            raise corrupt_commit(self.version, problem, table)
        return actions

    def _corrupt(self, table: str, error: Exception) -> CorruptLogError:
        for number, line in enumerate(self.data.split(b"\n"), start=1):
            try:
                parse(line)
            except (ValueError, KeyError, TypeError, AttributeError) as cause:
                return corrupt_commit(self.version, f"line {number} cannot be read ({cause!r})", table)
        return corrupt_commit(self.version, f"it cannot be read ({error!r})", table)


def _contradiction(actions: Sequence[Action]) -> str | None:
    """Describes a contradiction between the actions, if any (specification: "Action Reconciliation").

    Removing a file with its old deletion vector and adding it with a new vector is not a contradiction.
    """
    for kind in (Metadata, Protocol):
        if sum(isinstance(action, kind) for action in actions) > 1:
            return f"it has more than one `{kind.key}`"
    adds = [action for action in actions if isinstance(action, AddFile)]
    added = {file_key(add.path, add.deletion_vector) for add in adds}
    paths = Counter(key.partition(KEY_SEPARATOR)[0] for key in added)
    twice = next((path for path, times in paths.items() if times > 1), None)
    if twice is not None:
        return f"it adds {twice} with more than one deletion vector"
    removes = [action for action in actions if isinstance(action, RemoveFile)] if adds else []
    both = next((each.path for each in removes if file_key(each.path, each.deletion_vector) in added), None)
    return None if both is None else f"it both adds and removes {both}"


def corrupt_commit(version: int, what: str, table: str) -> CorruptLogError:
    return CorruptLogError(f"{commit_name(version)}: {what}", table=table, version=version)


def read_commits(store: Store, first: int, statuses: Sequence[FileStatus], table: str) -> Iterator[CommitFile]:
    """Reads consecutive commits; from an object store, many at a time.

    Args:
        first: the version of the first commit.
        statuses: the statuses of the commits' files in a listing.

    Raises:
        As `read_commit`.
    """
    versions = range(first, first + len(statuses))
    readers = min(_READERS, store.files_at_once, len(statuses))
    if len(statuses) < _FEW or store.has_folders or readers == 1:
        yield from (read_commit(store, version, table, file) for version, file in zip(versions, statuses, strict=True))
        return
    with ThreadPoolExecutor(readers) as pool:
        yield from pool.map(functools.partial(_read_in, store, table), versions, statuses)


def _read_in(store: Store, table: str, version: int, status: FileStatus) -> CommitFile:
    return read_commit(store, version, table, status)


def read_commit(store: Store, version: int, table: str, status: FileStatus | None = None) -> CommitFile:
    """Reads a whole commit file.

    Args:
        status: the file's status in a listing, which saves a request for it.

    Raises:
        MissingLogVersionError: if the file is missing.
        StorageError: if the file cannot be read, or only in part.
    """
    try:
        return CommitFile(version, read_whole(store, commit_path(version), status))
    except ObjectMissing as error:
        raise missing_version(version, table) from error


# After this many commits there may be many more: a single listing finds them, and they are read in parallel.
_ONE_BY_ONE: Final = 4

Found = tuple[FileStatus, CommitFile]


def later_commits(store: Store, first: int, table: str, up_to: int | None = None) -> Iterator[Found]:
    """Yields the commits from a version on, with their files' statuses, until the next commit does not exist.

    Args:
        up_to: the last version to read; all by default.

    Raises:
        MissingLogVersionError: if a commit disappeared while it was read.
        StorageError: if a commit cannot be read.
    """
    version = first
    while True:
        for _ in range(_ONE_BY_ONE):
            found = None if up_to is not None and version > up_to else _fetched(store, version, table)
            if found is None:
                return
            yield found
            version += 1
        if not store.has_folders:
            for found in _listed(store, version, table, up_to):
                yield found
                version += 1


def _fetched(store: Store, version: int, table: str) -> Found | None:
    """Reads a commit and its file's status, if the commit exists."""
    try:
        found = store.fetch(commit_path(version))
    except ObjectMissing as error:
        raise missing_version(version, table) from error
    return None if found is None else (found[0], CommitFile(version, found[1]))


def _listed(store: Store, first: int, table: str, up_to: int | None) -> Iterator[Found]:
    """Yields the commits from a version on that a listing shows without a gap."""
    shown = list_log(store, table, first).commits
    versions = itertools.count(first) if up_to is None else range(first, up_to + 1)
    files = [shown[version] for version in itertools.takewhile(shown.__contains__, versions)]
    yield from zip(files, read_commits(store, first, files, table), strict=True)
