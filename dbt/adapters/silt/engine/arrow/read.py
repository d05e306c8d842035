"""Reads a table as Arrow, without Spark: several files at the same time, in their order."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final, TypeAlias, TypedDict

import pyarrow as pa

from dbt.adapters.silt.engine.arrow.tables import TableSource, path_in, snapshot_of
from dbt.adapters.silt.engine.kernel import near_names
from dbt.adapters.silt.engine.kernel.errors import DataFileChangedError, DataFileMissingError, TableDamagedError
from dbt.adapters.silt.engine.kernel.files.file_guard import Content
from dbt.adapters.silt.engine.kernel.files.page_bounds import MOST_KEPT, DecodedTexts
from dbt.adapters.silt.engine.kernel.log import commit_search
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.rows.file_read import read_file
from dbt.adapters.silt.engine.kernel.rows.scan import ArrowScan
from dbt.adapters.silt.engine.kernel.storage.settings import StorageSettings
from dbt.adapters.silt.engine.kernel.table.actions import AddFile
from dbt.adapters.silt.engine.kernel.table.expressions import TRUE, Expression
from dbt.adapters.silt.engine.sql.conditions.exact import exact_predicate
from dbt.adapters.silt.engine.sql.conditions.literals import default_string

if TYPE_CHECKING:
    from typing import Unpack

Read: TypeAlias = Callable[[AddFile], Iterator[pa.RecordBatch]]

_AHEAD: Final = 4
"""The number of batches that are read ahead from each file, unless they are large."""
_LARGE: Final = 16 << 20
"""While a batch of at least this many bytes is used, no other batch is read ahead."""

_LOOK_SECONDS: Final = 0.1


class _Ended(Exception):
    """The caller has stopped reading batches."""


class _Reader:
    """Reads a file on its own thread."""

    def __init__(self, read: Read, file: AddFile, ended: threading.Event) -> None:
        self._found: queue.Queue[pa.RecordBatch | BaseException | None] = queue.Queue(_AHEAD)
        self._ended = ended
        self._thread = threading.Thread(target=self._run, args=(read, file), name="silt-arrow", daemon=True)
        self._thread.start()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yields the batches of the file; re-raises an exception of the reader's thread."""
        while (found := self._found.get()) is not None:
            if isinstance(found, BaseException):
                raise found
            yield found

    def join(self) -> None:
        self._thread.join()

    def _run(self, read: Read, file: AddFile) -> None:
        try:
            for batch in read(file):
                self._put(batch)
            self._put(None)
        except _Ended:
            return
        except BaseException as error:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        try:
            self._put(error)
        except _Ended:
            return

    def _put(self, found: pa.RecordBatch | BaseException | None) -> None:
        is_large = isinstance(found, pa.RecordBatch) and found.nbytes > _LARGE
        while not self._ended.is_set():
            if is_large and not self._found.empty():
                self._ended.wait(_LOOK_SECONDS / 100)
                continue
            try:
                self._found.put(found, timeout=_LOOK_SECONDS)
            except queue.Full:
                continue
            return
        raise _Ended


def in_order(read: Read, files: Iterable[AddFile], at_once: int) -> Iterator[pa.RecordBatch]:
    """Yields the batches of the files, file by file.

    Args:
        read: returns the batches of a file; called in threads.
        at_once: number of files read at the same time.
    """
    if at_once <= 1:
        for file in files:
            yield from read(file)
        return
    ended = threading.Event()
    readers: deque[_Reader] = deque()
    waiting = iter(files)
    try:
        readers.extend(_Reader(read, file, ended) for _, file in zip(range(at_once), waiting, strict=False))
        while readers:
            yield from readers[0].batches()
            readers.popleft()
            readers.extend(_Reader(read, file, ended) for _, file in zip(range(1), waiting, strict=False))
    finally:
        ended.set()
        for reader in readers:
            reader.join()


_FOLDER_FILES: Final = 4
_OBJECT_FILES: Final = 16
_CHECKED_AT_ONCE: Final = 16
"""Number of files that are compared with the log together, so that their folder is opened once."""


class ReadOptions(TypedDict, total=False):
    """Further arguments of `read` and `read_batches`.

    Attributes:
        version: version of the table; the newest by default.
        timestamp: time whose state of the table is read; without a zone it is in UTC.
        storage: settings of the object store.
        external_paths: whether the table may name files that are neither in its folder nor in the warehouse.
        time_zone: zone for times in the condition that have no zone; UTC by default.
        branch: the id of a run that is not published; the table is read as the run sees it.
    """

    version: int | None
    timestamp: str | datetime | None
    storage: StorageSettings | None
    external_paths: bool
    time_zone: str
    branch: str | None


