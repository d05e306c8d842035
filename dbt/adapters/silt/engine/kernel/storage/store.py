"""What the kernel asks of a storage: a small protocol that a local folder, an object store and memory can all keep.

Paths are relative to the store's root, with `/` between names, and are plain names, not URIs. An operation that cannot
tell what happened raises StorageError; absence is told apart from failure everywhere, because a reader that takes
a failing listing for an empty one would rebuild a table that is there.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO, Final, Protocol

from dbt.adapters.silt.engine.kernel.errors import StorageError

_READS: Final = 3


class ObjectMissing(Exception):
    """The object or folder is definitely not there."""


class ObjectExists(Exception):
    """There is already an object or folder at the place where one was to be made."""


class PutResult(enum.Enum):
    """The answer to a conditional write."""

    CREATED = "created"
    EXISTS = "exists"


@dataclass(frozen=True)
class FileStatus:
    """A file, as a listing shows it.

    Args:
        path: relative to the store's root.
        size: bytes.
        modified_ms: milliseconds since 1970-01-01 UTC.
        etag: what another content would differ in; None where the storage gives no such thing.
    """

    path: str
    size: int
    modified_ms: int
    etag: str | None = None

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    def has_content_of(self, other: FileStatus) -> bool:
        """Whether both are of one content, as far as they tell."""
        if self.etag is not None and other.etag is not None:
            return self.etag == other.etag
        return (self.size, self.modified_ms) == (other.size, other.modified_ms)


class PinnedFolder(Protocol):
    """One incarnation of a folder: a folder made anew at the same place is another one."""

    def known_by(self, file: FileStatus) -> PinnedFolder:
        """The same folder, known by a file that was seen in it.

        A storage that has no folders of its own tells incarnations apart by such a file: it must be there, unchanged.
        Others need none, and give the same value back.
        """
        ...

    def is_current(self) -> bool:
        """Whether this very folder is still at its place."""
        ...

    def put_if_absent(self, name: str, data: bytes) -> PutResult:
        """Writes a file directly in the folder, as `Store.put_if_absent` does.

        Raises:
            ObjectMissing: the folder was removed, moved or replaced since it was pinned; nothing was written.
            NotWrittenError: the write failed and surely did not take place.
            StorageError: whether the write took place is not known.
        """
        ...


class Store(Protocol):
    """A place for files.

    Where folders are only prefixes (object stores), a folder is there while a file is below it, and a missing one is
    told as ObjectMissing by whatever lists or reads in it.

    Every method may raise StorageError; for a write it means that whether the write took place is not known, unless it
    is a NotWrittenError.
    """

    @property
    def root(self) -> str:
        """The absolute local path, or the URI, under which Spark reads the same files."""
        ...

    def list_from(self, folder: str, start: str = "") -> list[FileStatus]:
        """The files directly in the folder whose name is `start` or after it, sorted by name.

        Raises:
            ObjectMissing: there is no such folder.
        """
        ...

    def list_folders(self, folder: str) -> list[str]:
        """The names of the folders directly in the folder, sorted.

        Raises:
            ObjectMissing: there is no such folder.
        """
        ...

    def read(self, path: str) -> bytes:
        """The file's content.

        Raises:
            ObjectMissing: there is no such file.
        """
        ...

    def open_input(self, path: str) -> IO[bytes]:
        """The file for random access, as Parquet readers need it; the caller closes it.

        Raises:
            ObjectMissing: there is no such file.
        """
        ...

    def status(self, path: str) -> FileStatus | None:
        """The file as a listing would show it, or None if it is not there."""
        ...

    def put_if_absent(self, path: str, data: bytes) -> PutResult:
        """Writes the file durably and whole if there is none; exactly one of many callers gets CREATED.

        Raises:
            ObjectMissing: the folder is not there; it is never made. Never raised where folders are only prefixes.
        """
        ...

    def put(self, path: str, data: bytes) -> None:
        """Writes the file durably; a reader sees the old content or the new, never a part.

        Raises:
            ObjectMissing: the folder is not there; it is never made. Never raised where folders are only prefixes.
        """
        ...

    def delete(self, path: str) -> None:
        """Deletes the file; one that is not there is no error."""
        ...

    def make_folder(self, folder: str) -> None:
        """Makes the folder, and those above it, where they are not there; nothing where folders are only prefixes."""
        ...

    def rename_folder(self, source: str, target: str) -> None:
        """Moves a folder: in one step where the storage has folders.

        Raises:
            ObjectMissing: the source, or the folder that the target is to be in, is not there.
            ObjectExists: there is something at the target.
        """
        ...

    def delete_folder(self, folder: str) -> None:
        """Deletes the folder and all within; one that is not there is no error."""
        ...

    def delete_empty_folder(self, folder: str) -> bool:
        """Deletes the folder if nothing is in it, in one step; whether it did. Never where folders are prefixes."""
        ...

    def folder_modified_ms(self, folder: str) -> int | None:
        """When something was last put directly into the folder or taken out of it, milliseconds since 1970-01-01 UTC.

        None where there is no such folder, or where the storage has none apart from the files in them.
        """
        ...

    def make_durable(self, paths: Sequence[str]) -> None:
        """Makes files that others wrote survive a crash: the files, and every folder between them and the root.

        Raises:
            ObjectMissing: a file is not there.
        """
        ...

    def pin(self, folder: str) -> PinnedFolder:
        """Takes hold of the folder that is there now.

        Raises:
            ObjectMissing: there is no such folder. Never raised where folders are only prefixes.
        """
        ...

    def child(self, folder: str) -> Store:
        """A store of the same kind whose root is that folder, which need not be there."""
        ...

    def local_path(self, path: str) -> str | None:
        """The path or URI by which Spark and pyarrow open the file; None where only this store can."""
        ...


def read_whole(store: Store, path: str, seen: FileStatus | None = None) -> bytes:
    """The content of a file of lines, of which a part could pass for the whole: as long as the file is said to be.

    Args:
        seen: the file as a listing showed it, which saves a look at it.

    Raises:
        ObjectMissing: there is no such file.
        StorageError: it cannot be read, or only in part.
    """
    for _ in range(_READS):
        data = store.read(path)
        if seen is None or seen.size != len(data):
            seen = store.status(path)
        if seen is not None and seen.size == len(data):
            return data
    size = "gone" if seen is None else f"{seen.size} bytes long"
    raise StorageError(f"{len(data)} bytes of {path} could be read, which is said to be {size}")
