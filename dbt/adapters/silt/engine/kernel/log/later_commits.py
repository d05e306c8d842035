"""Reads the commits from a version up to the newest version, whose number is not known in advance."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Final

from dbt.adapters.silt.engine.kernel.log.commit_file import CommitFile, read_commits
from dbt.adapters.silt.engine.kernel.log.log_segment import list_log, missing_version
from dbt.adapters.silt.engine.kernel.storage.store import FileStatus, ObjectMissing, Store
from dbt.adapters.silt.engine.kernel.table.paths import commit_path

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
