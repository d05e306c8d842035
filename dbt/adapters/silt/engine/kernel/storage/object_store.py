"""ObjectStore: a bucket, or a prefix in it, as a store: S3 and compatible services, Google Cloud, Azure, by obstore.

A conditional write is a single request that the service itself decides: `If-None-Match: *` on S3 and Azure, a
generation of 0 on Google. The client sends it once and never repeats it, so that each answer is about that request: a
refusal is definite, and EXISTS means that an earlier request, of this writer or another writer, created the object.

Object stores have no folders, only the paths of objects. So a folder exists while an object is below it; creating a
folder does nothing, and a write does not need it. A commit cannot get into a log that was dropped, or dropped and
re-created: a commit that the writer has read identifies the log's folder (`PrefixFolder.known_by`).

A killed writer leaves nothing behind except parts of an incomplete upload, which no listing shows; a rule of the bucket
(S3: AbortIncompleteMultipartUpload) removes them.
"""

from __future__ import annotations

import contextlib
import datetime
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import IO, Any, Final

from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError, NotWrittenError, StorageError
from dbt.adapters.silt.engine.kernel.storage import store
from dbt.adapters.silt.engine.kernel.storage.prefix_folders import ListedTree, PrefixFolder, UniqueFolder, pinned
from dbt.adapters.silt.engine.kernel.storage.storage_errors import first_line, is_signed, no_answer, refusal
from dbt.adapters.silt.engine.kernel.storage.urls import SCHEMES

try:
    import obstore
    from obstore import exceptions
    from obstore import store as obstores
except ImportError:  # without the extras s3, azure and gcs
    obstore = None

# Options of the HTTP client, which obstore separates from the options of the service.
_CLIENT_OPTIONS: Final = frozenset(
    {
        "allow_http",
        "allow_invalid_certificates",
        "connect_timeout",
        "pool_idle_timeout",
        "pool_max_idle_per_host",
        "proxy_ca_certificate",
        "proxy_excludes",
        "proxy_url",
        "randomize_addresses",
        "read_timeout",
        "root_certificate",
        "timeout",
        "user_agent",
    }
)
_FLAGS: Final = frozenset({"allow_http", "allow_invalid_certificates", "randomize_addresses"})
_IN_BUCKET: Final = re.compile(r"(?P<bucket>[^:/]+://[^/]+)/(?P<prefix>.+)", re.DOTALL)
_WITHOUT_NETWORK: Final = ("memory", "local")
_REQUESTS_AT_ONCE: Final = 16
_BUFFER_BYTES: Final = 1 << 16
_COPIED_BYTES: Final = 5 << 30
"""The size of the largest object that S3 copies in a single request; the other services copy larger objects."""
_PART_BYTES: Final = 8 << 20
_PARTS: Final = 9_000  # an upload may have 10,000
_AZURE: Final = ("abfs://", "abfss://", "az://")
_PAGE: Final = 1000
_BEGINS_ANYWHERE: Final = ("s3://", "s3a://", "gs://", "memory:")
_FILES_AT_ONCE: Final = 64  # a service is slow, but answers many requests at the same time
_WITH_SERVICE: Final = tuple(f"{scheme}://" for scheme in SCHEMES)
_LAST_LETTER: Final = "\U0010ffff"


