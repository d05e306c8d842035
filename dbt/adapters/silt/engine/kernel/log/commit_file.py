"""Reads commit files of the log: their actions, the commits after a version, and `commitInfo` alone with row counts.

Source of the counts: the names of delta-spark's `operationMetrics`, which this engine uses too. A commit of an
operation that changes no rows (a change of properties, a clone, OPTIMIZE) has no such counts.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from dbt.adapters.silt.engine.kernel.errors import CorruptLogError
from dbt.adapters.silt.engine.kernel.log.log_segment import list_log, missing_version
from dbt.adapters.silt.engine.kernel.storage.store import FileStatus, ObjectMissing, Store, read_whole
from dbt.adapters.silt.engine.kernel.table.actions import (
    Action,
    AddFile,
    CommitInfo,
    Metadata,
    Protocol,
    RemoveFile,
    parse,
)
from dbt.adapters.silt.engine.kernel.table.active_files import KEY_SEPARATOR, file_key
from dbt.adapters.silt.engine.kernel.table.paths import commit_name, commit_path
from dbt.adapters.silt.engine.kernel.write_counts import WriteCounts

_FEW: Final = 3
_READERS: Final = 16

# After this many commits there may be many more: a single listing finds them, and they are read in parallel.
_ONE_BY_ONE: Final = 4
_PIECE: Final = 64 << 10
_DOUBLED: Final = 6
"""The maximum number of times that the size of a piece is doubled."""

LONGEST: Final = 16 << 20
"""The maximum length of a line with a `commitInfo`, in bytes; it may contain a long condition and many names."""

MOST_OF_A_COMMIT: Final = 1 << 30
"""The maximum size of a commit, in bytes."""
_TOGETHER: Final = 64 << 20
"""The maximum size of the commits of a table that are read at the same time, in bytes, if they are several."""

# The output rows of these operations are not new rows, or have further metrics.
_REWRITING: Final = frozenset(("MERGE", "UPDATE", "DELETE", "OPTIMIZE"))
_MOST_DIGITS: Final = 19


@dataclass(frozen=True)
class CommitFile:
    """The bytes of a commit file."""

    version: int
    data: bytes

    def actions(self, table: str, with_info: bool = True) -> tuple[Action, ...]:
        """Parses the commit's actions, with or without its `commitInfo`.

        Raises:
            CorruptLogError: if a line cannot be read; the message names the file and the line.
        """
        if not self.data.strip():
            raise corrupt_commit(self.version, "it is empty", table)
        if len(self.data) > LONGEST and b"\0" in self.data:  # a hole in a sparse file
            raise corrupt_commit(self.version, "it contains zero bytes", table)
        try:
            actions = tuple(parse(self.data, with_info))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise self._corrupt(table, error) from error
        if problem := _contradiction(actions):
            raise corrupt_commit(self.version, problem, table)
        return actions

    def _corrupt(self, table: str, error: Exception) -> CorruptLogError:
        for number, line in enumerate(self.data.split(b"\n"), start=1):
            try:
                parse(line)
            except (ValueError, KeyError, TypeError, AttributeError) as cause:
                return corrupt_commit(self.version, f"line {number} cannot be read ({cause!r})", table)
        return corrupt_commit(self.version, f"it cannot be read ({error!r})", table)


def _contradiction(actions: Sequence[Action]) -> str | None:
    """Describes a contradiction between the actions, if any (specification: "Action Reconciliation").

    Removing a file with its old deletion vector and adding it with a new vector is not a contradiction.
    """
    kinds = [type(action) for action in actions]
    for kind in (Metadata, Protocol):
        if kinds.count(kind) > 1:
            return f"it has more than one `{kind.key}`"
    if AddFile not in kinds or kinds.count(AddFile) + kinds.count(RemoveFile) == 1:
        return None
    adds = [action for action in actions if isinstance(action, AddFile)]
    added = {file_key(add.path, add.deletion_vector) for add in adds}
    paths = Counter(key.partition(KEY_SEPARATOR)[0] for key in added)
    twice = next((path for path, times in paths.items() if times > 1), None)
    if twice is not None:
        return f"it adds {twice} with more than one deletion vector"
    removes = [action for action in actions if isinstance(action, RemoveFile)] if adds else []
    both = next((each.path for each in removes if file_key(each.path, each.deletion_vector) in added), None)
    return None if both is None else f"it both adds and removes {both}"


def corrupt_commit(version: int, what: str, table: str) -> CorruptLogError:
    return CorruptLogError(f"{commit_name(version)}: {what}", table=table, version=version)


def read_commits(store: Store, first: int, statuses: Sequence[FileStatus], table: str) -> Iterator[CommitFile]:
    """Reads consecutive commits; from an object store, many at a time.

    Args:
        first: the version of the first commit.
        statuses: the statuses of the commits' files in a listing.

    Raises:
        As `read_commit`.
    """
    versions = range(first, first + len(statuses))
    readers = min(_READERS, store.files_at_once, len(statuses))
    if len(statuses) < _FEW or store.has_folders or readers == 1:
        yield from _in_turn(store, list(zip(versions, statuses, strict=True)), table)
        return
    with ThreadPoolExecutor(readers) as pool:
        for group in _of_limited_size(zip(versions, statuses, strict=True)):
            yield from pool.map(lambda each: read_commit(store, each[0], table, each[1]), group)


def _in_turn(store: Store, files: Sequence[tuple[int, FileStatus]], table: str) -> Iterator[CommitFile]:
    contents = store.read_all(_checked(store, files, table))
    for version, file in files:
        try:
            data = next(contents)
        except ObjectMissing as error:
            raise missing_version(version, table) from error
        yield CommitFile(version, data) if len(data) == file.size else read_commit(store, version, table, file)


def _checked(store: Store, files: Iterable[tuple[int, FileStatus]], table: str) -> Iterator[str]:
    for version, file in files:
        check_commit(store, version, table, file)
        yield commit_path(version)


def _of_limited_size(files: Iterable[tuple[int, FileStatus]]) -> Iterator[list[tuple[int, FileStatus]]]:
    """Yields the files in groups that are read together; a large file is a group of its own."""
    group: list[tuple[int, FileStatus]] = []
    size = 0
    for version, file in files:
        if group and size + file.size > _TOGETHER:
            yield group
            group, size = [], 0
        group.append((version, file))
        size += file.size
    if group:
        yield group


def check_commit(store: Store, version: int, table: str, file: FileStatus) -> None:
    """Checks, before a large commit is read, that it has a possible size and begins as a commit: it may be sparse.

    Raises:
        CorruptLogError: if it is not a commit.
        MissingLogVersionError: if the file is missing.
        StorageError: if the file cannot be read.
    """
    if file.size > MOST_OF_A_COMMIT:
        raise corrupt_commit(version, f"it has {file.size} bytes, but a commit has at most {MOST_OF_A_COMMIT}", table)
    if file.size <= LONGEST:
        return
    try:
        start, end = store.read_ranges(file.path, [(0, _PIECE), (file.size - _PIECE, file.size)])
    except ObjectMissing as error:
        raise missing_version(version, table) from error
    if not (start.lstrip().startswith(b"{") and end.rstrip().endswith(b"}")):
        raise corrupt_commit(version, f"it has {file.size} bytes and does not begin and end with an action", table)


def read_commit(store: Store, version: int, table: str, status: FileStatus | None = None) -> CommitFile:
    """Reads a whole commit file.

    Args:
        status: the file's status in a listing, which saves a request for it.

    Raises:
        MissingLogVersionError: if the file is missing.
        CorruptLogError: if it has an impossible size.
        StorageError: if the file cannot be read, or only in part.
    """
    status = store.status(commit_path(version)) if status is None else status
    if status is not None:
        check_commit(store, version, table, status)
    try:
        return CommitFile(version, read_whole(store, commit_path(version), status))
    except ObjectMissing as error:
        raise missing_version(version, table) from error


Found = tuple[FileStatus, CommitFile]


def later_commits(store: Store, first: int, table: str, up_to: int | None = None) -> Iterator[Found]:
    """Yields the commits from a version on, with their files' statuses, until the next commit does not exist.

    Args:
        up_to: the last version to read; all by default.

    Raises:
        MissingLogVersionError: if a commit disappeared while it was read.
        StorageError: if a commit cannot be read.
    """
    version = first
    while True:
        for _ in range(_ONE_BY_ONE):
            found = None if up_to is not None and version > up_to else fetched(store, version, table)
            if found is None:
                return
            yield found
            version += 1
        if not store.has_folders:
            for found in _listed(store, version, table, up_to):
                yield found
                version += 1


def fetched(store: Store, version: int, table: str) -> Found | None:
    """Reads a commit and its file's status, if the commit exists. Raises as `later_commits`."""
    if store.is_local:
        status = store.status(commit_path(version))
        return None if status is None else (status, read_commit(store, version, table, status))
    try:
        found = store.fetch(commit_path(version))
    except ObjectMissing as error:
        raise missing_version(version, table) from error
    return None if found is None else (found[0], CommitFile(version, found[1]))


