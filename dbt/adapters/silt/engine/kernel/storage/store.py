"""Store: the protocol of a storage, which a local folder, an object store and memory implement.

Paths are relative to the store's root, with `/` between names, and are plain names, not URIs. An operation of which
the outcome is unknown raises StorageError. Absence and failure are different errors everywhere: a reader that took a
failed listing for an empty one would re-create a table that exists.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import IO, Final, Protocol

from dbt.adapters.silt.engine.kernel.errors import StorageError, UnusableFileError

MOST_BYTES: Final = 2 << 30
"""The size, in bytes, of the largest file that is read as a whole."""
DOCUMENT_BYTES: Final = 64 << 20
"""The same for documents that hold one JSON object, such as checksums, views and lists of names."""

_READS: Final = 3


class ObjectMissing(Exception):
    """The object or folder certainly does not exist."""


class ObjectExists(Exception):
    """There is already an object or folder at the path where one was to be made."""


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
        etag: identifies the content; None where the storage has none.
    """

    path: str
    size: int
    modified_ms: int
    etag: str | None = None

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    def has_content_of(self, other: FileStatus) -> bool:
        """Whether both have the same content, as far as their fields show."""
        if self.etag is not None and other.etag is not None:
            return self.etag == other.etag
        return (self.size, self.modified_ms) == (other.size, other.modified_ms)


@dataclass(frozen=True)
class Tag:
    """Identifies one content of an object: what the service gave for it, its entity tag and its version.

    A service has one of them at least.
    """

    etag: str | None
    version: str | None = None


@dataclass(frozen=True)
class TaggedObject:
    """The content of an object, and its tag."""

    data: bytes = field(repr=False)
    tag: Tag


class PinnedFolder(Protocol):
    """One incarnation of a folder: a folder that is re-created at the same path is another one."""

    def known_by(self, file: FileStatus) -> PinnedFolder:
        """The same folder, identified by a file that was seen in it.

        A storage without folders distinguishes incarnations by such a file: it must be there, unchanged. Other
        storages need none, and return the same value.
        """
        ...

    def is_current(self) -> bool:
        """Whether this very folder is still at its path."""
        ...

    def put_if_absent(self, name: str, data: bytes) -> PutResult:
        """Writes a file directly in the folder, as `Store.put_if_absent` does.

        Raises:
            ObjectMissing: the folder was removed, moved or replaced since it was pinned; nothing was written.
            NotWrittenError: the write failed and certainly did not take place.
            StorageError: the write may or may not have taken place.
        """
        ...


