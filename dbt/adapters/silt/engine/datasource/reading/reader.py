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
from dbt.adapters.silt.engine.datasource.place import TablePlace
from dbt.adapters.silt.engine.datasource.reading import file_parts
from dbt.adapters.silt.engine.datasource.reading.feed_rows import FeedScan
from dbt.adapters.silt.engine.datasource.reading.file_parts import FeedPart, FilePart
from dbt.adapters.silt.engine.datasource.reading.pushed_filters import predicate
from dbt.adapters.silt.engine.kernel.files.file_guard import FileGuard
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.scan.changed_files import ChangedFile
from dbt.adapters.silt.engine.kernel.table.active_files import files_table
from dbt.adapters.silt.engine.kernel.table.expressions import TRUE, And, Expression


@lru_cache(maxsize=64)
def _guard(_root: str) -> FileGuard:
    """Of the table in that folder: a worker's process may read several tables whose files have the same names."""
    return FileGuard()


class TableReader(DataSourceReader):
    """Reads the files of a snapshot. What is sent to the tasks names no files: each has its own.

    Args:
        names: the columns.
        condition: the rows for which it is true are read.
    """

    def __init__(
        self, snapshot: Snapshot, place: TablePlace, names: Sequence[str], condition: Expression = TRUE
    ) -> None:
        self._snapshot = snapshot
        self._place = place
        self._names = tuple(names)
        self._plan(condition)

    def _plan(self, condition: Expression) -> None:
        scan = ArrowScan.of(self._snapshot, self._names, condition)
        self._files, self._scan = scan.files, replace(scan, files=())

    def partitions(self) -> Sequence[InputPartition]:
        return file_parts.of_files(self._files)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return file_rows(self._scan, self._place, partition)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_snapshot", "_files")}


class FilteringReader(TableReader):
    """A reader of a session that pushes filters down: they rule out files, row groups and rows.

    All of them are given back: Spark filters what is left once more.
    """

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:
        pushed = predicate(filters, self._snapshot.schema)
        self._plan(And((self._scan.predicate, pushed)) if pushed != TRUE else self._scan.predicate)
        return filters


class FeedReader(DataSourceReader):
    """Reads the rows that versions changed.

    Args:
        files: with the changes.
    """

    def __init__(self, scan: FeedScan, place: TablePlace, files: Sequence[ChangedFile]) -> None:
        self._scan, self._place, self._files = scan, place, files

    def partitions(self) -> Sequence[InputPartition]:
        return file_parts.of_changes(self._files)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return changed_rows(self._scan, self._place, partition)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_files"}


def file_rows(scan: ArrowScan, place: TablePlace, part: InputPartition) -> Iterator[pa.RecordBatch]:
    """The rows of a task's files; of none where Spark makes a task of nothing.

    Raises:
        As `file_read.read_file`.
    """
    store = place.open()
    for file in part.files if isinstance(part, FilePart) else ():
        _guard(store.root).check(store, files_table([file]), scan.metadata, scan.table, scan.version)
        yield from read_file(scan, file, store)


def changed_rows(scan: FeedScan, place: TablePlace, part: InputPartition) -> Iterator[pa.RecordBatch]:
    """The changes in a task's files; raises as `file_rows`."""
    store = place.open()
    for changed in part.files if isinstance(part, FeedPart) else ():
        yield from scan.batches(changed, store)
