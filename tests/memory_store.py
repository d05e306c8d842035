"""MemoryStore: a store in memory, for tests and experiments."""

from __future__ import annotations

import io
import itertools
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import IO

from dbt.adapters.silt.engine.kernel.clock import Clock
from dbt.adapters.silt.engine.kernel.storage import store
from tests.fixed_clock import FixedClock


@dataclass
class _Tree:
    """Files and folders by absolute path, with a number for each incarnation of a folder and its modification time."""

    clock: Clock
    files: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    folders: dict[str, int] = field(default_factory=lambda: {"": 0})
    folder_times: dict[str, int] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)
    numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def require_folder(self, folder: str) -> int:
        if folder not in self.folders:
            raise store.ObjectMissing(folder)
        return self.folders[folder]

    def write(self, path: str, data: bytes) -> None:
        now = self.clock.now_ms()
        if path not in self.files:
            self.folder_times[_parent(path)] = now
        self.files[path] = (data, now)

    def touch(self, folder: str) -> None:
        self.folder_times[folder] = self.clock.now_ms()


class MemoryStore(store.Store):
    """Files in memory, shared by a store and its children. Safe to share between threads.

    Args:
        clock: the clock of the modification times.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self._tree = _Tree(clock or FixedClock())
        self._base = ""

    @property
    def root(self) -> str:
        return f"memory:/{self._base}"

    @property
    def has_folders(self) -> bool:
        return True

    def list_from(self, folder: str, start: str = "") -> list[store.FileStatus]:
        with self._tree.lock:
            base = self._full_path(folder)
            self._tree.require_folder(base)
            names = [path.rpartition("/")[2] for path in self._tree.files if path.rpartition("/")[0] == base]
            found = (self.status(store.joined(folder, name)) for name in sorted(names) if name >= start)
            return [status for status in found if status is not None]

    def list_folders(self, folder: str) -> list[str]:
        with self._tree.lock:
            base = self._full_path(folder)
            self._tree.require_folder(base)
            return sorted(path.rpartition("/")[2] for path in self._tree.folders if path and _parent(path) == base)

    def list_links(self, folder: str) -> list[str]:
        return []

    def read(self, path: str, at_most: int = store.MOST_BYTES) -> bytes:
        with self._tree.lock:
            if self._full_path(path) not in self._tree.files:
                raise store.ObjectMissing(path)
            data = self._tree.files[self._full_path(path)][0]
        store.check_size(path, len(data), at_most)
        return data

    def open_input(self, path: str) -> IO[bytes]:
        return io.BytesIO(self.read(path))

    def status(self, path: str) -> store.FileStatus | None:
        with self._tree.lock:
            found = self._tree.files.get(self._full_path(path))
            return None if found is None else store.FileStatus(path, len(found[0]), found[1])

    def put_if_absent(self, path: str, data: bytes) -> store.PutResult:
        folder, _, name = path.rpartition("/")
        with self._tree.lock:
            return self.pin(folder).put_if_absent(name, data)

    def put(self, path: str, data: bytes) -> None:
        with self._tree.lock:
            self._tree.require_folder(_parent(self._full_path(path)))
            self._tree.write(self._full_path(path), data)

    def delete(self, path: str) -> None:
        with self._tree.lock:
            if self._tree.files.pop(self._full_path(path), None) is not None:
                self._tree.touch(_parent(self._full_path(path)))

    def make_folder(self, folder: str) -> None:
        with self._tree.lock:
            parts = self._full_path(folder).split("/")
            for depth in range(1, len(parts) + 1):
                path = "/".join(parts[:depth])
                if path not in self._tree.folders:
                    self._tree.folders[path] = next(self._tree.numbers)
                    self._tree.touch(path)
                    self._tree.folder_times[_parent(path)] = self._tree.folder_times[path]

    def rename_folder(self, source: str, target: str) -> None:
        old, new = self._full_path(source), self._full_path(target)
        with self._tree.lock:
            self._tree.require_folder(old)
            self._tree.require_folder(_parent(new))
            if new in self._tree.folders or new in self._tree.files:
                raise store.ObjectExists(target)
            self._tree.folders = {_moved_path(path, old, new): number for path, number in self._tree.folders.items()}
            self._tree.folder_times = {_moved_path(path, old, new): at for path, at in self._tree.folder_times.items()}
            self._tree.files = {_moved_path(path, old, new): content for path, content in self._tree.files.items()}

    def delete_folder(self, folder: str) -> None:
        base = self._full_path(folder)
        with self._tree.lock:
            self._tree.folders = {path: n for path, n in self._tree.folders.items() if not _within(path, base)}
            self._tree.files = {path: content for path, content in self._tree.files.items() if not _within(path, base)}

    def delete_empty_folder(self, folder: str) -> bool:
        base = self._full_path(folder)
        with self._tree.lock:
            within = (path for path in (*self._tree.folders, *self._tree.files) if path != base)
            if base not in self._tree.folders or any(_within(path, base) for path in within):
                return False
            del self._tree.folders[base]
            self._tree.touch(_parent(base))
            return True

    def folder_modified_ms(self, folder: str) -> int | None:
        with self._tree.lock:
            base = self._full_path(folder)
            return self._tree.folder_times.get(base, 0) if base in self._tree.folders else None

    def make_durable(self, paths: Sequence[str]) -> None:
        for path in paths:
            if self.status(path) is None:
                raise store.ObjectMissing(path)

    def check_writable(self) -> None:
        """Does nothing: memory is always writable."""

    def pin(self, folder: str) -> MemoryFolder:
        with self._tree.lock:
            path = self._full_path(folder)
            return MemoryFolder(self._tree, path, self._tree.require_folder(path))

    def child(self, folder: str) -> MemoryStore:
        child = MemoryStore()
        child._tree = self._tree
        child._base = self._full_path(folder)
        return child

    def local_path(self, path: str) -> str | None:
        return None

    def _full_path(self, path: str) -> str:
        return store.joined(self._base, path)


@dataclass(frozen=True)
class MemoryFolder:
    """An incarnation of a folder of a MemoryStore."""

    tree: _Tree
    path: str
    number: int

    def known_by(self, file: store.FileStatus) -> MemoryFolder:
        return self

    def is_current(self) -> bool:
        return self.tree.folders.get(self.path) == self.number

    def put_if_absent(self, name: str, data: bytes) -> store.PutResult:
        with self.tree.lock:
            if not self.is_current():
                raise store.ObjectMissing(self.path)
            if store.joined(self.path, name) in self.tree.files:
                return store.PutResult.EXISTS
            self.tree.write(store.joined(self.path, name), data)
            return store.PutResult.CREATED


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


def _moved_path(path: str, old: str, new: str) -> str:
    return new + path[len(old) :] if _within(path, old) else path
