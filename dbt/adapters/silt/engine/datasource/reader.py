"""Reads columns of a version of a table, or the changes of a range of versions, in Spark's tasks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final, TypeVar

import pyarrow as pa
from pyroaring import BitMap64
from pyspark.sql import types as spark_types
from pyspark.sql.datasource import DataSourceReader, InputPartition

from dbt.adapters.silt.engine.arrow.tables import TableLocation
from dbt.adapters.silt.engine.commands.spark.types import kernel_schema, spark_schema
from dbt.adapters.silt.engine.datasource.pushed_filters import predicate
from dbt.adapters.silt.engine.kernel.errors import CorruptLogError, TypeMismatchError
from dbt.adapters.silt.engine.kernel.files import deletion_vectors, stats_json
from dbt.adapters.silt.engine.kernel.files.file_guard import Content, FileGuard
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.rows.file_read import read_file
from dbt.adapters.silt.engine.kernel.rows.scan import ArrowScan
from dbt.adapters.silt.engine.kernel.rows.types import INSTANT
from dbt.adapters.silt.engine.kernel.scan.change_feed import FEED_COLUMNS, ChangedFile
from dbt.adapters.silt.engine.kernel.storage.store import Store
from dbt.adapters.silt.engine.kernel.table.actions import AddFile
from dbt.adapters.silt.engine.kernel.table.expressions import TRUE, And, Expression
from dbt.adapters.silt.engine.kernel.table.schema import (
    CHANGE_TYPE,
    CHAR_VARCHAR_KEY,
    StructField,
    StructType,
    map_fields,
    nullable_schema,
)

T = TypeVar("T")
_OPENING: Final = 4 << 20
"""The cost of opening a file, in bytes that could be read meanwhile; as `spark.sql.files.openCostInBytes`."""

_LARGEST: Final = 128 << 20
"""The most bytes in the files of a task, except for a single file; as `spark.sql.files.maxPartitionBytes`."""

_TASKS_OF_A_CORE: Final = 4


def shown(schema: StructType) -> spark_types.StructType:
    """Returns the columns for a DataFrame: nullable, with their comments and the lengths of their strings."""
    return spark_schema(_plain(schema))


def chosen(schema: StructType, wanted: spark_types.StructType, table: str) -> tuple[str, ...]:
    """Returns the names of the requested columns, in the requested order, as the table spells them.

    Raises:
        ColumnNotFoundError: if a column does not exist.
        TypeMismatchError: if a requested column has another type or spelling than the table's, or is NOT NULL.
    """
    return tuple(_chosen(schema.require(each.name, table), each, table) for each in kernel_schema(wanted))


def selected(schema: StructType, names: Sequence[str] | None, table: str) -> StructType:
    """Returns the named columns, in the given order, or all columns if no names are given."""
    if names is None:
        return schema
    return StructType(tuple(schema.require(name, table) for name in names))


def _chosen(column: StructField, wanted: StructField, table: str) -> str:
    (plain,) = _plain(StructType((column,)))
    if (plain.name, plain.type, plain.nullable) == (wanted.name, wanted.type, wanted.nullable):
        return column.name
    raise TypeMismatchError(
        f"the given schema has `{wanted.name}` {wanted.sql_type}{'' if wanted.nullable else ' NOT NULL'}, but "
        f"the table has `{column.name}` {column.type.sql_name}",
        remedy="Omit `schema`, or give the table's columns and declare them nullable",
        table=table,
    )


def _plain(schema: StructType) -> StructType:
    return map_fields(nullable_schema(schema), _with_comment)


def _with_comment(field: StructField) -> StructField:
    kept = {key: value for key, value in field.metadata.items() if key in ("comment", CHAR_VARCHAR_KEY)}
    return StructField(field.name, field.type, field.nullable, kept)


@dataclass(frozen=True)
class FilePart(InputPartition):
    """The files of a task."""

    files: tuple[AddFile, ...]


@dataclass(frozen=True)
class FeedPart(InputPartition):
    """The files with changes of a task."""

    files: tuple[ChangedFile, ...]


def of_files(files: Iterable[AddFile]) -> list[FilePart]:
    """Returns the tasks that read files."""
    return [FilePart(part) for part in _packed(tuple(files), lambda file: file.size)]


def of_changes(files: Iterable[ChangedFile]) -> list[FeedPart]:
    """Returns the tasks that read changes."""
    return [FeedPart(part) for part in _packed(tuple(files), lambda changed: changed.file.size)]


def _packed(files: tuple[T, ...], size_of: Callable[[T], int]) -> Iterator[tuple[T, ...]]:
    """Yields the files in order, divided into parts of limited cost."""
    costs = [size_of(file) + _OPENING for file in files]
    most = min(_LARGEST, max(_OPENING, sum(costs) // (_TASKS_OF_A_CORE * (os.cpu_count() or 1))))
    part: list[T] = []
    held = 0
    for file, cost in zip(files, costs, strict=True):
        if part and held + cost > most:
            yield tuple(part)
            part, held = [], 0
        part.append(file)
        held += cost
    if part:
        yield tuple(part)


@dataclass(frozen=True)
class FeedScan:
    """A read of changes in the columns of a version; it can be pickled."""

    of_table: ArrowScan
    of_change_files: ArrowScan

    @classmethod
    def of(cls, end: Snapshot, names: Sequence[str]) -> FeedScan:
        """Returns the read of some columns.

        Raises:
            As in `ArrowScan.of`.
        """
        of_table = replace(ArrowScan.of(end, names), files=())
        schema = end.schema.add(FEED_COLUMNS.require(CHANGE_TYPE))
        metadata = replace(end.metadata, schema_string=schema.to_json())
        names = (*of_table.names, CHANGE_TYPE)
        return cls(of_table, ArrowScan(end.table, end.version, metadata, names, TRUE, ()))

    def batches(self, changed: ChangedFile, store: Store) -> Iterator[pa.RecordBatch]:
        """Yields the changes in a file; raises the errors of `file_read.read_file`."""
        scan = self.of_change_files if changed.change_type is None else self.of_table
        file = changed.file if changed.rows is None else _with_rows(changed.file, changed.rows, scan)
        for batch in read_file(scan, file, store):
            yield self._with_facts(batch, changed)

    def _with_facts(self, batch: pa.RecordBatch, changed: ChangedFile) -> pa.RecordBatch:
        given = batch.columns if changed.change_type is None else [*batch.columns, changed.change_type]
        facts = [*given[len(self.of_table.names) :], changed.version, changed.timestamp_ms * 1000]
        types = (pa.string(), pa.int64(), INSTANT)
        arrays = [
            fact if isinstance(fact, pa.Array) else pa.repeat(pa.scalar(fact, kind), batch.num_rows)
            for fact, kind in zip(facts, types, strict=True)
        ]
        names = [*self.of_table.names, *FEED_COLUMNS.names]
        return pa.RecordBatch.from_arrays([*batch.columns[: len(self.of_table.names)], *arrays], names=names)


def _with_rows(file: AddFile, rows: BitMap64, scan: ArrowScan) -> AddFile:
    """Returns the file with all rows deleted except these."""
    count = stats_json.record_count(file.stats)
    if count is None or count > deletion_vectors.MOST_ROWS:
        raise CorruptLogError(
            f"{file.path} has a deletion vector, but its number of rows is missing or too large",
            table=scan.table,
            version=scan.version,
        )
    return replace(file, deletion_vector=deletion_vectors.inline(BitMap64(range(count)) - rows))


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
        return of_files(self._files)

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
        return of_changes(self._files)

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
    files = part.files if isinstance(part, FilePart) else ()
    _guard(store.root).check_files(store, files, Content(scan.metadata), scan.table, scan.version)
    for file in files:
        yield from read_file(scan, file, store)


def changed_rows(scan: FeedScan, location: TableLocation, part: InputPartition) -> Iterator[pa.RecordBatch]:
    """Yields the changes in a task's files; raises the errors of `file_rows`."""
    store = location.open()
    for changed in part.files if isinstance(part, FeedPart) else ():
        yield from scan.batches(changed, store)