class ObjectStore(store.PrefixStore):
    """Objects below a URL.

    Args:
        url: `s3://bucket/prefix`, `gs://...`, `az://container/prefix` or `abfss://...`; for tests also `memory:///`.
        options: options, with obstore's names, of the service (`endpoint`, `region`, `access_key_id`,
            `secret_access_key`, `skip_signature` ...) and of its client (`allow_http`, `timeout`, `proxy_url` ...), and
            `max_retries` and `retry_timeout`, the maximum number and duration in seconds of retries of a request other
            than a conditional write. Other options come from the environment, as in the service's own tools.

    Raises:
        InvalidSettingError: if obstore is not installed, or the URL or an option cannot be used.
    """

    allowed: Sequence[str] | None = None
    elsewhere: Callable[[str], store.Store] | None = None

    def __init__(self, url: str, options: Mapping[str, str] | None = None) -> None:
        bare = url.rstrip("/")
        self._url, self._base = (f"{bare}//" if bare.endswith(":") else bare), ""
        if found := _IN_BUCKET.fullmatch(bare):
            # The client uses the whole bucket: in a URL's prefix it would read `%20` as a space, unlike Spark.
            self._url, self._base = found["bucket"], found["prefix"]
        self._client, self._once = _clients(self._url, dict(options or {}))

        self._is_never_reused = False

    def __repr__(self) -> str:
        return f"ObjectStore({self.root!r})"

    @property
    def root(self) -> str:
        return store.joined(self._url, self._base)

    @property
    def has_folders(self) -> bool:
        return False

    @property
    def is_never_reused(self) -> bool:
        return self._is_never_reused

    @property
    def service(self) -> str | None:
        return self._url if self._url.startswith(_WITH_SERVICE) else None

    @property
    def files_at_once(self) -> int:
        return _FILES_AT_ONCE

    def list_from(self, folder: str, start: str = "") -> list[store.FileStatus]:
        key = self._key(folder)
        with _mapped("listing", self._named(folder)):
            if start:
                # The service lists from an exclusive offset; names before `start` are filtered out below.
                found: Iterable[Any] = list(self._without_folders(key, start[:-1]))
            else:
                found = obstore.list_with_delimiter(self._client, key or None)["objects"]
        within = f"{key}/" if key else ""
        named = {each["path"][len(within) :]: each for each in found if each["path"].startswith(within)}
        if not named:
            self._require_folder(folder)
        return [
            _status(store.joined(folder, name), named[name])
            for name in sorted(named)
            if name >= start and "/" not in name
        ]

    def files_in_order(self, folder: str) -> Iterator[store.FileStatus]:
        """Yields the files directly in the folder, sorted by name, with a request for each thousand that are used."""
        if not self._is_sorted:
            yield from self.list_from(folder)
            return
        within = f"{self._key(folder)}/" if self._key(folder) else ""
        is_there = False
        with _mapped("listing", self._named(folder)):
            for each in self._without_folders(self._key(folder), ""):
                is_there, name = True, each["path"][len(within) :]
                if "/" not in name:
                    yield _status(store.joined(folder, name), each)
        if not is_there:
            self._require_folder(folder)

    def _without_folders(self, key: str, start: str) -> Iterator[Any]:
        """Yields the objects below a key, from a name onwards, in the service's order.

        Folders in it are skipped if the service can begin a listing anywhere: they may contain far more files.
        """
        within = f"{key}/" if key else ""
        can_skip = self._is_sorted and self._url.startswith(_BEGINS_ANYWHERE)
        offset: str | None = store.joined(key, start) if start else ""
        while offset is not None:
            chunks = obstore.list(self._client, key or None, offset=offset or None, chunk_size=_PAGE)
            offset = None
            for chunk in chunks:
                yield from chunk
                name = chunk[-1]["path"][len(within) :] if len(chunk) == _PAGE else ""
                if can_skip and "/" in name:
                    offset = f"{within}{name.partition('/')[0]}/{_LAST_LETTER}"
                    break

    @property
    def _is_sorted(self) -> bool:
        """Whether the service lists objects sorted by name, unlike a disk and S3's directory buckets."""
        return not self._url.startswith("file:") and not self._url.rstrip("/").endswith("--x-s3")

    def list_folders(self, folder: str) -> list[str]:
        with _mapped("listing", self._named(folder)):
            found = obstore.list_with_delimiter(self._client, self._key(folder) or None)
        if not found["common_prefixes"] and not found["objects"]:
            self._require_folder(folder)
        return sorted(prefix.rpartition("/")[2] for prefix in found["common_prefixes"])

    def list_links(self, folder: str) -> list[str]:
        return []

    def read(self, path: str, at_most: int = store.MOST_BYTES) -> bytes:
        with _mapped("reading", self._named(path)):
            answer = obstore.get(self._client, self._key(path))
            store.check_size(self._named(path), answer.meta["size"], at_most)
            return bytes(answer.bytes())

    def open_input(self, path: str) -> IO[bytes]:
        """Opens the file with a single request for its size and its end, which a Parquet reader reads first."""
        key = self._key(path)
        with _mapped("opening", self._named(path)):
            found, end = self._end(key)
        return io.BufferedReader(_Ranges(self._client, key, found, end), _BUFFER_BYTES)

    def _end(self, key: str) -> tuple[Mapping[str, Any], bytes]:
        if not self._url.startswith(_AZURE):  # it supports no ranges from the end
            try:
                answer = obstore.get(self._client, key, options={"range": {"suffix": _BUFFER_BYTES}})
                return answer.meta, bytes(answer.bytes())
            except exceptions.BaseError as error:
                if isinstance(error, FileNotFoundError):
                    raise
        # An empty object has no end.
        return obstore.head(self._client, key), b""

    def fetch(self, path: str) -> tuple[store.FileStatus, bytes] | None:
        """Reads the file with its status in a single request, or returns None if it does not exist."""
        try:
            with _mapped("reading", self._named(path)):
                answer = obstore.get(self._client, self._key(path))
                store.check_size(self._named(path), answer.meta["size"], store.MOST_BYTES)
                return _status(path, answer.meta), bytes(answer.bytes())
        except store.ObjectMissing:
            return None

    def files_below(self, folder: str) -> list[store.FileStatus]:
        """Lists the files in the folder and its subfolders, sorted, with a request for each thousand files."""
        with _mapped("listing", self._named(folder)):
            stream = obstore.list(self._client, self._key(folder) or None, chunk_size=_PAGE)
            found = [each for chunk in stream for each in chunk]
        cut = len(f"{self._base}/") if self._base else 0
        return sorted((_status(each["path"][cut:], each) for each in found), key=lambda status: status.path)

    def tree(self) -> ListedTree:
        return ListedTree(self.files_below(""))

    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Reads ranges of the file; nearby ranges are read with a single request."""
        starts, ends = [start for start, _ in ranges], [end for _, end in ranges]
        if any(end <= start for start, end in ranges):
            wanted = iter(self.read_ranges(path, [each for each in ranges if each[0] < each[1]]))
            return [next(wanted) if start < end else b"" for start, end in ranges]
        try:
            with _mapped("reading", self._named(path)):
                found = obstore.get_ranges(self._client, self._key(path), starts=starts, ends=ends)
                return [bytes(each) for each in found]
        except StorageError:
            # Each service has its own error for a range beyond the end.
            size = self._required_status(path).size
            if all(end <= size for end in ends):
                raise
        return self.read_ranges(path, [(start, min(end, size)) for start, end in ranges])

    def _required_status(self, path: str) -> store.FileStatus:
        found = self.status(path)
        if found is None:
            raise store.ObjectMissing(self._named(path))
        return found

    def status(self, path: str) -> store.FileStatus | None:
        try:
            with _mapped("checking", self._named(path)):
                return _status(path, self._looked_at(self._key(path)))
        except store.ObjectMissing:
            return None

    def _looked_at(self, key: str) -> Any:
        """Requests the status; if that is refused, reads a byte to get the reason, as the first answer has no body."""
        try:
            return obstore.head(self._client, key)
        except exceptions.BaseError as error:
            if not _is_known_refusal(error):
                raise
            refused = error
        try:
            return obstore.get(self._client, key, options={"range": (0, 1)}).meta
        except exceptions.BaseError as error:
            raise (error if _is_known_refusal(error) else refused) from error

    def put_if_absent(self, path: str, data: bytes) -> store.PutResult:
        with _mapped("writing", self._named(path), is_write=True):
            try:
                obstore.put(self._once, self._key(path), data, mode="create")
            except exceptions.AlreadyExistsError as error:
                return self._existing(path, error)
        return store.PutResult.CREATED

    def put(self, path: str, data: bytes) -> None:
        with _mapped("writing", self._named(path)):
            obstore.put(self._client, self._key(path), data)

    def read_if_changed(self, path: str, known: store.Tag | None) -> store.TaggedObject | None:
        options: Any = None if known is None else {"if_none_match": known.etag}
        with _mapped("reading", self._named(path)):
            try:
                found = obstore.get(self._client, self._key(path), options=options)
            except exceptions.NotModifiedError:
                return None
            store.check_size(self._named(path), found.meta["size"], store.DOCUMENT_BYTES)
            return store.TaggedObject(bytes(found.bytes()), store.Tag(found.meta["e_tag"], found.meta["version"]))

    def swap_if_unchanged(self, path: str, data: bytes, tag: store.Tag) -> store.Tag | None:
        expected: Any = {"e_tag": tag.etag} if tag.version is None else {"e_tag": tag.etag, "version": tag.version}
        with _mapped("replacing", self._named(path), is_write=True):
            try:
                put = obstore.put(self._once, self._key(path), data, mode=expected)
            except (exceptions.PreconditionError, exceptions.AlreadyExistsError, FileNotFoundError):
                return None
        return store.Tag(put["e_tag"], put["version"])

    def copy_file(self, source: str, target: str) -> None:
        """Copies an object in the service, or through this machine if it is too large for a single request to S3."""
        found = self._required_status(source)
        with _mapped("copying", self._named(source)):
            if found.size <= _COPIED_BYTES:
                obstore.copy(self._client, self._key(source), self._key(target))
                return
            content = obstore.get(self._client, self._key(source)).stream(min_chunk_size=_PART_BYTES)
            parts = max(_PART_BYTES, found.size // _PARTS)
            writer = obstore.open_writer(self._client, self._key(target), buffer_size=parts)
            for each in content:
                writer.write(bytes(each))
            writer.close()  # not after a failure, which would create a partial object

    def delete(self, path: str) -> None:
        with contextlib.suppress(store.ObjectMissing), _mapped("deleting", self._named(path)):
            obstore.delete(self._client, self._key(path))

    def delete_all(self, paths: Sequence[str]) -> None:
        """Deletes files in any order, up to a thousand per request if the service can; files may be missing."""
        try:
            with _mapped("deleting", self.root):
                obstore.delete(self._client, [self._key(path) for path in paths])
        except store.ObjectMissing:
            # Some services stop such a request at a missing object.
            for path in paths:
                self.delete(path)

    def make_folder(self, folder: str) -> None:
        """Does nothing: the first object below a folder creates it."""

    def rename_folder(self, source: str, target: str) -> None:
        """Copies every object, then deletes the copied objects: not atomic, and its cost grows with the data.

        Objects are copied in reverse order of their names, so that until the end a table's log lacks its beginning at
        the target, and a reader there gets an error, never a part of the table. The caller must first end a
        table's log (`catalog.names.log_end`), because a commit made at the source during the copy is not moved.
        """
        if next(self._keys(target), None) is not None:
            raise store.ObjectExists(self._named(target))
        keys = sorted(self._keys(source), reverse=True)
        if not keys:
            raise store.ObjectMissing(self._named(source))
        old, new = self._key(source), self._key(target)
        with _mapped("moving", self._named(source)):
            for key in keys:
                obstore.copy(self._client, key, f"{new}{key[len(old) :]}")
            for key in keys:
                obstore.delete(self._client, key)

    def delete_folder(self, folder: str) -> None:
        """Deletes all objects below the folder, including objects that are written at the same time.

        Hadoop marks a folder with an empty object whose name ends with a slash; this client lists it without the slash
        and so cannot delete it. An empty object that still exists after its deletion is treated as such a mark.
        """
        empty: set[str] = set()
        while found := [each for each in self._listed(folder) if each["path"] not in empty or each["size"]]:
            with _mapped("deleting the folder", self._named(folder)):
                obstore.delete(self._client, sorted(each["path"] for each in found))
            empty.update(each["path"] for each in found if not each["size"])
        if folder and self._url.startswith(_AZURE):
            self.delete(folder)  # its mark, which has the folder's own name in Azure

    def delete_empty_folder(self, folder: str) -> bool:
        """Does nothing: an empty folder does not exist."""
        return False

    def folder_modified_ms(self, folder: str) -> int | None:
        return None

    def make_durable(self, paths: Sequence[str]) -> None:
        """Does nothing: an object is durable as soon as its write has succeeded."""

    def check_writable(self) -> None:
        """Does nothing: only a write shows whether it is allowed."""

    def pin(self, folder: str) -> PrefixFolder | UniqueFolder:
        return pinned(self, folder)

    def never_reused(self) -> ObjectStore:
        same = self.child("")
        same._is_never_reused = True
        return same

    def child(self, folder: str) -> ObjectStore:
        child = type(self).__new__(type(self))
        child._url, child._base = self._url, self._key(folder)
        child._client, child._once = self._client, self._once
        child._is_never_reused = self._is_never_reused
        child.allowed, child.elsewhere = self.allowed, self.elsewhere
        return child

    def local_path(self, path: str) -> str:
        return self._named(path)

    def _existing(self, path: str, error: Exception) -> store.PutResult:
        """Returns EXISTS if the object exists: S3 also refuses a write (409) during another, which may still fail."""
        if self.status(path) is None:
            raise StorageError(f"another write of {self._named(path)} was in progress") from error
        return store.PutResult.EXISTS

    def _key(self, path: str) -> str:
        return store.joined(self._base, path)

    def _named(self, path: str) -> str:
        return store.joined(self.root, path)

    def _keys(self, folder: str) -> Iterator[str]:
        return (each["path"] for each in self._listed(folder))

    def _listed(self, folder: str) -> Iterator[Any]:
        with _mapped("listing", self._named(folder)):
            for chunk in obstore.list(self._client, self._key(folder) or None, chunk_size=_PAGE):
                yield from chunk

    def _require_folder(self, folder: str) -> None:
        """Raises ObjectMissing if the folder does not exist; the root always exists."""
        if folder and next(self._keys(folder), None) is None:
            raise store.ObjectMissing(self._named(folder))


class _Ranges(io.RawIOBase):
    """An object that is read in ranges, all from the same content; the last range is already known."""

    def __init__(self, client: Any, key: str, found: Mapping[str, Any], last: bytes) -> None:
        self._client, self._key, self._size = client, key, found["size"]
        self._last = last
        self._condition = {"if_match": found["e_tag"]} if found["e_tag"] else {}
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        origin = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, origin + offset)
        return self._at

    def readinto(self, buffer: Any) -> int:
        end = min(self._at + len(buffer), self._size)
        if end <= self._at:
            return 0
        data = self._read(self._at, end)
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def _read(self, start: int, end: int) -> bytes:
        known = self._size - len(self._last)
        if start >= known:
            return self._last[start - known : end - known]
        options: Any = {"range": (start, end), **self._condition}
        with _mapped("reading", self._key):
            return bytes(obstore.get(self._client, self._key, options=options).bytes())


def _clients(url: str, options: dict[str, Any]) -> tuple[Any, Any]:
    """Creates the usual client, and the client for conditional writes, which never repeats a request."""
    if obstore is None:
        raise InvalidSettingError(
            f"{url} is in an object store, but the package obstore is not installed",
            remedy='Install it: pip install "dbt-silt[s3]" (or azure, gcs)',
        )
    retries, wait = options.pop("max_retries", None), options.pop("retry_timeout", None)
    client = {name: options.pop(name) for name in sorted(_CLIENT_OPTIONS & options.keys())}
    client.update({name: str(client[name]).lower() == "true" for name in _FLAGS & client.keys()})
    try:
        scheme = obstore.parse_scheme(url)
        if scheme in _WITHOUT_NETWORK:
            # Without clean-up, an empty folder would still be listed.
            only = obstores.from_url(url, **{"automatic_cleanup": True} if scheme == "local" else {})
            return only, only
        limits: dict[str, Any] = {} if retries is None else {"max_retries": int(retries)}
        limits |= {} if wait is None else {"retry_timeout": datetime.timedelta(seconds=int(wait))}
        retry: Any = {"retry_config": limits} if limits else {}
        usual = obstores.from_url(url, config=options or None, client_options=client or None, **retry)
        once: Any = {"max_retries": 0}
        return usual, obstores.from_url(url, config=options or None, client_options=client or None, retry_config=once)
    except (exceptions.BaseError, ValueError, TypeError) as error:
        raise InvalidSettingError(f"the object store {url} cannot be opened: {first_line(error)}") from error


@contextlib.contextmanager
def _mapped(doing: str, name: str, is_write: bool = False) -> Iterator[None]:
    """Converts errors of obstore to errors of the store.

    Args:
        is_write: whether a refusal means that a write certainly did not take place, because it was sent once.
    """
    try:
        yield
    except (FileNotFoundError, exceptions.BaseError, ValueError, OSError) as error:
        raise _of_store(error, doing, name, is_write) from (None if is_signed(error) else error)


def _of_store(error: Exception, doing: str, name: str, is_write: bool) -> Exception:
    known = refusal(error, doing, name, is_write) or no_answer(error, doing, name)
    if known is not None:
        return known
    if isinstance(error, FileNotFoundError):
        return store.ObjectMissing(name)
    if isinstance(error, _refusals()):
        kind = NotWrittenError if is_write else StorageError
        return kind(f"{doing} {name} was refused: {first_line(error)}")
    return StorageError(f"{doing} {name} failed: {first_line(error)}")


def _is_known_refusal(error: Exception) -> bool:
    return refusal(error, "", "", is_write=False) is not None


def _refusals() -> tuple[type[Exception], ...]:
    return (
        exceptions.PermissionDeniedError,
        exceptions.UnauthenticatedError,
        exceptions.NotSupportedError,
        exceptions.InvalidPathError,
        exceptions.UnknownConfigurationKeyError,
        ValueError,
    )


def _status(path: str, found: Mapping[str, Any]) -> store.FileStatus:
    """Returns the file with its time in whole seconds: a status has no finer time, and must agree with a listing."""
    modified: datetime.datetime = found["last_modified"]
    etag: str | None = found["e_tag"]
    tag = None if etag is None else etag.removeprefix("W/").strip('"')
    return store.FileStatus(path, found["size"], int(modified.timestamp()) * 1000, tag)
