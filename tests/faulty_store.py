"""FaultyStore: wraps another store and injects failures, delays and wrong answers; for tests and simulations."""

from __future__ import annotations

import copy
import enum
import fnmatch
import io
import random
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import IO, Any, TypeVar, cast

from dbt.adapters.silt.engine.kernel.clock import Clock
from dbt.adapters.silt.engine.kernel.errors import NoSpaceError, StorageError
from dbt.adapters.silt.engine.kernel.storage.prefix_folders import ListedTree, pinned
from dbt.adapters.silt.engine.kernel.storage.store import (
    MOST_BYTES,
    FileStatus,
    ObjectMissing,
    PinnedFolder,
    PrefixStore,
    PutResult,
    Store,
    Tag,
    TaggedObject,
    Tree,
)
from tests.fixed_clock import FixedClock

T = TypeVar("T")

_LISTINGS = ("list_from", "list_folders", "files_below")
_WRITES = ("put_if_absent", "put", "swap_if_unchanged")
_READS = ("read", "open_input")


class FaultKind(enum.Enum):
    """The kind of a fault."""

    FAIL_BEFORE = "fail before"
    """Raises StorageError without doing the operation."""
    FAIL_AFTER = "fail after"
    """Does the operation, then raises StorageError: a lost answer."""
    FULL = "full"
    """For an operation that needs space: raises NoSpaceError without doing the operation."""
    DELAY = "delay"
    """Does the operation after a wait."""
    LATE = "late"
    """For a listing, read or status: the answer does not include the last writes through this store."""
    TWICE = "twice"
    """For a write: does it twice, returns the second answer. For a listing: returns each entry twice, in any order."""
    TORN = "torn"
    """For a read: returns only the first part of the content."""
    WRONG = "wrong"
    """For a status: returns a wrong size and time."""


# The operations that a kind applies to; other kinds apply to all.
_OPERATIONS = {
    FaultKind.FULL: (*_WRITES, "make_folder"),
    FaultKind.LATE: ("list_from", "files_below", *_READS, "status", "fetch"),
    FaultKind.TWICE: (*_LISTINGS, *_WRITES),
    FaultKind.TORN: _READS,
    FaultKind.WRONG: ("status",),
}


@dataclass
class Fault:
    """A rule of a FaultyStore.

    Args:
        operation: the name of a method of Store, or a shell pattern of such names; a write to a pinned folder is
            `put_if_absent`. Operations that the kind does not apply to are not affected.
        kind: the kind of fault.
        path: a shell pattern of the affected paths; `*` also matches `/`.
        times: the maximum number of occurrences; by default unlimited.
        skip: the number of matching operations before the first occurrence.
        probability: the probability of each occurrence.
        seconds: the length of a delay.
        count: the number of last-written files that a late answer omits.
        share: the part of the content that a torn read returns, from 0 to 1; -1 for everything except the last line.
    """

    operation: str
    kind: FaultKind
    path: str = "*"
    times: int | None = None
    probability: float = 1.0
    seconds: float = 0.0
    count: int = 1
    share: float = 0.5
    skip: int = 0

    def holds(self, operation: str, path: str) -> bool:
        """Returns whether it applies to an operation on a path, ignoring probability and number of occurrences."""
        if self.times == 0 or operation not in _OPERATIONS.get(self.kind, (operation,)):
            return False
        return fnmatch.fnmatchcase(operation, self.operation) and fnmatch.fnmatchcase(path, self.path)


class _Written:
    """The paths written through a store and its children, in the order of the last write, with the earlier content."""

    def __init__(self) -> None:
        self._before: dict[str, bytes | None] = {}

    def note(self, path: str, before: bytes | None) -> None:
        """Records a write and the file's earlier content, if any."""
        self._before.pop(path, None)
        self._before[path] = before

    def forget(self, path: str) -> None:
        self._before.pop(path, None)

    def last(self, count: int) -> dict[str, bytes | None]:
        """Returns the paths written last."""
        return dict(list(self._before.items())[-count:]) if count else {}


