"""Store: the protocol of a storage, which a local folder, an object store and memory implement.

Paths are relative to the store's root, with `/` between names, and are plain names, not URIs. An operation with an
unknown outcome raises StorageError. Absence and failure are always different errors: a reader that mistook a failed
listing for an empty listing would re-create a table that exists.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO, Final, Protocol

from dbt.adapters.silt.engine.kernel.errors import StorageError, UnusableFileError

MOST_BYTES: Final = 2 << 30
"""The size, in bytes, of the largest file that is read as a whole."""
DOCUMENT_BYTES: Final = 64 << 20
"""The size, in bytes, of the largest JSON document that is read, such as a checksum, view or list of names."""

DEEPEST: Final = 100
"""The greatest depth of nested folders that are listed."""

_READS: Final = 3
_FILES_AT_ONCE: Final = 8


class ObjectMissing(Exception):
    """The object or folder certainly does not exist."""


class ObjectExists(Exception):
    """An object or folder already exists at the path that was to be created."""


class PutResult(enum.Enum):
    """The answer to a conditional write."""

    CREATED = "created"
    EXISTS = "exists"


@dataclass(frozen=True)
class FileStatus:
    """A file, as a listing shows it.

    Args:
        path: the path relative to the store's root.
        size: the size in bytes.
        modified_ms: the time of the last change, in milliseconds since 1970-01-01 UTC.
        etag: the entity tag, which identifies the content, if the storage has tags.
    """

    path: str
    size: int
    modified_ms: int
    etag: str | None = None

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    def has_content_of(self, other: FileStatus) -> bool:
        """Returns whether both have the same content, as far as their fields show."""
        if self.etag is not None and other.etag is not None:
            return self.etag == other.etag
        return (self.size, self.modified_ms) == (other.size, other.modified_ms)


@dataclass(frozen=True)
class Tag:
    """The service's identification of an object's content: its entity tag and its version.

    A service has either or both.
    """

    etag: str | None
    version: str | None = None


@dataclass(frozen=True)
class TaggedObject:
    """The content of an object, and its tag."""

    data: bytes = field(repr=False)
    tag: Tag


class PinnedFolder(Protocol):
    """An incarnation of a folder; a folder that is re-created at the same path is another incarnation."""

    def known_by(self, file: FileStatus) -> PinnedFolder:
        """Returns the same folder, identified by a file that was seen in it.

        A storage without folders distinguishes incarnations by such a file, which must still exist unchanged. Other
        storages do not need the file and return the same value.
        """
        ...

    def is_current(self) -> bool:
        """Returns whether this incarnation of the folder is still at its path."""
        ...

    def put_if_absent(self, name: str, data: bytes) -> PutResult:
        """Writes a file directly in the folder, like `Store.put_if_absent`.

        Raises:
            ObjectMissing: if the folder was removed, moved or replaced since it was pinned; nothing was written.
            NotWrittenError: if the write failed and certainly did not take place.
            StorageError: if the write may or may not have taken place.
        """
        ...


class Tree(Protocol):
    """The folders of a store."""

    def content(self, folder: str) -> tuple[list[FileStatus], list[str]]:
        """Lists the files directly in the folder and the names of its subfolders, both sorted.

        Raises:
            ObjectMissing: if the folder does not exist.
        """
        ...


class Store(Protocol):
    """A tree of files.

    If folders are only prefixes (object stores), a folder exists while a file is below it, and listing or reading in
    a missing folder raises ObjectMissing.

    Operations on many files have a default of single operations; a store with a cheaper way overrides them.

    Every method may raise StorageError; after a write, it means that the write may or may not have taken place, unless
    it is a NotWrittenError.

    >>> from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
    >>> store = LocalStore(folder)
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
        """Whether folders exist independently of files and are renamed atomically; False if they are only prefixes."""
        ...

    @property
    def is_local(self) -> bool:
        """Whether the files are on this machine's file system, where a status costs next to nothing."""
        return False

    @property
    def is_never_reused(self) -> bool:
        """Whether no other table has had or will have this root."""
        return False

    @property
    def service(self) -> str | None:
        """The URL of the bucket of a service, which may ignore conditions; None if this code decides about them."""
        return None

    @property
    def allowed(self) -> Sequence[str] | None:
        """The locations outside of the root in which the logs of its tables may name files; None for any."""
        return None

    @property
    def elsewhere(self) -> Callable[[str], Store] | None:
        """Opens a folder of another storage in which a log names files; None if that is not allowed."""
        return None

    @property
    def files_at_once(self) -> int:
        """The number of files to read at the same time."""
        return _FILES_AT_ONCE

    def list_from(self, folder: str, start: str = "") -> list[FileStatus]:
        """Lists the files directly in the folder whose names are `start` or after it, sorted by name.

        Raises:
            ObjectMissing: if the folder does not exist.
        """
        ...

    def list_folders(self, folder: str) -> list[str]:
        """Lists the names of the folders directly in the folder, sorted.

        Raises:
            ObjectMissing: if the folder does not exist.
        """
        ...

    def files_in_order(self, folder: str) -> Iterator[FileStatus]:
        """Iterates over the files directly in the folder, sorted by name; may list only as many as are used.

        Raises:
            ObjectMissing: if the folder does not exist.
        """
        found = {file.name: file for file in self.list_from(folder)}
        return iter([found[name] for name in sorted(found)])

    def files_below(self, folder: str) -> list[FileStatus]:
        """Lists the files in the folder and its subfolders, in no order; empty if the folder does not exist.

        Raises:
            UnusableFileError: if folders are nested more than `DEEPEST` deep.
        """
        return list(_walk(self, folder))

    def tree(self) -> Tree:
        """Returns the folders, which an object store lists all at once, without empty objects.

        Hadoop marks folders with empty objects.
        """
        return _Folders(self)

    def list_links(self, folder: str) -> list[str]:
        """Lists the names of the symbolic links directly in the folder, sorted; other listings leave links out.

        The list is empty if the storage has no links.

        Raises:
            ObjectMissing: if the folder does not exist.
        """
        ...

    def read(self, path: str, at_most: int = MOST_BYTES) -> bytes:
        """Reads the file's content.

        Args:
            at_most: the maximum size of such a file, in bytes.

        Raises:
            ObjectMissing: if the file does not exist.
            UnusableFileError: if it is larger, or not a regular file.
        """
        ...

    def read_all(self, paths: Iterable[str]) -> Iterator[bytes]:
        """Yields the content of each file, one after the other. Raises as `read`."""
        return map(self.read, paths)

    def fetch(self, path: str) -> tuple[FileStatus, bytes] | None:
        """Reads the whole file with its status, or returns None if the file does not exist."""
        status = self.status(path)
        return None if status is None else (status, read_whole(self, path, status))

    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Reads parts of the file, each from a start to an exclusive end; parts are cut off at the end of the file.

        Raises:
            ObjectMissing: if the file does not exist.
        """
        with self.open_input(path) as file:
            return [_part(file, start, end) for start, end in ranges]

    def open_input(self, path: str) -> IO[bytes]:
        """Opens the file for random access, which Parquet readers need; the caller closes it.

        Raises:
            ObjectMissing: if the file does not exist.
            UnusableFileError: if it is not a regular file.
        """
        ...

    def status(self, path: str) -> FileStatus | None:
        """Returns the file as a listing would show it, or None if it does not exist."""
        ...

    def statuses(self, paths: Iterable[str]) -> Iterator[FileStatus | None]:
        """Yields the status of each file."""
        return map(self.status, paths)

    def put_if_absent(self, path: str, data: bytes) -> PutResult:
        """Writes the file durably and whole if it does not exist; of many callers, exactly one gets CREATED.

        Raises:
            ObjectMissing: if the folder does not exist; it is never created. Not raised if folders are only prefixes.
        """
        ...

    def put(self, path: str, data: bytes) -> None:
        """Writes the file durably; a reader sees the old or the new content, never a part.

        Raises:
            ObjectMissing: if the folder does not exist; it is never created. Not raised if folders are only prefixes.
        """
        ...

    def copy_in(self, path: str, data: IO[bytes]) -> None:
        """Writes a new file, whose folder exists, with the rest of an open file; it may not be durable yet."""
        self.put(path, data.read())

    def delete(self, path: str) -> None:
        """Deletes the file; a missing file is not an error."""
        ...

    def delete_all(self, paths: Sequence[str]) -> None:
        """Deletes files, in an object store in any order; a missing file is not an error.

        After a StorageError any of the files may be deleted.
        """
        for path in paths:
            self.delete(path)

    def make_folder(self, folder: str) -> None:
        """Creates the folder and its missing parents; does nothing if folders are only prefixes."""
        ...

    def rename_folder(self, source: str, target: str) -> None:
        """Moves a folder, atomically if the storage has folders.

        Raises:
            ObjectMissing: if the source, or the parent folder of the target, does not exist.
            ObjectExists: if the target exists.
        """
        ...

    def delete_folder(self, folder: str) -> None:
        """Deletes the folder with its content; a missing folder is not an error."""
        ...

    def delete_empty_folder(self, folder: str) -> bool:
        """Deletes the folder atomically if it is empty; returns whether it did. False if folders are only prefixes."""
        ...

    def folder_modified_ms(self, folder: str) -> int | None:
        """Returns when an entry was last added to or removed from the folder, in milliseconds since 1970-01-01 UTC.

        Returns None if the folder does not exist, or if folders are only prefixes.
        """
        ...

    def make_durable(self, paths: Sequence[str]) -> None:
        """Makes files of other writers durable, and every folder between them and the root.

        Raises:
            ObjectMissing: if a file does not exist.
        """
        ...

    def check_writable(self) -> None:
        """Checks, without a write, that this process may create files in the root, as far as the storage reports it.

        Raises:
            ReadOnlyStorageError: if it may not write in the root, or in the future parent folder of the root.
        """
        ...

    def pin(self, folder: str) -> PinnedFolder:
        """Pins the folder that exists now.

        Raises:
            ObjectMissing: if the folder does not exist. Not raised if folders are only prefixes.
        """
        ...

    def child(self, folder: str) -> Store:
        """Returns a store of the same kind with that folder as root, which need not exist."""
        ...

    def local_path(self, path: str) -> str | None:
        """Returns the path or URI by which Spark and pyarrow open the file, or None if only this store can open it."""
        ...


class PrefixStore(Store, Protocol):
    """A store whose folders are only prefixes, such as an object store: its objects can be swapped."""

    def never_reused(self) -> PrefixStore:
        """Returns a store of the same objects whose root is never reused, which the caller guarantees."""
        ...

    def child(self, folder: str) -> PrefixStore: ...

    def copy_file(self, source: str, target: str) -> None:
        """Copies an object; readers of the target see the old content or the whole copy.

        Raises:
            ObjectMissing: if the source does not exist.
        """
        ...

    def read_if_changed(self, path: str, known: Tag | None) -> TaggedObject | None:
        """Reads the object's content and tag, or returns None if it still has the known tag.

        Raises:
            ObjectMissing: if the object does not exist.
        """
        ...

    def swap_if_unchanged(self, path: str, data: bytes, tag: Tag) -> Tag | None:
        """Replaces the object's content if it still has the tag. Returns the new tag, or None if it was not replaced.

        Raises:
            NotWrittenError: if the write failed and certainly did not take place.
            StorageError: if the write may or may not have taken place.
        """
        ...


def check_size(path: str, size: int, at_most: int) -> None:
    """Checks the size of a file before the file is read.

    Raises:
        UnusableFileError: if it has more bytes than a file of its kind can have.
    """
    if size > at_most:
        raise UnusableFileError(f"{path} has {size} bytes, but a file of its kind has at most {at_most}")


def joined(folder: str, name: str) -> str:
    """Returns the path of a name in a folder; either may be empty."""
    return f"{folder}/{name}" if folder and name else folder or name


def read_whole(store: Store, path: str, status: FileStatus | None = None) -> bytes:
    """Reads a file of lines, a part of which could pass for the whole, and checks the file's size.

    Args:
        status: the file as a listing showed it, which saves a request for its status.

    Raises:
        ObjectMissing: if the file does not exist.
        StorageError: if it cannot be read, or only in part.
    """
    for _ in range(_READS):
        data = store.read(path)
        if status is None or status.size != len(data):
            status = store.status(path)
        if status is not None and status.size == len(data):
            return data
    size = "gone" if status is None else f"{status.size} bytes long"
    raise StorageError(f"{len(data)} bytes of {path} could be read, but it is {size}")


@dataclass(frozen=True)
class _Folders:
    store: Store

    def content(self, folder: str) -> tuple[list[FileStatus], list[str]]:
        return self.store.list_from(folder), self.store.list_folders(folder)


def _walk(store: Store, folder: str, depth: int = 0) -> Iterator[FileStatus]:
    if depth > DEEPEST:
        raise UnusableFileError(f"{folder[:200]}... has folders that are nested more than {DEEPEST} deep")
    try:
        files, folders = store.list_from(folder), store.list_folders(folder)
    except ObjectMissing:
        return
    yield from files
    for name in folders:
        yield from _walk(store, joined(folder, name), depth + 1)


def _part(file: IO[bytes], start: int, end: int) -> bytes:
    file.seek(start)
    return file.read(end - start)