def _listed(store: Store, first: int, table: str, up_to: int | None) -> Iterator[Found]:
    """Yields the commits from a version on that a listing shows without a gap."""
    shown = list_log(store, table, first).commits
    versions = itertools.count(first) if up_to is None else range(first, up_to + 1)
    files = [shown[version] for version in itertools.takewhile(shown.__contains__, versions)]
    yield from zip(files, read_commits(store, first, files, table), strict=True)


def read_info(store: Store, version: int, file: FileStatus, table: str) -> CommitInfo:
    """Reads the `commitInfo` of a commit, or returns an empty `CommitInfo` if the commit lacks it.

    Raises:
        MissingLogVersionError: if the commit disappeared after the listing.
        CorruptLogError: if the `commitInfo` cannot be read or its line is longer than `LONGEST`.
        StorageError: if the storage failed.
    """
    check_commit(store, version, table, file)
    try:
        infos = _infos(itertools.islice(_lines(store, file), 1))
        if not infos:
            infos = _infos(line for line in _lines(store, file) if b'"commitInfo"' in line)
    except ObjectMissing as error:
        raise missing_version(version, table) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise corrupt_commit(version, f"it cannot be read ({error})", table) from error
    return infos[0] if infos else CommitInfo()


def _infos(lines: Iterable[bytes]) -> list[CommitInfo]:
    found = []
    for line in lines:
        if b'"commitInfo"' in line[:_PIECE] and len(line) > LONGEST:
            raise ValueError(f"its commitInfo has more than {LONGEST} bytes")
        found += [action for action in parse(line) if isinstance(action, CommitInfo)]
    return found


