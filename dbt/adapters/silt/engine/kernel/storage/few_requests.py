"""Reads that need a single request to an object store, and several operations of any other store."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Final, Protocol, cast

from dbt.adapters.silt.engine.kernel.storage.object_store import ObjectStore
from dbt.adapters.silt.engine.kernel.storage.store import (
    FileStatus,
    ObjectMissing,
    PrefixStore,
    Store,
    joined,
    read_whole,
)

_OF_FOLDERS: Final = 8
_OF_OBJECTS: Final = 64


def at_once(store: Store) -> int:
    """Returns how many files to read at the same time: a service is slow, but answers many requests concurrently."""
    return _OF_FOLDERS if store.has_folders else _OF_OBJECTS


def read_ranges(store: Store, path: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
    """Reads parts of a file, each from a start to an exclusive end; parts are cut off at the end of the file.

    Raises:
        ObjectMissing: if the file does not exist.
        StorageError: if it cannot be read.
    """
    if isinstance(store, ObjectStore):
        return store.read_ranges(path, ranges)
    with store.open_input(path) as file:
        return [_part(file, start, end) for start, end in ranges]


def files_below(store: Store, folder: str) -> list[FileStatus]:
    """Lists the files in a folder and its subfolders, in no order; empty if the folder does not exist.

    Raises:
        StorageError: if the folder cannot be listed.
    """
    return list(store.files_below(folder) if isinstance(store, ObjectStore) else _walk(store, folder))


def files_in_order(store: Store, folder: str) -> Iterator[FileStatus]:
    """Iterates over the files directly in a folder, sorted by name; an object store lists only as many as are used.

    Raises:
        ObjectMissing: if the folder does not exist.
        StorageError: if it cannot be listed.
    """
    if isinstance(store, ObjectStore):
        return store.files_in_order(folder)
    found = {file.name: file for file in store.list_from(folder)}
    return iter([found[name] for name in sorted(found)])


def fetch(store: Store, path: str) -> tuple[FileStatus, bytes] | None:
    """Reads a whole file with its status, or returns None if the file does not exist.

    Raises:
        StorageError: if it cannot be read, or only in part.
    """
    if isinstance(store, ObjectStore):
        return store.fetch(path)
    status = store.status(path)
    return None if status is None else (status, read_whole(store, path, status))


def delete_all(store: Store, paths: Sequence[str]) -> None:
    """Deletes files, in an object store in any order; missing files are not an error.

    Raises:
        StorageError: if a deletion failed; any of the files may be deleted.
    """
    if isinstance(store, ObjectStore):
        store.delete_all(paths)
        return
    for path in paths:
        store.delete(path)


def is_never_reused(store: Store) -> bool:
    """Returns whether no other table has had or will have the store's root."""
    return not store.has_folders and cast(PrefixStore, store).is_never_reused


class Tree(Protocol):
    """The folders of a store."""

    def content(self, folder: str) -> tuple[list[FileStatus], list[str]]:
        """Lists the files directly in the folder and the names of its subfolders, both sorted.

        Raises:
            ObjectMissing: if the folder does not exist.
        """
        ...


def tree(store: Store) -> Tree:
    """Returns the folders of a store; an object store lists all of them at once.

    Of an object store, empty objects are left out, because Hadoop marks folders with them.

    Raises:
        StorageError: if the store cannot be listed.
    """
    if isinstance(store, ObjectStore):
        return _ListedTree(file for file in store.files_below("") if file.size)
    return _Folders(store)


@dataclass(frozen=True)
class _Folders:
    store: Store

    def content(self, folder: str) -> tuple[list[FileStatus], list[str]]:
        return self.store.list_from(folder), self.store.list_folders(folder)


class _ListedTree:
    def __init__(self, files: Iterable[FileStatus]) -> None:
        self._files: dict[str, list[FileStatus]] = {"": []}
        self._folders: dict[str, set[str]] = defaultdict(set)
        for file in files:
            folder = file.path.rpartition("/")[0]
            self._files.setdefault(folder, []).append(file)
            while folder:
                above, _, name = folder.rpartition("/")
                self._folders[above].add(name)
                folder = above

    def content(self, folder: str) -> tuple[list[FileStatus], list[str]]:
        if folder not in self._files and folder not in self._folders:
            raise ObjectMissing(folder)
        files = sorted(self._files.get(folder, ()), key=lambda file: file.name)
        return files, sorted(self._folders.get(folder, ()))


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
