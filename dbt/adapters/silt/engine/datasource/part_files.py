"""Writes the rows of a task as data files: buffered by partition, and written when the buffer is full.

A file is built in memory and stored in a single operation, so that a task that dies leaves no partial files; the limit
on its size bounds the memory of a task.
"""

from __future__ import annotations

import functools
import io
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql.datasource import WriterCommitMessage

from dbt.adapters.silt.engine.commands.spark.partitions import IN_FILE_TAG
from dbt.adapters.silt.engine.datasource.write_plan import WritePlan
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.files.statistics import TRUSTED, from_footer
from dbt.adapters.silt.engine.kernel.files.stats_json import float_text
from dbt.adapters.silt.engine.kernel.rows.casts import FileTraits, fitted, to_table, too_long
from dbt.adapters.silt.engine.kernel.rows.filters import outcomes
from dbt.adapters.silt.engine.kernel.rows.types import arrow_type
from dbt.adapters.silt.engine.kernel.table.actions import AddFile
from dbt.adapters.silt.engine.kernel.table.column_mapping import PARQUET_FIELD_ID, stored_schema
from dbt.adapters.silt.engine.kernel.table.expressions import TRUE
from dbt.adapters.silt.engine.kernel.table.paths import log_path
from dbt.adapters.silt.engine.kernel.table.properties import TableProperties
from dbt.adapters.silt.engine.kernel.table.schema import ArrayType, DataType, MapType, StructField, StructType
from dbt.adapters.silt.engine.kernel.table.storable_schema import is_void
from dbt.adapters.silt.engine.kernel.table.text_lengths import declared_type

PartitionKey = tuple[str | None, ...]
"""The partition values of a file, spelled as in the log, in the order of the partition columns."""

_AS_THEY_ARE = FileTraits()

_MOST_KEPT: Final = 256 << 20
"""The limit on bytes of rows in memory, over all partitions; beyond it the largest partition is written."""

_CODEC: Final = "delta.parquet.compression.codec"
_CODECS: Final = {"uncompressed": "none", "lz4raw": "lz4", "lz4_raw": "lz4"}


