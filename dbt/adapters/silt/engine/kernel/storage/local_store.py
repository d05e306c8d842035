"""LocalStore: a folder of the local file system as a store.

A conditional write creates a temporary file in the same folder, forces it to disk, and links it to its name: `link`
fails if the name exists, on every POSIX file system, also between processes and hosts, whereas a rename would overwrite
the file. Then the folder is forced to disk.

A writer that is killed leaves at most one such file per write, `.<name>.<32 hexadecimal digits>.tmp` in the folder of
its target: in `_delta_log` (commits, checksums, checkpoints, `_last_checkpoint`) or any other folder that is written.
Its name begins with a dot, so every reader ignores it; `is_temporary_name` recognises it, and VACUUM deletes it once it
is old enough. No other file that a store writes is ever visible in part.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import logging
import os
import re
import shutil
import stat
import uuid
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, cast

import pyarrow

from dbt.adapters.silt.engine.kernel.errors import NotWrittenError, ReadOnlyStorageError, StorageError
from dbt.adapters.silt.engine.kernel.storage import beneath, storage_errors, store

_logger = logging.getLogger(__name__)

_DESCRIPTORS = "/dev/fd"
_TEMPORARY_NAME = re.compile(r"\..+\.[0-9a-f]{32}\.tmp")
_MOST_TRIES = 10
_PART_BYTES = 4 << 20
_ONE_CALL = 1 << 20
"""The size in bytes up to which a system call reads a file whole."""
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EXDEV)


def is_temporary_name(name: str) -> bool:
    """Returns whether the name belongs to a temporary file, which a killed writer may have left behind."""
    return _TEMPORARY_NAME.fullmatch(name) is not None


class LocalStore(store.Store):
    """Files below a folder, which need not exist yet.

    Symbolic links below the folder are never followed: reading, writing or deleting through a link raises
    SymbolicLinkError, and listings leave links out. If `allowed` is set, this also applies to the path from this folder
    to a child store's root, so a table's folder cannot be a link.

    Args:
        root: the folder; a relative path is resolved against the current working directory.
        allowed: the folders outside of the root in which the logs of its tables may name files; None for any.
    """

    allowed: Sequence[str] | None = None
    elsewhere: Callable[[str], store.Store] | None = None

    def __init__(self, root: str | os.PathLike[str], allowed: Sequence[str] | None = None) -> None:
        self._root = self._top = os.path.abspath(os.fspath(root))
        self._below_top = ""
        self.allowed = allowed

    def __repr__(self) -> str:
        return f"LocalStore({self._root!r})"

    @property
    def is_local(self) -> bool:
        return True

    @property
    def has_folders(self) -> bool:
        return True

    @property
    def root(self) -> str:
        return self._root

    def list_from(self, folder: str, start: str = "") -> list[store.FileStatus]:
        with self._listed(folder) as entries:
            wanted = [entry for entry in entries if entry.name >= start and entry.is_file(follow_symlinks=False)]
            found = (_listed_status(store.joined(folder, entry.name), entry) for entry in wanted)
            return sorted((status for status in found if status is not None), key=lambda status: status.name)

    def list_folders(self, folder: str) -> list[str]:
        with self._listed(folder) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))

    def list_links(self, folder: str) -> list[str]:
        with self._listed(folder) as entries:
            return sorted(entry.name for entry in entries if entry.is_symlink())

    def read(self, path: str, at_most: int = store.MOST_BYTES) -> bytes:
        with _Mapped("reading", self._full_path(path)), self._opened(path) as descriptor:
            return self._content(descriptor, path, at_most)

    def read_all(self, paths: Iterable[str]) -> Iterator[bytes]:
        """Yields the content of each file; the folder of consecutive files is resolved only once. Raises as `read`."""
        for folder, group in itertools.groupby(paths, key=lambda path: path.rpartition("/")[0]):
            with contextlib.ExitStack() as opened:
                with _Mapped("opening the folder", self._full_path(folder)):
                    descriptor = opened.enter_context(self._folder(folder))
                yield from (self._read_in(descriptor, path) for path in group)

    def _read_in(self, folder: int, path: str) -> bytes:
        whole = self._full_path(path)
        with _Mapped("reading", whole), beneath.file(folder, path.rpartition("/")[2], whole) as descriptor:
            return self._content(descriptor, path, store.MOST_BYTES)

    def _content(self, descriptor: int, path: str, at_most: int) -> bytes:
        size = os.fstat(descriptor).st_size
        store.check_size(self._full_path(path), size, at_most)
        asked = min(at_most, size + 1)  # Python allocates memory for as many bytes as it is asked for
        if size < _ONE_CALL:
            return os.read(descriptor, asked)
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(asked)

    def open_input(self, path: str) -> IO[bytes]:
        with _Mapped("opening", self._full_path(path)), self._opened(path) as descriptor:
            # Arrow opens files by name; this name refers to the file that was opened here.
            same_file = f"{_DESCRIPTORS}/{descriptor}"
            if os.path.exists(same_file):
                return cast(IO[bytes], pyarrow.OSFile(same_file, "rb"))
            return open(os.dup(descriptor), "rb")

    def status(self, path: str) -> store.FileStatus | None:
        whole = self._full_path(path)
        try:
            with _Mapped("checking", whole), self._open_parent(path) as (folder, name):
                found = beneath.status(folder, name)
        except store.ObjectMissing:
            return None
        return _unless_link(path, whole, found)

    def statuses(self, paths: Iterable[str]) -> Iterator[store.FileStatus | None]:
        """Yields the status of each file; each folder is resolved only once.

        Raises:
            SymbolicLinkError: if a file, or a folder above it, is a symbolic link.
        """
        checked: dict[str, bool] = {}
        for path in paths:
            folder = path.rpartition("/")[0]
            if folder not in checked:
                checked[folder] = self._is_folder(folder)
            yield self._status(path) if checked[folder] else None

    def put_if_absent(self, path: str, data: bytes) -> store.PutResult:
        folder, _, name = path.rpartition("/")
        return self.pin(folder).put_if_absent(name, data)

    def put(self, path: str, data: bytes) -> None:
        target = self._full_path(path)
        with _mapped_write("writing", target), self._open_parent(path, beneath.READ) as (folder, name):
            beneath.raise_if_link(folder, name, target)
            temporary = _temporary_name(name)
            try:
                _write_durably(temporary, data, folder)
                # Hadoop's checksum of the old content would make Spark reject the new content.
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(f".{name}.crc", dir_fd=folder)
                os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(temporary, dir_fd=folder)
                raise
            with _Mapped("syncing", self._full_path(path.rpartition("/")[0])):
                os.fsync(folder)

    def copy_in(self, path: str, data: IO[bytes]) -> None:
        with self._open_parent(path) as (folder, name), open(_created(name, folder), "wb") as copied:
            shutil.copyfileobj(data, copied, _PART_BYTES)

    def delete(self, path: str) -> None:
        with contextlib.suppress(store.ObjectMissing), _mapped_write("deleting", self._full_path(path)):
            with self._open_parent(path) as (folder, name):
                os.unlink(name, dir_fd=folder)

    def make_folder(self, folder: str) -> None:
        path, missing = self._top, []
        while not os.path.isdir(path):
            missing.append(path)
            path = os.path.dirname(path)
        with _mapped_write("creating the folder", self._full_path(folder)):
            os.makedirs(self._top, exist_ok=True)
            for made in reversed(missing):
                _sync(os.path.dirname(made), beneath.READ)
            beneath.make_folder(self._top, store.joined(self._below_top, folder))

    def rename_folder(self, source: str, target: str) -> None:
        old = self._full_path(source)
        try:
            with _mapped_write("moving", old), self._open_parent(source) as (old_folder, old_name):
                with self._open_parent(target) as (new_folder, new_name):
                    # rename(2) replaces an empty folder silently.
                    if _exists(new_folder, new_name):
                        raise store.ObjectExists(self._full_path(target))
                    os.rename(old_name, new_name, src_dir_fd=old_folder, dst_dir_fd=new_folder)
                for parent in {source.rpartition("/")[0], target.rpartition("/")[0]}:
                    self._sync_folder(parent)
        except StorageError as error:
            if _is_not_empty(error):
                raise store.ObjectExists(self._full_path(target)) from error
            raise

    def delete_folder(self, folder: str) -> None:
        """Deletes the folder with its content, also files added meanwhile; if it is a link, deletes only the link."""
        path = self._full_path(folder)
        for left in reversed(range(_MOST_TRIES)):
            try:
                # A file that is added or renamed at the same time stops the deletion.
                with contextlib.suppress(store.ObjectMissing), _mapped_write("deleting the folder", path):
                    if not self._delete_tree(folder):
                        return
            except StorageError as error:
                if not left or not _is_not_empty(error):
                    raise
        raise StorageError(
            f"{path} cannot be deleted: files were added to it or renamed at each attempt",
            remedy="Stop the programs that use the folder, then run the command again",
        )

    def _delete_tree(self, folder: str) -> bool:
        """Deletes a folder, or the link in its place; returns whether anything may remain."""
        with self._open_parent(folder) as (above, name):
            try:
                mode = beneath.status(above, name).st_mode
            except FileNotFoundError:
                return False
            if stat.S_ISLNK(mode):
                os.unlink(name, dir_fd=above)
            if not stat.S_ISDIR(mode):
                return False
            beneath.delete_tree(above, name)
            return True

    def delete_empty_folder(self, folder: str) -> bool:
        try:
            with (
                _mapped_write("deleting the folder", self._full_path(folder)),
                self._open_parent(folder) as (above, name),
            ):
                os.rmdir(name, dir_fd=above)
        except store.ObjectMissing:
            return False
        except (store.ObjectExists, StorageError) as error:
            if _is_not_empty(error):
                return False
            raise
        return True

    def folder_modified_ms(self, folder: str) -> int | None:
        try:
            with _Mapped("checking", self._full_path(folder)), self._folder(folder) as descriptor:
                return os.fstat(descriptor).st_mtime_ns // 1_000_000
        except store.ObjectMissing:
            return None

    def make_durable(self, paths: Sequence[str]) -> None:
        for path in paths:
            with _mapped_write("syncing", self._full_path(path)):
                with self._opened(path) as descriptor:
                    os.fsync(descriptor)
        for folder in sorted({above for path in paths for above in _folders_above(path)}, reverse=True):
            self._sync_folder(folder)

    def check_writable(self) -> None:
        folder = self._root
        while not os.path.lexists(folder):
            folder = os.path.dirname(folder)
        if not os.access(folder, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
            is_mounted_so = bool(os.statvfs(folder).f_flag & os.ST_RDONLY)
            reason = os.strerror(errno.EROFS if is_mounted_so else errno.EACCES)
            raise ReadOnlyStorageError(f"{folder} is not writable ({reason})")

    def pin(self, folder: str) -> LocalFolder:
        path = self._full_path(folder)
        with _Mapped("opening the folder", path), self._folder(folder, beneath.READ) as descriptor:
            return LocalFolder(path, os.dup(descriptor))

    def child(self, folder: str) -> LocalStore:
        child = LocalStore(self._full_path(folder), self.allowed)
        child.elsewhere = self.elsewhere
        if self.allowed is not None:
            child._top, child._below_top = self._top, store.joined(self._below_top, folder)
        return child

    def local_path(self, path: str) -> str:
        return self._full_path(path)

    def _full_path(self, path: str) -> str:
        return f"{self._root.rstrip('/')}/{path}" if path else self._root

    def _folder(self, folder: str, flags: int = beneath.SEARCH) -> contextlib.AbstractContextManager[int]:
        """Yields the descriptor of a folder; raises errors like `beneath.folder`."""
        return beneath.folder(self._top, store.joined(self._below_top, folder), flags)

    @contextlib.contextmanager
    def _open_parent(self, path: str, flags: int = beneath.SEARCH) -> Iterator[tuple[int, str]]:
        """Yields the descriptor of a path's folder, and the path's last name; raises errors like `beneath.folder`."""
        whole = store.joined(self._below_top, path)
        top, rest = (self._top, whole) if whole else os.path.split(self._top)
        folder, _, name = rest.rpartition("/")
        with beneath.folder(top, folder, flags) as descriptor:
            yield descriptor, name

    @contextlib.contextmanager
    def _opened(self, path: str) -> Iterator[int]:
        """Yields the descriptor of a regular file, open for reading; raises errors like `beneath.file`."""
        with self._open_parent(path) as (folder, name), beneath.file(folder, name, self._full_path(path)) as descriptor:
            yield descriptor

    @contextlib.contextmanager
    def _listed(self, folder: str) -> Iterator[Iterator[os.DirEntry[str]]]:
        with (
            _Mapped("listing", self._full_path(folder)),
            self._folder(folder, beneath.READ) as descriptor,
            os.scandir(descriptor) as entries,
        ):
            yield entries

    def _is_folder(self, folder: str) -> bool:
        try:
            with _Mapped("checking", self._full_path(folder)), self._folder(folder):
                return True
        except store.ObjectMissing:
            return False

    def _status(self, path: str) -> store.FileStatus | None:
        whole = self._full_path(path)
        try:
            with _Mapped("checking", whole):
                found = os.lstat(whole)
        except store.ObjectMissing:
            return None
        return _unless_link(path, whole, found)

    def _sync_folder(self, folder: str) -> None:
        with _mapped_write("syncing", self._full_path(folder)), self._folder(folder, beneath.READ) as descriptor:
            os.fsync(descriptor)


def _unless_link(path: str, whole: str, found: os.stat_result) -> store.FileStatus | None:
    if stat.S_ISLNK(found.st_mode):
        raise beneath.link_error(whole)
    return _regular(path, found)


def _regular(path: str, found: os.stat_result) -> store.FileStatus | None:
    if not stat.S_ISREG(found.st_mode):
        return None
    return store.FileStatus(path, found.st_size, found.st_mtime_ns // 1_000_000)


def _listed_status(path: str, entry: os.DirEntry[str]) -> store.FileStatus | None:
    """Returns the status of a file in a listing, or None if the file was deleted in the meantime."""
    try:
        return _regular(path, entry.stat(follow_symlinks=False))
    except FileNotFoundError:
        return None


def _exists(folder: int, name: str) -> bool:
    try:
        beneath.status(folder, name)
    except FileNotFoundError:
        return False
    return True


def _is_not_empty(error: Exception) -> bool:
    """Returns whether an operation failed because a folder is not empty."""
    return isinstance(error.__cause__, OSError) and error.__cause__.errno in (errno.ENOTEMPTY, errno.EEXIST)


class LocalFolder:
    """A folder with an open descriptor, so that its inode is not reused during the life of this value.

    Args:
        path: the absolute path of the folder.
        descriptor: the descriptor of the folder, open for reading; this value closes it.
    """

    def __init__(self, path: str, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor
        weakref.finalize(self, os.close, self._descriptor)

    def known_by(self, file: store.FileStatus) -> LocalFolder:
        return self

    def is_current(self) -> bool:
        try:
            with _Mapped("checking", self._path):
                return os.path.samestat(os.stat(self._path), os.fstat(self._descriptor))
        except store.ObjectMissing:
            return False

    def put_if_absent(self, name: str, data: bytes) -> store.PutResult:
        if not self.is_current():
            raise store.ObjectMissing(self._path)
        temporary = _temporary_name(name)
        try:
            self._write(temporary, data)
            result = self._link(temporary, name)
        finally:
            self._discard(temporary)
        if result is store.PutResult.CREATED:
            self._settle(name)
        return result

    def _write(self, temporary: str, data: bytes) -> None:
        try:
            _write_durably(temporary, data, self._descriptor)
        except FileNotFoundError as error:
            raise store.ObjectMissing(self._path) from error
        except OSError as error:
            text = f"writing to {self._path} failed: {error.strerror}"
            raise storage_errors.refused_write(text, error) or NotWrittenError(text) from error

    def _link(self, temporary: str, name: str) -> store.PutResult:
        try:
            os.link(temporary, name, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)
        except FileExistsError as error:
            if self._is_file(name):
                return store.PutResult.EXISTS
            raise NotWrittenError(
                f"{self._path}/{name} exists, but is not a file",
                remedy="Move it away, then run it again: nothing was written",
            ) from error
        except FileNotFoundError as error:
            raise store.ObjectMissing(self._path) from error
        except OSError as error:
            if error.errno in _NO_LINKS:
                raise NotWrittenError(
                    f"the file system of {self._path} has no hard links, which a safe commit needs",
                    remedy="Put the warehouse on a file system that has them, such as ext4, xfs, btrfs, APFS or NFS",
                ) from error
            raise storage_errors.failure(f"linking {self._path}/{name}", error, is_write=True) from error
        return store.PutResult.CREATED

    def _is_file(self, name: str) -> bool:
        """Returns whether the name is a file, or no longer exists."""
        try:
            return stat.S_ISREG(beneath.status(self._descriptor, name).st_mode)
        except FileNotFoundError:
            return True
        except OSError:
            return True  # reading it will raise the error

    def _settle(self, name: str) -> None:
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            raise StorageError(f"syncing {self._path} failed: {error.strerror}") from error
        if not self.is_current():
            raise StorageError(f"{self._path} was moved or removed while {name} was written into it")

    def _discard(self, temporary: str) -> None:
        try:
            os.unlink(temporary, dir_fd=self._descriptor)
        except FileNotFoundError:
            pass  # it was never created, or was deleted with its folder
        except OSError as error:
            with contextlib.suppress(OSError):  # without a status, it was never created
                os.stat(temporary, dir_fd=self._descriptor)
                _logger.warning("the temporary file %s is left in %s: %s", temporary, self._path, error)


class _Mapped:
    """Converts errors of the operating system to errors of the store."""

    __slots__ = ("_doing", "_is_write", "_path")

    def __init__(self, doing: str, path: str, is_write: bool = False) -> None:
        self._doing, self._path, self._is_write = doing, path, is_write

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        match error:
            case FileExistsError():
                raise store.ObjectExists(self._path) from error
            # A ValueError: a name with a NUL or a lone surrogate, which no file system supports.
            case FileNotFoundError() | NotADirectoryError() | ValueError():
                raise store.ObjectMissing(self._path) from error
            case OSError():
                raise storage_errors.failure(f"{self._doing} {self._path}", error, self._is_write) from error


def _mapped_write(doing: str, path: str) -> _Mapped:
    """Like `_Mapped`, for writes: a refusal by the system means that nothing was written."""
    return _Mapped(doing, path, is_write=True)


def _write_durably(path: str, data: bytes, folder: int | None = None) -> None:
    with open(_created(path, folder), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _created(path: str, folder: int | None) -> int:
    """Returns the descriptor of a new file, which may not exist yet, relative to a folder."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666, dir_fd=folder)


def _sync(path: str, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _temporary_name(name: str) -> str:
    """Returns a new name that matches `_TEMPORARY_NAME`."""
    return f".{name}.{uuid.uuid4().hex}.tmp"


def _folders_above(path: str) -> list[str]:
    """Returns the folders above a path, including the root, which is ``."""
    parts = path.split("/")[:-1]
    return ["/".join(parts[:depth]) for depth in range(len(parts) + 1)]