def read(
    name: str,
    warehouse: str | None = None,
    *,
    columns: Sequence[str] | None = None,
    where: str | None = None,
    **options: Unpack[ReadOptions],
) -> pa.Table:
    """Returns the rows of a table.

    Args:
        name: `table`, `schema.table` or `database.schema.table` of the warehouse; or the path or URL of a table.
        warehouse: folder or URL of the warehouse.
        columns: columns to read, in this order; all columns by default.
        where: condition in SQL; only rows for which it is true are read.
        options: see ReadOptions.

    Raises:
        InvalidArgumentError: if an option does not exist.
        UnsupportedStatementError: if only Spark can evaluate a part of the condition.
        ColumnNotFoundError: if a column does not exist.
        UnsupportedFeatureError: if the table, or a column, needs a feature that this reader lacks.
        DataFileMissingError: if a file is missing, as after a VACUUM.
        TableDamagedError: if the rows are long texts that would take far more memory than the files.
        SiltError: see `kernel.errors`.
    """
    return _opened(name, warehouse, columns, where, options).whole()


def read_batches(
    name: str,
    warehouse: str | None = None,
    *,
    columns: Sequence[str] | None = None,
    where: str | None = None,
    **options: Unpack[ReadOptions],
) -> pa.RecordBatchReader:
    """Returns the rows of `read` as a stream, which reads a few files at a time, only slightly ahead of the caller.

    Errors of files are raised when the caller reads their rows.
    """
    found = _opened(name, warehouse, columns, where, options)
    return pa.RecordBatchReader.from_batches(found.scan.schema, found.batches())


def _opened(
    name: str, warehouse: str | None, columns: Sequence[str] | None, where: str | None, options: ReadOptions
) -> TableRead:
    near_names.check(options, ("columns", "where", *ReadOptions.__annotations__), "a read of rows")
    external_paths, branch = options.get("external_paths", False), options.get("branch")
    log = TableSource(name, warehouse, options.get("storage"), external_paths, branch).log()
    snapshot = snapshot_of(log, options.get("version"), options.get("timestamp"))
    predicate = condition(where, snapshot, log.name, options.get("time_zone", "UTC"))
    return TableRead(log, snapshot, ArrowScan.of(snapshot, columns, predicate))


def condition(where: str | None, snapshot: Snapshot, name: str, time_zone: str = "UTC") -> Expression:
    """Translates a SQL condition on a table to a predicate.

    Args:
        name: name of the table, whose parts may qualify columns.

    Raises:
        UnsupportedStatementError: if only Spark can evaluate a part of it.
        ColumnNotFoundError: if it names a column that does not exist.
    """
    if where is None:
        return TRUE
    qualifier = () if path_in(name) is not None else tuple(name.split("."))
    return exact_predicate(where, snapshot.schema, [qualifier], time_zone, default_string)


def _first(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    while rows > 0 and (batch := next(batches, None)) is not None:
        yield batch.slice(0, rows)
        rows -= batch.num_rows


@dataclass(frozen=True)
class TableRead:
    """A scan of a table that this process has opened."""

    log: DeltaLog
    snapshot: Snapshot
    scan: ArrowScan

    def batches(self, at_once: int | None = None) -> Generator[pa.RecordBatch, None, None]:
        """Yields the rows, file by file.

        Args:
            at_once: number of files read at the same time; None for a number that suits the storage.

        Raises:
            SiltError: as in `read`.
        """
        usual = _FOLDER_FILES if self.log.store.has_folders else _OBJECT_FILES
        try:
            yield from in_order(self._of_file, self._checked(), min(len(self.scan.files), at_once or usual))
        except (DataFileMissingError, DataFileChangedError) as error:
            raise commit_search.with_origin(self.log, self.snapshot, error) from error

    def whole(self) -> pa.Table:
        """Returns all rows.

        Raises:
            TableDamagedError: if they are long texts that would take far more memory than the files.
            SiltError: as in `batches`.
        """
        return self._kept(self.batches())

    def head(self, limit: int) -> pa.Table:
        """Returns the first `limit` rows without opening later files; raises as `whole`."""
        with contextlib.closing(self.batches(at_once=1)) as batches:
            return self._kept(_first(batches, limit))

    def _kept(self, batches: Iterable[pa.RecordBatch]) -> pa.Table:
        found: list[pa.RecordBatch] = []
        texts = DecodedTexts(sum(file.size for file in self.scan.files), MOST_KEPT)
        try:
            for batch in batches:
                texts.add(batch)
                found.append(batch)
        except pa.ArrowInvalid as error:
            raise TableDamagedError(
                f"the rows do not fit in memory ({error})",
                remedy="Read them in batches with `silt.read_batches`, or restore the table to an earlier version",
                table=self.log.name,
                version=self.snapshot.version,
            ) from error
        return pa.Table.from_batches(found, self.scan.schema)

    def _checked(self) -> Iterator[AddFile]:
        """Yields the files, each shortly after it was compared with the log, as before each read by Spark."""
        log, snapshot, files = self.log, self.snapshot, self.scan.files
        content = Content(snapshot.metadata)
        for first in range(0, len(files), _CHECKED_AT_ONCE):
            group = files[first : first + _CHECKED_AT_ONCE]
            log.guard.check_files(log.store, group, content, log.name, snapshot.version)
            yield from group

    def _of_file(self, file: AddFile) -> Iterator[pa.RecordBatch]:
        return read_file(self.scan, file, self.log.store)
