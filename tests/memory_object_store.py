"""MemoryObjectStore: an object store in memory, for tests and experiments."""

from __future__ import annotations

import io
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import IO

from dbt.adapters.silt.engine.kernel.clock import Clock
from dbt.adapters.silt.engine.kernel.storage.prefix_folders import ListedTree, pinned
from dbt.adapters.silt.engine.kernel.storage.store import (
    MOST_BYTES,
    FileStatus,
    ObjectExists,
    ObjectMissing,
    PinnedFolder,
    PrefixStore,
    PutResult,
    Tag,
    TaggedObject,
    check_size,
    joined,
)
from tests.fixed_clock import FixedClock


@dataclass
class _Bucket:
    """Objects by their full key: content, time and the number of the write."""

    clock: Clock
    objects: dict[str, tuple[bytes, int, int]] = field(default_factory=dict)
    writes: int = 0
    lock: threading.RLock = field(default_factory=threading.RLock)

    def write(self, key: str, data: bytes) -> Tag:
        self.writes += 1
        self.objects[key] = (data, self.clock.now_ms(), self.writes)
        return self.tag(key)

    def tag(self, key: str) -> Tag:
        return Tag(str(self.objects[key][2]))


class MemoryObjectStore(PrefixStore):
    """Objects in memory, shared by a store and its children: without folders, with conditional writes, like a bucket.

    Safe to share between threads.

    Args:
        clock: the clock of the modification times.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self._bucket = _Bucket(clock or FixedClock())
        self._base = ""
        self._is_never_reused = False

    @property
    def root(self) -> str:
        return f"memory:/{self._base}"

    @property
    def has_folders(self) -> bool:
        return False

    @property
    def is_never_reused(self) -> bool:
        return self._is_never_reused

    def list_from(self, folder: str, start: str = "") -> list[FileStatus]:
        with self._bucket.lock:
            names = (name for name in self._below(folder) if "/" not in name and name >= start)
            found = (self.status(joined(folder, name)) for name in sorted(names))
            return [status for status in found if status is not None]

    @property
    def files_at_once(self) -> int:
        return 1

    def files_below(self, folder: str) -> list[FileStatus]:
        with self._bucket.lock:
            names = self._below(folder) if self._has(folder) else []
            found = (self.status(joined(folder, name)) for name in sorted(names))
            return [status for status in found if status is not None]

    def tree(self) -> ListedTree:
        return ListedTree(self.files_below(""))

    def fetch(self, path: str) -> tuple[FileStatus, bytes] | None:
        with self._bucket.lock:
            status = self.status(path)
            return None if status is None else (status, self.read(path))

    def list_folders(self, folder: str) -> list[str]:
        with self._bucket.lock:
            return sorted({name.partition("/")[0] for name in self._below(folder) if "/" in name})

    def list_links(self, folder: str) -> list[str]:
        return []

    def read(self, path: str, at_most: int = MOST_BYTES) -> bytes:
        data = self._tagged(path).data
        check_size(path, len(data), at_most)
        return data

    def open_input(self, path: str) -> IO[bytes]:
        return io.BytesIO(self.read(path))

    def status(self, path: str) -> FileStatus | None:
        with self._bucket.lock:
            found = self._bucket.objects.get(self._key(path))
            return None if found is None else FileStatus(path, len(found[0]), found[1], str(found[2]))

    def put_if_absent(self, path: str, data: bytes) -> PutResult:
        with self._bucket.lock:
            if self._key(path) in self._bucket.objects:
                return PutResult.EXISTS
            self._bucket.write(self._key(path), data)
            return PutResult.CREATED

    def put(self, path: str, data: bytes) -> None:
        with self._bucket.lock:
            self._bucket.write(self._key(path), data)

    def read_if_changed(self, path: str, known: Tag | None) -> TaggedObject | None:
        found = self._tagged(path)
        return None if found.tag == known else found

    def swap_if_unchanged(self, path: str, data: bytes, tag: Tag) -> Tag | None:
        key = self._key(path)
        with self._bucket.lock:
            if key not in self._bucket.objects or self._bucket.tag(key) != tag:
                return None
            return self._bucket.write(key, data)

    def copy_file(self, source: str, target: str) -> None:
        self.put(target, self.read(source))

    def delete(self, path: str) -> None:
        with self._bucket.lock:
            self._bucket.objects.pop(self._key(path), None)

    def make_folder(self, folder: str) -> None:
        """Does nothing: the first object below a folder creates it."""

    def rename_folder(self, source: str, target: str) -> None:
        """Moves each object: writes it under its new key, then deletes it under the old key."""
        with self._bucket.lock:
            names = self._below(source)
            if any(key.startswith(f"{self._key(target)}/") for key in self._bucket.objects):
                raise ObjectExists(target)
            for name in names:
                self.put(joined(target, name), self.read(joined(source, name)))
                self.delete(joined(source, name))

    def delete_folder(self, folder: str) -> None:
        with self._bucket.lock:
            for key in [key for key in self._bucket.objects if key.startswith(f"{self._key(folder)}/")]:
                del self._bucket.objects[key]

    def delete_empty_folder(self, folder: str) -> bool:
        """Does nothing: an empty folder does not exist."""
        return False

    def folder_modified_ms(self, folder: str) -> int | None:
        return None

    def make_durable(self, paths: Sequence[str]) -> None:
        for path in paths:
            if self.status(path) is None:
                raise ObjectMissing(path)

    def check_writable(self) -> None:
        """Does nothing: memory is always writable."""

    def pin(self, folder: str) -> PinnedFolder:
        return pinned(self, folder)

    def never_reused(self) -> MemoryObjectStore:
        same = self.child("")
        same._is_never_reused = True
        return same

    def child(self, folder: str) -> MemoryObjectStore:
        child = MemoryObjectStore()
        child._bucket, child._base = self._bucket, self._key(folder)
        child._is_never_reused = self._is_never_reused
        return child

    def local_path(self, path: str) -> str | None:
        return None

    def _key(self, path: str) -> str:
        return joined(self._base, path)

    def _tagged(self, path: str) -> TaggedObject:
        with self._bucket.lock:
            if self._key(path) not in self._bucket.objects:
                raise ObjectMissing(path)
            return TaggedObject(self._bucket.objects[self._key(path)][0], self._bucket.tag(self._key(path)))

    def _has(self, folder: str) -> bool:
        key = self._key(folder)
        return any(each.startswith(f"{key}/") or not key for each in self._bucket.objects)

    def _below(self, folder: str) -> list[str]:
        """Returns the rest of each key below the folder; the root always exists."""
        key = self._key(folder)
        above = f"{key}/" if key else ""
        names = [each[len(above) :] for each in self._bucket.objects if each.startswith(above)]
        if folder and not names:
            raise ObjectMissing(folder)
        return names
