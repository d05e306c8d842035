"""Reads a version of a table, or the changes of a range of versions, in Spark's tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from dbt.adapters.silt.engine.arrow.file_read import read_file
from dbt.adapters.silt.engine.arrow.scan import ArrowScan
from dbt.adapters.silt.engine.datasource.reading import file_parts
from dbt.adapters.silt.engine.datasource.reading.feed_rows import FeedScan
from dbt.adapters.silt.engine.datasource.reading.file_parts import FeedPart, FilePart
from dbt.adapters.silt.engine.datasource.reading.pushed_filters import predicate
from dbt.adapters.silt.engine.datasource.table_location import TableLocation
from dbt.adapters.silt.engine.kernel.files.file_guard import Content, FileGuard
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.scan.changed_files import ChangedFile
from dbt.adapters.silt.engine.kernel.table.expressions import TRUE, And, Expression


@lru_cache(maxsize=64)
def _guard(_root: str) -> FileGuard:
    """Returns the guard of a table's folder: a worker may read several tables whose files have the same names."""
    return FileGuard()


class TableReader(DataSourceReader):
    """Reads the files of a snapshot. The reader is pickled without the list of files: each task has its own files.

    Args:
        names: names of the columns.
        condition: condition of the rows to read.
    """

    def __init__(
        self, snapshot: Snapshot, location: TableLocation, names: Sequence[str], condition: Expression = TRUE
    ) -> None:
        self._snapshot = snapshot
        self._location = location
        self._names = tuple(names)
        self._plan(condition)

    def _plan(self, condition: Expression) -> None:
        scan = ArrowScan.of(self._snapshot, self._names, condition)
        self._files, self._scan = scan.files, replace(scan, files=())

    def partitions(self) -> Sequence[InputPartition]:
        return file_parts.of_files(self._files)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return file_rows(self._scan, self._location, partition)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_snapshot", "_files")}


class FilteringReader(TableReader):
    """A reader for sessions that push filters down, which rule out files, row groups and rows.

    It returns all filters to Spark, which filters the remaining rows again.
    """

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:
        pushed = predicate(filters, self._snapshot.schema)
        self._plan(And((self._scan.predicate, pushed)) if pushed != TRUE else self._scan.predicate)
        return filters


class FeedReader(DataSourceReader):
    """Reads the rows that versions changed.

    Args:
        files: files with the changes.
    """

    def __init__(self, scan: FeedScan, location: TableLocation, files: Sequence[ChangedFile]) -> None:
        self._scan, self._location, self._files = scan, location, files

    def partitions(self) -> Sequence[InputPartition]:
        return file_parts.of_changes(self._files)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return changed_rows(self._scan, self._location, partition)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_files"}


def file_rows(scan: ArrowScan, location: TableLocation, part: InputPartition) -> Iterator[pa.RecordBatch]:
    """Yields the rows of a task's files; Spark may also create a task without files.

    Raises:
        As in `file_read.read_file`.
    """
    store = location.open()
    for file in part.files if isinstance(part, FilePart) else ():
        _guard(store.root).check_file(store, file, Content(scan.metadata), scan.table, scan.version)
        yield from read_file(scan, file, store)


def changed_rows(scan: FeedScan, location: TableLocation, part: InputPartition) -> Iterator[pa.RecordBatch]:
    """Yields the changes in a task's files; raises the errors of `file_rows`."""
    store = location.open()
    for changed in part.files if isinstance(part, FeedPart) else ():
        yield from scan.batches(changed, store)
