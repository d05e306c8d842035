"""Refuses data files that differ from the files in the log, before any of their rows is used.

Spark skips an empty file, and returns nulls for columns that a file lacks: rows and values would be lost without an
error. On a local file system, which needs no requests, the size of each file is compared with the log before each read.
If a file's modification time differs from the log, its footer is compared once as well: it may be another file of that
size, or a copy, as after `cp -r`.
Source: the Delta specification, sections "Add File and Remove File" and "Per-file Statistics".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import starmap
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dbt.adapters.silt.engine.kernel import foreign_json
from dbt.adapters.silt.engine.kernel.errors import DataFileChangedError
from dbt.adapters.silt.engine.kernel.files import deletion_vectors
from dbt.adapters.silt.engine.kernel.files.data_files import Reach, check_reach, located
from dbt.adapters.silt.engine.kernel.files.footer_check import field_id, read_footer
from dbt.adapters.silt.engine.kernel.storage.store import FileStatus, ObjectMissing, Store
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, Metadata
from dbt.adapters.silt.engine.kernel.table.active_files import files_table
from dbt.adapters.silt.engine.kernel.table.column_mapping import PARQUET_FIELD_ID, is_mapped, stored_schema
from dbt.adapters.silt.engine.kernel.table.paths import absolute_name, decode_path

_MOST_KNOWN: Final = 100_000
MISSING_COLUMN_CHECK: Final = "silt.missingColumnCheck.enabled"
"""The session's setting; `false` lets queries read nulls for columns that a data file lacks."""
_OR_FILL: Final = (
    "Restore the file from a copy, or the table to a version without it; after "
    f"`set {MISSING_COLUMN_CHECK} = false`, queries of the session read nulls; `silt check` finds other damage"
)
_MAY_LEAVE: Final = r"(?i)^/|^%2f|:|%3a|\.\.|%2e"
"""Matches encoded paths in a log that may be absolute or have `..`; other paths are below the table's folder."""


@dataclass(frozen=True)
class Expected:
    """The description of a file in the log.

    Args:
        name: the plain name, relative to the table's folder or absolute.
        size: the size in bytes; 0 if unknown.
        modified_ms: the modification time, milliseconds since 1970-01-01 UTC.
        stats: the statistics as a JSON string, if any.
        has_vector: whether a deletion vector deletes rows of the file.
    """

    name: str
    size: int
    modified_ms: int
    stats: str | None
    has_vector: bool = False

    @classmethod
    def of(cls, path: str, size: int | None, modified_ms: int | None, stats: str | None, has_vector: bool) -> Expected:
        """Describes a file by the fields of its action; `path` is encoded as in the log."""
        return cls(decode_path(path), size or 0, modified_ms or 0, stats, has_vector)

    @classmethod
    def of_file(cls, file: AddFile) -> Expected:
        """Describes the file of an action."""
        return cls.of(file.path, file.size, file.modification_time, file.stats, file.deletion_vector is not None)


@dataclass(frozen=True)
class Content:
    """The columns that data files should have.

    Args:
        metadata: the table's metadata.
        fills_missing: whether a file may lack columns that the log states values for.
    """

    metadata: Metadata
    fills_missing: bool = False


class Contradiction(NamedTuple):
    """The contradiction between a data file and the log, and the remedy, if it is not the remedy of all such errors."""

    problem: str
    remedy: str | None = None


class FileGuard:
    """Compares the files of a table with its log, and remembers files with correct footers. Thread-safe."""

    def __init__(self) -> None:
        self._known: set[tuple[str, int, int]] = set()

    def check(self, store: Store, files: pa.Table, content: Content, table: str, version: int) -> None:
        """Checks by sizes and footers that each file is the file in the log.

        A deletion vector does not contain the number of rows of its file, so the footer of such a file is always
        compared. Missing files, and files that cannot be opened, pass: reading them raises an error.

        Args:
            store: the table's folder; if it is not on the local file system, only the files' paths are checked.
            files: rows of `Snapshot.files`.
            content: the columns that the files should have at that version.

        Raises:
            DataFileChangedError: if a file has another size or number of rows, or lacks columns that the log states
                values for.
            ExternalPathError: if the table's log may not name files at a file's location.
            StorageError: if the storage failed.
        """
        if store.is_local:
            self._compare(store, _expected(files), content, table, version)
        else:
            check_places(store, files)

    def check_files(self, store: Store, files: Sequence[AddFile], content: Content, table: str, version: int) -> None:
        """Checks a few files as `check` does, without a table of them, which would take longer than the check."""
        if store.is_local:
            self._compare(store, map(Expected.of_file, files), content, table, version)
        else:
            check_places(store, files_table(files))

    def _compare(self, store: Store, files: Iterable[Expected], content: Content, table: str, version: int) -> None:
        doubtful = []
        for expected, status in _statuses(store, files):
            if status is None:
                continue
            if problem := size_problem(expected, status.size):
                raise changed(Contradiction(problem), absolute_name(store.root, expected.name), table, version)
            key = (expected.name, status.size, status.modified_ms)
            is_doubtful = status.modified_ms != expected.modified_ms or expected.has_vector
            if is_doubtful and key not in self._known:
                doubtful.append((expected, key))
        if doubtful:
            for expected, found in _contradictions(store, [each for each, _ in doubtful], content):
                raise changed(found, absolute_name(store.root, expected.name), table, version)
            if content.fills_missing:
                return  # other reads of these files may not fill columns
            if len(self._known) + len(doubtful) > _MOST_KNOWN:
                self._known.clear()
            self._known.update(key for _, key in doubtful)