@dataclass(frozen=True)
class StoredRows:
    """The form of the files of a plan."""

    plan: WritePlan

    def parts(self, batch: pa.RecordBatch) -> Iterator[tuple[PartitionKey, pa.RecordBatch]]:
        """Yields the rows by partition, in the form of the files.

        Raises:
            NotNullViolationError: if a NOT NULL column has a null.
            ValueNotCastableError: if a string is longer than its column's `char` or `varchar`.
            ReplaceWhereMismatchError: if a row does not match the condition of the replaced rows.
            PartitionValueError: if the log cannot hold the value of a partition column.
        """
        rows = self._table_rows(batch)
        self._check(rows)
        stored = self._stored(rows)
        if not self._partitioning:
            yield (), stored
            return
        for key, places in self._places(rows):
            yield key, stored.take(places)

    @functools.cached_property
    def file_schema(self) -> pa.Schema:
        """The columns of a file, with physical names and ids."""
        return pa.schema([_file_field(kept) for _, kept in self._columns])

    @functools.cached_property
    def schema(self) -> StructType:
        """The table's columns."""
        return StructType.from_json(self.plan.metadata.schema_string)

    @functools.cached_property
    def _columns(self) -> list[tuple[StructField, StructField]]:
        """The columns in files, each as the table and as the files define it."""
        pairs = zip(self.schema, stored_schema(self.plan.metadata), strict=True)
        return [(column, kept) for column, kept in pairs if not is_void(column.type)]

    @functools.cached_property
    def _partitioning(self) -> list[StructField]:
        return [self.schema.require(name) for name in self.plan.metadata.partition_columns]

    def _table_rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Returns the table's columns in its types, null if the batch lacks the column."""
        places = {name.lower(): at for at, name in enumerate(batch.schema.names)}
        arrays = [
            pa.nulls(batch.num_rows, arrow_type(column.type))
            if (at := places.get(column.name.lower())) is None
            else fitted(to_table(batch.column(at), column.type, column.type, _AS_THEY_ARE), declared_type(column))
            for column, _ in self._columns
        ]
        return pa.RecordBatch.from_arrays(arrays, names=[column.name for column, _ in self._columns])

    def _stored(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        arrays = [
            to_table(rows.column(at), kept.type, column.type, _AS_THEY_ARE)
            for at, (column, kept) in enumerate(self._columns)
        ]
        return pa.RecordBatch.from_arrays(arrays, names=[kept.name for _, kept in self._columns])

    def _check(self, rows: pa.RecordBatch) -> None:
        for at, (column, _) in enumerate(self._columns):
            if not column.nullable and rows.column(at).null_count:
                raise errors.NotNullViolationError(
                    f"a row has a null in the NOT NULL column `{column.name}`", table=self.plan.table
                )
            for place, kind in too_long(rows.column(at), declared_type(column), column.name):
                raise errors.ValueNotCastableError(
                    f"a row has a string in `{place}` that is longer than {kind}", table=self.plan.table
                )
        predicate = self.plan.predicate
        if predicate != TRUE and not pc.all(pc.fill_null(outcomes(predicate, rows), False), min_count=0).as_py():
            raise errors.ReplaceWhereMismatchError("a row does not match `replaceWhere`", table=self.plan.table)

    def _places(self, rows: pa.RecordBatch) -> Iterator[tuple[PartitionKey, pa.Array]]:
        """Yields each partition with rows, and the numbers of its rows."""
        names = [f"{at}" for at in range(len(self._partitioning))]
        arrays = [_grouped(rows.column(column.name)) for column in self._partitioning]
        numbered = pa.table([*arrays, pa.array(range(rows.num_rows))], names=[*names, "row"])
        for group in numbered.group_by(names).aggregate([("row", "list"), ("row", "min")]).to_batches():
            for at, first in enumerate(group["row_min"]):
                yield self._key(rows, first.as_py()), group["row_list"][at].values

    def _key(self, rows: pa.RecordBatch, row: int) -> PartitionKey:
        return tuple(self._text(rows, row, column) for column in self._partitioning)

    def _text(self, rows: pa.RecordBatch, row: int, column: StructField) -> str | None:
        try:
            value = rows.column(column.name)[row].as_py()
        except (ValueError, OverflowError) as error:
            raise errors.PartitionValueError(
                f"the partition column `{column.name}` would hold a time outside the years 1 to 9999 in UTC",
                table=self.plan.table,
            ) from error
        return _partition_text(value, column.name, self.plan.table)


def _grouped(array: pa.Array) -> pa.Array:
    """Returns values that Arrow groups correctly: floating-point numbers as strings."""
    return array.cast(pa.string()) if pa.types.is_floating(array.type) else array


def _file_field(field: StructField) -> pa.Field:
    own = field.metadata.get(PARQUET_FIELD_ID)
    return pa.field(
        field.name, _file_type(field.type), metadata=None if own is None else {"PARQUET:field_id": str(own)}
    )


def _file_type(data_type: DataType) -> pa.DataType:
    match data_type:
        case StructType():
            return pa.struct([_file_field(member) for member in data_type])
        case ArrayType():
            return pa.list_(pa.field("element", _file_type(data_type.element_type)))
        case MapType():
            return pa.map_(_file_type(data_type.key_type), _file_type(data_type.value_type))
    return arrow_type(data_type)


def _partition_text(value: Any, name: str, table: str) -> str | None:
    """Returns the spelling of a value in the log, or None for null.

    Source: the Delta specification, section "Partition Value Serialization"; a timestamp as
    `YYYY-MM-DDThh:mm:ss.ffffffZ`.

    Args:
        value: value in Python.
        name: name of the column.

    Raises:
        PartitionValueError: if the log cannot hold the value.
    """
    if value is None:
        return None
    text = _text(value)
    if text == "" or "\0" in text:
        what = "an empty string, which the format does not distinguish from null" if text == "" else "the character NUL"
        raise errors.PartitionValueError(f"the partition column `{name}` would hold {what}", table=table)
    return text


def _text(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case datetime():
            return _time(value)
        case date():
            return value.isoformat()
        case Decimal():
            return format(value, "f")
        case float():
            return float_text(value)
    return str(value)


def _time(moment: datetime) -> str:
    if moment.tzinfo is not None:
        return moment.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
    return moment.isoformat(sep=" ", timespec="microseconds" if moment.microsecond else "seconds")


@dataclass(frozen=True)
class Written(WriterCommitMessage):
    """The result of a successful task.

    Attributes:
        adds: files, not yet in a version of the table.
        rows: number of rows in all files.
    """

    plan: WritePlan
    adds: tuple[AddFile, ...]
    rows: int


@dataclass
class _Kept:
    """The buffered rows of a partition."""

    batches: list[pa.RecordBatch] = field(default_factory=list)
    size: int = 0


def begin(plan: WritePlan) -> None:
    """Creates the folder of a write, before its tasks run.

    An aborted write deletes it, so that tasks that are still running cannot store their files.

    Raises:
        StorageError: if the storage failed.
    """
    plan.location.open().make_folder(plan.folder)


def write(plan: WritePlan, batches: Iterable[pa.RecordBatch]) -> Written:
    """Writes the rows of a task.

    Raises:
        As in `StoredRows.parts`, and StorageError: if the storage failed.
        ObjectMissing: if the write was aborted meanwhile.
    """
    task = _Task(plan, StoredRows(plan))
    for batch in batches:
        task.take(batch)
    return task.finished()


class _Task:
    def __init__(self, plan: WritePlan, form: StoredRows) -> None:
        self._plan, self._form = plan, form
        self._store = plan.location.open()
        self._kept: defaultdict[PartitionKey, _Kept] = defaultdict(_Kept)
        self._adds: list[AddFile] = []
        self._rows = 0

    def take(self, batch: pa.RecordBatch) -> None:
        """Buffers the rows, and writes the largest partitions while the buffer is too large."""
        if batch.num_rows == 0:
            return
        for key, part in self._form.parts(batch):
            kept = self._kept[key]
            kept.batches.append(part)
            kept.size += part.nbytes
        self._rows += batch.num_rows
        while sum(kept.size for kept in self._kept.values()) > _MOST_KEPT:
            self._write(max(self._kept, key=lambda key: self._kept[key].size))

    def finished(self) -> Written:
        """Writes the remaining rows, and returns the result of the task."""
        for key in list(self._kept):
            self._write(key)
        return Written(self._plan, tuple(self._adds), self._rows)

    def _write(self, key: PartitionKey) -> None:
        rows = pa.Table.from_batches(self._kept.pop(key).batches)
        rows = pa.Table.from_arrays(rows.columns, schema=self._form.file_schema)
        if self._plan.sorted_by:
            rows = rows.sort_by([(name, "ascending") for name in self._plan.sorted_by])
        data = self._file(rows)
        path = f"{self._plan.folder}/part-{uuid.uuid4()}.parquet"
        self._store.put(path, data)
        self._adds.append(self._add(path, data, key))

    def _file(self, rows: pa.Table) -> bytes:
        codec = self._plan.metadata.configuration.get(_CODEC, "snappy").lower()
        sink = io.BytesIO()
        pq.write_table(rows, sink, compression=_CODECS.get(codec, codec))
        return sink.getvalue()

    def _add(self, path: str, data: bytes, key: PartitionKey) -> AddFile:
        metadata, schema = self._plan.metadata, self._form.schema
        status = self._store.status(path)
        if status is None or status.size != len(data):
            raise errors.StorageError(
                f"the data file {path} was written, but is missing or incomplete", table=self._plan.table
            )
        names = [schema.require(name).physical_name for name in metadata.partition_columns]
        footer = pq.read_metadata(pa.BufferReader(data))
        found = from_footer(footer, schema, TableProperties(metadata.configuration), metadata.partition_columns)
        return AddFile(
            path=log_path(path),
            partition_values=dict(zip(names, key, strict=True)),
            size=status.size,
            modification_time=status.modified_ms,
            stats=found.json,
            tags={**TRUSTED} | ({IN_FILE_TAG: "true"} if names else {}),
        )
