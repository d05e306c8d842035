"""Reads of a store which an object store answers by one request each, and every other store by several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO

from dbt.adapters.silt.engine.kernel.storage.object_store import ObjectStore
from dbt.adapters.silt.engine.kernel.storage.store import FileStatus, ObjectMissing, Store, joined, read_whole


def read_ranges(store: Store, path: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
    """Parts of a file's content, each from a place up to another; what lies behind its end is left out.

    Raises:
        ObjectMissing: there is no such file.
        StorageError: it cannot be read.
    """
    if isinstance(store, ObjectStore):
        return store.read_ranges(path, ranges)
    with store.open_input(path) as file:
        return [_part(file, start, end) for start, end in ranges]


def files_below(store: Store, folder: str) -> list[FileStatus]:
    """The files in a folder and in those below it, in no order; none where there is no such folder.

    Raises:
        StorageError: it cannot be listed.
    """
    return list(store.files_below(folder) if isinstance(store, ObjectStore) else _walk(store, folder))


def fetch(store: Store, path: str) -> tuple[FileStatus, bytes] | None:
    """A whole file with its status; None where there is no such file.

    Raises:
        StorageError: it cannot be read, or only in part.
    """
    if isinstance(store, ObjectStore):
        return store.fetch(path)
    status = store.status(path)
    return None if status is None else (status, read_whole(store, path, status))


def _part(file: IO[bytes], start: int, end: int) -> bytes:
    file.seek(start)
    return file.read(end - start)


def _walk(store: Store, folder: str) -> Iterator[FileStatus]:
    try:
        files, folders = store.list_from(folder), store.list_folders(folder)
    except ObjectMissing:
        return
    yield from files
    for name in folders:
        yield from _walk(store, joined(folder, name))
