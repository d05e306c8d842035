"""BranchedStore: the store of a table on a branch, which keeps the branch's commits out of the table's log."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import IO, Final

from dbt.adapters.silt.engine.kernel.storage.store import (
    MOST_BYTES,
    FileStatus,
    ObjectMissing,
    PinnedFolder,
    PutResult,
    Store,
    joined,
)
from dbt.adapters.silt.engine.kernel.table.paths import LAST_CHECKPOINT, LOG_FOLDER, parse_log_name

BEFORE_ALL: Final = -1
"""The base of a table that a branch creates: every version belongs to the branch."""


class BranchedStore(Store):
    """The store of a table whose commits after a version belong to a branch.

    Data files are the table's own. Files of the log up to the version are read from the table, all others from the
    branch; the branch writes no file into the table's log.

    Args:
        table: the table's store.
        branch: the folder of the branch's commits of this table; it exists when the first commit is written.
        base: the last version that belongs to the table, `BEFORE_ALL` if the branch creates the table; None until the
            branch has used the table.
    """

    def __init__(self, table: Store, branch: Store, base: int | None = None) -> None:
        self.table = table
        self.branch = branch
        self.base = base

    @property
    def root(self) -> str:
        return self.table.root

    @property
    def has_folders(self) -> bool:
        return self.table.has_folders

    @property
    def is_local(self) -> bool:
        return self.table.is_local

    @property
    def is_never_reused(self) -> bool:
        return self.table.is_never_reused

    @property
    def service(self) -> str | None:
        return self.table.service

    @property
    def allowed(self) -> Sequence[str] | None:
        return self.table.allowed

    @property
    def elsewhere(self) -> Callable[[str], Store] | None:
        return self.table.elsewhere

    @property
    def files_at_once(self) -> int:
        return self.table.files_at_once

    def list_from(self, folder: str, start: str = "") -> list[FileStatus]:
        return self._log_files(start) if folder == LOG_FOLDER else self.table.list_from(folder, start)

    def list_folders(self, folder: str) -> list[str]:
        return self.table.list_folders(folder)

    def files_in_order(self, folder: str) -> Iterator[FileStatus]:
        return iter(self.list_from(folder)) if folder == LOG_FOLDER else self.table.files_in_order(folder)

    def files_below(self, folder: str) -> list[FileStatus]:
        found = [each for each in self.table.files_below(folder) if not _is_of_log(each.path)]
        with contextlib.suppress(ObjectMissing):  # a table without a log has no files of it
            found += self._log_files() if _holds_log(folder) else []
        return found

    def list_links(self, folder: str) -> list[str]:
        return self.table.list_links(folder)

    def read(self, path: str, at_most: int = MOST_BYTES) -> bytes:
        store, inner = self._store_to_read(path)
        return store.read(inner, at_most)

    def fetch(self, path: str) -> tuple[FileStatus, bytes] | None:
        store, inner = self._store_to_read(path)
        found = store.fetch(inner)
        return None if found is None else (replace(found[0], path=path), found[1])

    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        store, inner = self._store_to_read(path)
        return store.read_ranges(inner, ranges)

    def open_input(self, path: str) -> IO[bytes]:
        store, inner = self._store_to_read(path)
        return store.open_input(inner)

    def status(self, path: str) -> FileStatus | None:
        store, inner = self._store_to_read(path)
        found = store.status(inner)
        return None if found is None else replace(found, path=path)

    def statuses(self, paths: Iterable[str]) -> Iterator[FileStatus | None]:
        asked = list(paths)
        data = iter(self.table.statuses(path for path in asked if not _is_of_log(path)))
        for path in asked:
            yield self.status(path) if _is_of_log(path) else next(data)

    def put_if_absent(self, path: str, data: bytes) -> PutResult:
        store, inner = self._store_to_write(path)
        return store.put_if_absent(inner, data)

    def put(self, path: str, data: bytes) -> None:
        store, inner = self._store_to_write(path)
        store.put(inner, data)

    def copy_in(self, path: str, data: IO[bytes]) -> None:
        store, inner = self._store_to_write(path)
        store.copy_in(inner, data)

    def delete(self, path: str) -> None:
        store, inner = self._store_to_write(path)
        store.delete(inner)

    def delete_all(self, paths: Sequence[str]) -> None:
        for store, inner in self._by_store(paths):
            store.delete_all(inner)

    def make_folder(self, folder: str) -> None:
        self.table.make_folder(folder)

    def rename_folder(self, source: str, target: str) -> None:
        _check_without_log(source, target)
        self.table.rename_folder(source, target)

    def delete_folder(self, folder: str) -> None:
        _check_without_log(folder)
        self.table.delete_folder(folder)

    def delete_empty_folder(self, folder: str) -> bool:
        _check_without_log(folder)
        return self.table.delete_empty_folder(folder)

    def folder_modified_ms(self, folder: str) -> int | None:
        return self.table.folder_modified_ms(folder)

    def make_durable(self, paths: Sequence[str]) -> None:
        for store, inner in self._by_store(paths):
            store.make_durable(inner)

    def check_writable(self) -> None:
        self.table.check_writable()

    def pin(self, folder: str) -> PinnedFolder:
        pinned = self.table.pin(folder)
        return BranchFolder(pinned, self.branch, self.base) if folder == LOG_FOLDER else pinned

    def child(self, folder: str) -> Store:
        return self.table.child(folder)

    def local_path(self, path: str) -> str | None:
        store, inner = self._store_to_read(path)
        return store.local_path(inner)

    def _log_files(self, start: str = "") -> list[FileStatus]:
        """Lists the files of the log on the branch, sorted by name, from a name on."""
        found = [] if self.base == BEFORE_ALL else self.table.list_from(LOG_FOLDER, start)
        found = [each for each in found if not self._is_of_branch(each.path)]
        return sorted([*found, *self._branch_files(start)], key=lambda each: each.name)

    def _branch_files(self, start: str) -> list[FileStatus]:
        if self.base is None:
            return []
        try:
            found = self.branch.list_from("", start)
        except ObjectMissing:
            return []
        inside = [replace(each, path=joined(LOG_FOLDER, each.name)) for each in found]
        return [each for each in inside if self._is_of_branch(each.path)]

    def _is_of_branch(self, path: str) -> bool:
        """Returns whether a file of the log belongs to the branch, or would, if the table has a file of that name."""
        if self.base is None or not _is_of_log(path):
            return False
        name = parse_log_name(path.removeprefix(f"{LOG_FOLDER}/"))
        return name is not None and max(name.version, name.last_version or 0) > self.base

    def _by_store(self, paths: Sequence[str]) -> Iterator[tuple[Store, list[str]]]:
        """Yields the table's store and the branch's, each with the paths of the files that are written to it."""
        found = [self._store_to_write(path) for path in paths]
        for store in (self.table, self.branch):
            inner = [path for each, path in found if each is store]
            if inner:
                yield store, inner

    def _store_to_read(self, path: str) -> tuple[Store, str]:
        """Returns the store from which a file is read, and the file's path in it."""
        return (self.branch, path.removeprefix(f"{LOG_FOLDER}/")) if self._is_of_branch(path) else (self.table, path)

    def _store_to_write(self, path: str) -> tuple[Store, str]:
        """Returns the store to which a file is written: a log's file never to the table."""
        if self._is_of_branch(path) or path == LAST_CHECKPOINT:
            return self.branch, path.removeprefix(f"{LOG_FOLDER}/")
        return self.table, path


def _is_of_log(path: str) -> bool:
    """Returns whether a file is directly in the log's folder."""
    return path.rpartition("/")[0] == LOG_FOLDER


def _holds_log(folder: str) -> bool:
    return folder in ("", LOG_FOLDER)


def _check_without_log(*folders: str) -> None:
    """Checks that a change of folders leaves the table's log alone, which is not the branch's to move or delete."""
    assert not any(_holds_log(each) for each in folders), f"a branch cannot move or delete {folders}"


@dataclass(frozen=True)
class BranchFolder:
    """The folder of a log on a branch: current as long as the table's log is the log that the branch began with."""

    table: PinnedFolder
    branch: Store
    base: int | None

    def known_by(self, file: FileStatus) -> BranchFolder:
        name = parse_log_name(file.name)
        if self.base is None or name is None or name.version > self.base:
            return self
        table = self.table.known_by(file)
        return self if table == self.table else replace(self, table=table)

    def is_current(self) -> bool:
        return self.table.is_current()

    def put_if_absent(self, name: str, data: bytes) -> PutResult:
        if not self.is_current():
            raise ObjectMissing(name)
        return self.branch.put_if_absent(name, data)