class FaultyStore(PrefixStore):
    """Another store with injected faults, which affect each request: of a store with folders each single operation.

    Args:
        inner: the store that performs the operations.
        faults: the faults; the first fault that applies to an operation occurs.
        seed: the seed of the random numbers.
        clock: the clock that delays wait on.
    """

    def __init__(self, inner: Store, faults: Sequence[Fault] = (), seed: int = 0, clock: Clock | None = None) -> None:
        self.inner = inner
        self.faults = list(faults)
        self._random = random.Random(seed)
        self._clock: Clock = clock or FixedClock()
        self._lock = threading.Lock()
        self._written = _Written()

    @property
    def root(self) -> str:
        return self.inner.root

    def list_from(self, folder: str, start: str = "") -> list[FileStatus]:
        return self.around("list_from", folder, lambda: self.inner.list_from(folder, start))

    @property
    def is_local(self) -> bool:
        return self.inner.is_local

    @property
    def service(self) -> str | None:
        return self.inner.service

    @property
    def allowed(self) -> Sequence[str] | None:
        return self.inner.allowed

    @property
    def elsewhere(self) -> Callable[[str], Store] | None:
        return self.inner.elsewhere

    @property
    def files_at_once(self) -> int:
        return self.inner.files_at_once

    def files_in_order(self, folder: str) -> Iterator[FileStatus]:
        if self.has_folders:
            return super().files_in_order(folder)
        return iter(self.around("list_from", folder, lambda: list(self.inner.files_in_order(folder))))

    def files_below(self, folder: str) -> list[FileStatus]:
        if self.has_folders:
            return super().files_below(folder)
        return self.around("files_below", folder, lambda: self.inner.files_below(folder))

    def tree(self) -> Tree:
        return super().tree() if self.has_folders else ListedTree(self.files_below(""))

    def fetch(self, path: str) -> tuple[FileStatus, bytes] | None:
        if self.has_folders:
            return super().fetch(path)
        return self.around("fetch", path, lambda: self.inner.fetch(path))

    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        if self.has_folders:
            return super().read_ranges(path, ranges)
        return self.around("read_ranges", path, lambda: self.inner.read_ranges(path, ranges))

    def statuses(self, paths: Iterable[str]) -> Iterator[FileStatus | None]:
        return map(self.status, paths)

    def copy_in(self, path: str, data: IO[bytes]) -> None:
        self.around("put", path, lambda: self.inner.copy_in(path, data))

    def delete_all(self, paths: Sequence[str]) -> None:
        if self.has_folders:
            super().delete_all(paths)
            return
        self.around("delete_all", ",".join(paths), lambda: self.inner.delete_all(paths))
        for path in paths:
            self._written.forget(self._key(path))

    def list_folders(self, folder: str) -> list[str]:
        return self.around("list_folders", folder, lambda: self.inner.list_folders(folder))

    def list_links(self, folder: str) -> list[str]:
        return self.around("list_links", folder, lambda: self.inner.list_links(folder))

    def read(self, path: str, at_most: int = MOST_BYTES) -> bytes:
        return self.around("read", path, lambda: self.inner.read(path, at_most))

    def open_input(self, path: str) -> IO[bytes]:
        return self.around("open_input", path, lambda: self.inner.open_input(path))

    def status(self, path: str) -> FileStatus | None:
        return self.around("status", path, lambda: self.inner.status(path))

    def put_if_absent(self, path: str, data: bytes) -> PutResult:
        return self.around("put_if_absent", path, lambda: self.noted(path, self.inner.put_if_absent(path, data)))

    def put(self, path: str, data: bytes) -> None:
        def run() -> None:
            before = self._content(path)
            self.inner.put(path, data)
            self._written.note(self._key(path), before)

        self.around("put", path, run)

    @property
    def has_folders(self) -> bool:
        return self.inner.has_folders

    @property
    def is_never_reused(self) -> bool:
        return not self.has_folders and cast(PrefixStore, self.inner).is_never_reused

    def never_reused(self) -> FaultyStore:
        same = copy.copy(self)
        same.inner = cast(PrefixStore, self.inner).never_reused()
        return same

    def read_if_changed(self, path: str, known: Tag | None) -> TaggedObject | None:
        inner = cast(PrefixStore, self.inner)
        return self.around("read_if_changed", path, lambda: inner.read_if_changed(path, known))

    def swap_if_unchanged(self, path: str, data: bytes, tag: Tag) -> Tag | None:
        inner = cast(PrefixStore, self.inner)
        return self.around("swap_if_unchanged", path, lambda: inner.swap_if_unchanged(path, data, tag))

    def copy_file(self, source: str, target: str) -> None:
        inner = cast(PrefixStore, self.inner)
        self.around("copy_file", target, lambda: inner.copy_file(source, target))

    def delete(self, path: str) -> None:
        self.around("delete", path, lambda: self.inner.delete(path))
        self._written.forget(self._key(path))

    def make_folder(self, folder: str) -> None:
        self.around("make_folder", folder, lambda: self.inner.make_folder(folder))

    def rename_folder(self, source: str, target: str) -> None:
        self.around("rename_folder", source, lambda: self.inner.rename_folder(source, target))

    def delete_folder(self, folder: str) -> None:
        self.around("delete_folder", folder, lambda: self.inner.delete_folder(folder))

    def delete_empty_folder(self, folder: str) -> bool:
        return self.around("delete_empty_folder", folder, lambda: self.inner.delete_empty_folder(folder))

    def folder_modified_ms(self, folder: str) -> int | None:
        return self.around("folder_modified_ms", folder, lambda: self.inner.folder_modified_ms(folder))

    def make_durable(self, paths: Sequence[str]) -> None:
        self.around("make_durable", ",".join(paths), lambda: self.inner.make_durable(paths))

    def check_writable(self) -> None:
        self.around("check_writable", "", self.inner.check_writable)

    def pin(self, folder: str) -> PinnedFolder:
        """Pins a folder; a prefix is pinned in this store, so that faults affect each of its requests."""
        if not self.has_folders:
            return pinned(self, folder)
        inner = self.around("pin", folder, lambda: self.inner.pin(folder))
        return _FaultyFolder(inner, folder, self)

    def child(self, folder: str) -> FaultyStore:
        """Returns a child that shares the faults, the random numbers and the record of writes."""
        child = copy.copy(self)
        child.inner = self.inner.child(folder)
        return child

    def local_path(self, path: str) -> str | None:
        return self.inner.local_path(path)

    def around(self, operation: str, path: str, run: Callable[[], T]) -> T:
        """Runs the operation, with the fault that applies to it if any."""
        fault = self._strike(operation, path)
        if fault is None:
            return run()
        if fault.kind is FaultKind.DELAY:
            self._clock.sleep(fault.seconds)
        if fault.kind is FaultKind.FULL:
            raise NoSpaceError(f"{operation} {path} failed: No space left on device")
        if fault.kind is FaultKind.FAIL_BEFORE:
            raise StorageError(f"{operation} {path} failed before it was done")
        if fault.kind is FaultKind.TWICE and operation in _WRITES:
            run()
        result = run()
        if fault.kind is FaultKind.FAIL_AFTER:
            raise StorageError(f"{operation} {path} failed after it was done")
        altered: T = self._altered(fault, operation, path, result)
        return altered

    def noted(self, path: str, result: PutResult) -> PutResult:
        """Records a file that was created, for late answers."""
        if result is PutResult.CREATED:
            self._written.note(self._key(path), None)
        return result

    def _strike(self, operation: str, path: str) -> Fault | None:
        with self._lock:
            for fault in self.faults:
                if not fault.holds(operation, path):
                    continue
                if fault.skip > 0:
                    fault.skip -= 1
                elif self._random.random() < fault.probability:
                    fault.times = None if fault.times is None else fault.times - 1
                    return fault
        return None

    def _altered(self, fault: Fault, operation: str, path: str, result: Any) -> Any:
        """Returns the answer as changed by the fault."""
        match fault.kind:
            case FaultKind.LATE if operation in _LISTINGS:
                return self._late_listing(fault, result)
            case FaultKind.LATE:
                return self._late_answer(fault, operation, path, result)
            case FaultKind.TWICE if operation in _LISTINGS:
                return self._random.sample([*result, *result], 2 * len(result))
            case FaultKind.TORN:
                return _as(operation, _torn(_bytes(result), fault.share))
            case FaultKind.WRONG if result is not None:
                return replace(result, size=result.size + 1, modified_ms=result.modified_ms + 1)
        return result

    def _late_listing(self, fault: Fault, result: Sequence[FileStatus]) -> list[FileStatus]:
        unknown = {path for path, before in self._written.last(fault.count).items() if before is None}
        return [status for status in result if self._key(status.path) not in unknown]

    def _late_answer(self, fault: Fault, operation: str, path: str, result: Any) -> Any:
        last = self._written.last(fault.count)
        if self._key(path) not in last:
            return result
        before = last[self._key(path)]
        if operation == "fetch":
            return None if before is None else (replace(result[0], size=len(before)), before)
        if operation == "status":
            return None if before is None else replace(result, size=len(before))
        if before is None:
            raise ObjectMissing(path)
        return _as(operation, before)

    def _content(self, path: str) -> bytes | None:
        try:
            return self.inner.read(path)
        except ObjectMissing:
            return None

    def _key(self, path: str) -> str:
        """Returns the path in a form that differs from paths of other children."""
        return f"{self.inner.root}/{path}"


@dataclass(frozen=True)
class _FaultyFolder:
    inner: PinnedFolder
    folder: str
    store: FaultyStore

    def known_by(self, file: FileStatus) -> _FaultyFolder:
        inner = self.inner.known_by(file)
        return self if inner is self.inner else replace(self, inner=inner)

    def is_current(self) -> bool:
        return self.inner.is_current()

    def put_if_absent(self, name: str, data: bytes) -> PutResult:
        path = f"{self.folder}/{name}" if self.folder else name
        put = self.inner.put_if_absent
        return self.store.around("put_if_absent", path, lambda: self.store.noted(path, put(name, data)))


def _bytes(result: bytes | IO[bytes]) -> bytes:
    if isinstance(result, bytes):
        return result
    with result:
        return result.read()


def _torn(content: bytes, share: float) -> bytes:
    if share >= 0:
        return content[: int(len(content) * share)]
    return content[: content.rstrip(b"\n").rfind(b"\n") + 1]


def _as(operation: str, content: bytes) -> bytes | IO[bytes]:
    return io.BytesIO(content) if operation == "open_input" else content