def _lines(store: Store, file: FileStatus) -> Iterator[bytes]:
    """Yields the lines of a file without those over `LONGEST`; ends with the start of such a `commitInfo`."""
    if file.size <= _PIECE:
        yield from store.read(file.path).split(b"\n")
        return
    with store.open_input(file.path) as source:
        line, doubled = bytearray(), 0
        while piece := source.read(_PIECE << doubled):
            doubled = min(doubled + 1, _DOUBLED)
            if b"\0" in piece:
                raise ValueError("it contains zero bytes")
            for number, part in enumerate(piece.split(b"\n")):
                if number:
                    yield from _kept(line)
                    line = bytearray()
                if len(line) <= LONGEST:
                    line += part
            if len(line) > LONGEST and b'"commitInfo"' in line[:_PIECE]:
                break
        yield from _kept(line)


def _kept(line: bytearray) -> Iterator[bytes]:
    if len(line) <= LONGEST or b'"commitInfo"' in line[:_PIECE]:
        yield bytes(line)


def counts_of(info: CommitInfo) -> WriteCounts:
    """Returns the rows and attempts of a commit, as far as it records them."""
    metrics: Mapping[str, object] = info.operation_metrics or {}
    return WriteCounts(
        rows_inserted=_first(metrics, "numTargetRowsInserted") if info.operation in _REWRITING else _new(metrics),
        rows_updated=_first(metrics, "numTargetRowsUpdated", "numUpdatedRows"),
        rows_deleted=_first(metrics, "numTargetRowsDeleted", "numDeletedRows"),
        attempts=info.commit_attempts,
        statement_attempts=info.statement_attempts,
    )


def _new(metrics: Mapping[str, object]) -> int | None:
    """Returns the number of rows of a write, without the rows that it only copied."""
    written = _first(metrics, "numOutputRows")
    return None if written is None else written - (_first(metrics, "numCopiedRows") or 0)


def _first(metrics: Mapping[str, object], *names: str) -> int | None:
    """Returns the first of the metrics that is present as a number of at most 19 digits."""
    for name in names:
        text = str(metrics.get(name, ""))
        if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS:
            return int(text)
    return None