def check_places(store: Store, files: pa.Table) -> None:
    """Checks, without requests to the storage, that the log may name each file and its deletion vector.

    Args:
        store: the table's folder.
        files: rows of `Snapshot.files`.

    Raises:
        ExternalPathError: if the log names a file at a location that is not allowed.
        CorruptDeletionVectorError: if the descriptor of a deletion vector does not name a file.
    """
    may_leave = pc.match_substring_regex(files["path"], _MAY_LEAVE)
    for path in files["path"].filter(may_leave).to_pylist():
        check_reach(store, decode_path(path))
    for name in deletion_vectors.distant_files(files):
        check_reach(store, name)


def first_changed(
    store: Store, files: pa.Table, metadata: Metadata, table: str, version: int
) -> DataFileChangedError | None:
    """Returns the error for the first file whose footer contradicts the log; reads the footers in any storage."""
    for expected, found in _contradictions(store, list(_expected(files)), Content(metadata)):
        return changed(found, absolute_name(store.root, expected.name), table, version)
    return None


def changed(found: Contradiction, path: str, table: str, version: int | None) -> DataFileChangedError:
    """Creates the error for a file that differs from the file in the log."""
    details = {"path": path}
    return DataFileChangedError(found.problem, remedy=found.remedy, table=table, version=version, details=details)


def size_problem(expected: Expected, size: int) -> str | None:
    """Describes the contradiction between a file's size and the log, if any. A data file is never empty."""
    if size == expected.size or (expected.size == 0 and size > 0):
        return None
    return f"the data file {expected.name} has {size} bytes, but the log says {expected.size}"


def contradiction(footer: pq.FileMetaData, expected: Expected, content: Content) -> Contradiction | None:
    """Returns the contradiction between a file's footer and the log, if any: another number of rows, or columns
    missing from the file.
    """
    columns = stored_schema(content.metadata)
    stats = _parsed(expected.stats)
    rows = stats.get("numRecords")
    if isinstance(rows, int) and rows != footer.num_rows:
        return Contradiction(f"the data file {expected.name} has {footer.num_rows} rows, but the log says {rows}")
    names, ids = _held(footer)
    absent = {c.name for c in columns if c.name.lower() not in names and c.metadata.get(PARQUET_FIELD_ID) not in ids}
    lacking = sorted(absent.intersection(_with_values(stats, footer.num_rows)))
    if lacking and not content.fills_missing:
        shown = ", ".join(f"`{name}`" for name in lacking)
        problem = f"the data file {expected.name} lacks {shown}, for which the log states values"
        return Contradiction(problem, _OR_FILL)
    # In a table with column mapping, all columns of a file may have been dropped since.
    if absent and len(absent) == len(columns) and not is_mapped(content.metadata.configuration):
        return Contradiction(f"the data file {expected.name} has none of the table's columns")
    return None


def _expected(files: pa.Table) -> Iterator[Expected]:
    columns = [files[name].to_pylist() for name in ("path", "size", "modification_time", "stats")]
    columns.append(pc.is_valid(files["deletion_vector"]).to_pylist())
    yield from starmap(Expected.of, zip(*columns, strict=True))


def _statuses(store: Store, files: Iterable[Expected]) -> Iterator[tuple[Expected, FileStatus | None]]:
    """Yields the status of each local file, grouped by folder; files in another storage are omitted."""
    reach = Reach(store)
    groups: dict[Store, list[tuple[str, Expected]]] = defaultdict(list)
    for expected in files:
        if "://" in expected.name:
            check_reach(store, expected.name)
            continue
        where, own = reach.located(expected.name)
        groups[where].append((own, expected))
    for where, group in groups.items():
        found = where.statuses(own for own, _ in group)
        yield from zip((expected for _, expected in group), found, strict=True)


def _contradictions(
    store: Store, doubtful: Sequence[Expected], content: Content
) -> Iterator[tuple[Expected, Contradiction]]:
    def of_file(expected: Expected) -> Contradiction | None:
        where, own = located(store, expected.name)
        try:
            status = where.status(own)
            if status is None:
                return None
            if problem := size_problem(expected, status.size):
                return Contradiction(problem)
            with where.open_input(own) as source:
                return contradiction(read_footer(source), expected, content)
        except (ObjectMissing, pa.ArrowException, OSError):
            return None  # reading the file raises an error that describes the problem

    with ThreadPoolExecutor(store.files_at_once) as pool:
        for expected, found in zip(doubtful, pool.map(of_file, doubtful), strict=True):
            if found is not None:
                yield expected, found


def _held(footer: pq.FileMetaData) -> tuple[Collection[str], Collection[int]]:
    """Returns the names, in lower case, and the ids of the file's columns."""
    fields = list(footer.schema.to_arrow_schema())
    ids = {found for field in fields if (found := field_id(field)) is not None}
    return {field.name.lower() for field in fields}, ids


def _with_values(stats: dict[str, Any], rows: int) -> Iterator[str]:
    """Yields the columns that have values according to the statistics."""
    yield from (name for name, value in _members(stats.get("minValues")) if value is not None)
    yield from (name for name, nulls in _members(stats.get("nullCount")) if _is_below(nulls, rows))


def _is_below(nulls: Any, rows: int) -> bool:
    if isinstance(nulls, dict):
        return any(_is_below(each, rows) for each in nulls.values())
    return isinstance(nulls, int) and nulls < rows


def _members(values: Any) -> Collection[tuple[str, Any]]:
    return values.items() if isinstance(values, dict) else ()


def _parsed(stats: str | None) -> dict[str, Any]:
    try:
        found = foreign_json.loads(stats or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