class Store(Protocol):
    """A tree of files.

    Where folders are only prefixes (object stores), a folder exists while a file is below it, and listing or reading in
    a missing one raises ObjectMissing.

    Every method may raise StorageError; from a write it means that the write may or may not have taken place, unless it
    is a NotWrittenError.

    >>> from dbt.adapters.silt.engine.kernel.storage.memory_store import MemoryStore
    >>> store = MemoryStore()
    >>> store.make_folder("_delta_log")
    >>> store.put_if_absent("_delta_log/0.json", b"first")
    <PutResult.CREATED: 'created'>
    >>> store.put_if_absent("_delta_log/0.json", b"second")
    <PutResult.EXISTS: 'exists'>
    >>> store.read("_delta_log/0.json")
    b'first'
    """

    @property
    def root(self) -> str:
        """The absolute local path, or the URI, under which Spark reads the same files."""
        ...

    @property
    def has_folders(self) -> bool:
        """Whether folders exist by themselves, and are renamed in one step; False where they are only prefixes."""
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

    def list_links(self, folder: str) -> list[str]:
        """The names of the symbolic links directly in the folder, sorted; other listings leave links out.

        Empty if the storage has no links.

        Raises:
            ObjectMissing: there is no such folder.
        """
        ...

    def read(self, path: str, at_most: int = MOST_BYTES) -> bytes:
        """The file's content.

        Args:
            at_most: the number of bytes that such a file can have.

        Raises:
            ObjectMissing: there is no such file.
            UnusableFileError: it is larger, or not a regular file.
        """
        ...

    def open_input(self, path: str) -> IO[bytes]:
        """The file for random access, as Parquet readers need it; the caller closes it.

        Raises:
            ObjectMissing: there is no such file.
            UnusableFileError: it is not a regular file.
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
        """Deletes the file; a missing one is no error."""
        ...

    def make_folder(self, folder: str) -> None:
        """Makes the folder, and those above it, where they do not exist; nothing where folders are only prefixes."""
        ...

    def rename_folder(self, source: str, target: str) -> None:
        """Moves a folder: atomically where the storage has folders.

        Raises:
            ObjectMissing: the source, or the folder that the target is to be in, is not there.
            ObjectExists: there is something at the target.
        """
        ...

    def delete_folder(self, folder: str) -> None:
        """Deletes the folder and all within; a missing one is no error."""
        ...

    def delete_empty_folder(self, folder: str) -> bool:
        """Deletes the folder atomically if it is empty; whether it did. Never where folders are only prefixes."""
        ...

    def folder_modified_ms(self, folder: str) -> int | None:
        """When something was last put directly into the folder or taken out of it, milliseconds since 1970-01-01 UTC.

        None where there is no such folder, or where folders are only prefixes.
        """
        ...

    def make_durable(self, paths: Sequence[str]) -> None:
        """Makes files that others wrote durable: the files, and every folder between them and the root.

        Raises:
            ObjectMissing: a file is not there.
        """
        ...

    def check_writable(self) -> None:
        """Passes unless the storage says, without a write, that this process cannot make files in the root.

        Raises:
            ReadOnlyStorageError: it says so of the root, or of the folder that the root would be made in.
        """
        ...

    def pin(self, folder: str) -> PinnedFolder:
        """Pins the folder that is there now.

        Raises:
            ObjectMissing: there is no such folder. Never raised where folders are only prefixes.
        """
        ...

    def child(self, folder: str) -> Store:
        """A store of the same kind with that folder as root, which need not exist."""
        ...

    def local_path(self, path: str) -> str | None:
        """The path or URI by which Spark and pyarrow open the file; None where only this store can."""
        ...


class PrefixStore(Store, Protocol):
    """A store whose folders are only prefixes, such as an object store: its objects can be swapped."""

    @property
    def is_never_reused(self) -> bool:
        """Whether no other table has had or will have this root."""
        ...

    def never_reused(self) -> PrefixStore:
        """The same objects, of which the caller knows that."""
        ...

    def child(self, folder: str) -> PrefixStore: ...

    def copy_file(self, source: str, target: str) -> None:
        """Copies an object; readers of the target see what was there, or the whole copy.

        Raises:
            ObjectMissing: there is no such object.
        """
        ...

    def read_if_changed(self, path: str, known: Tag | None) -> TaggedObject | None:
        """The object's content and tag; None where it still has the tag that is known.

        Raises:
            ObjectMissing: there is no such object.
        """
        ...

    def swap_if_unchanged(self, path: str, data: bytes, tag: Tag) -> Tag | None:
        """Replaces the object's content if it still has that tag; its new tag, or None where it has another or is gone.

        Raises:
            NotWrittenError: the write failed and certainly did not take place.
            StorageError: the write may or may not have taken place.
        """
        ...


def check_size(path: str, size: int, at_most: int) -> None:
    """Checks the size of a file before the file is read.

    Raises:
        UnusableFileError: it has more bytes than a file of its kind can have.
    """
    if size > at_most:
        raise UnusableFileError(f"{path} has {size} bytes, and a file of its kind has {at_most} at most")


def joined(folder: str, name: str) -> str:
    """The path of a name in a folder; either may be empty."""
    return f"{folder}/{name}" if folder and name else folder or name


def read_whole(store: Store, path: str, seen: FileStatus | None = None) -> bytes:
    """Reads a file of lines, of which a part could pass for the whole, and checks it against the file's size.

    Args:
        seen: the file as a listing showed it, which saves a request for its status.

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
    raise StorageError(f"{len(data)} bytes of {path} could be read, but it is {size}")
