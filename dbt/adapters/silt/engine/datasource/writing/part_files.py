"""Writes the rows of a task as data files: buffered by partition, and written when the buffer is full.

A file is built in memory and stored in a single operation, so that a task that dies leaves no partial files; the limit
on its size bounds the memory of a task.
"""

from __future__ import annotations

import io
import uuid
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.datasource import WriterCommitMessage

from dbt.adapters.silt.engine.commands.spark.partitions import IN_FILE_TAG
from dbt.adapters.silt.engine.datasource.writing.stored_rows import PartitionKey, StoredRows
from dbt.adapters.silt.engine.datasource.writing.write_plan import WritePlan
from dbt.adapters.silt.engine.kernel.errors import StorageError
from dbt.adapters.silt.engine.kernel.files.statistics import TRUSTED, from_footer
from dbt.adapters.silt.engine.kernel.table.actions import AddFile
from dbt.adapters.silt.engine.kernel.table.paths import log_path
from dbt.adapters.silt.engine.kernel.table.properties import TableProperties

_MOST_KEPT: Final = 256 << 20
"""The limit on bytes of rows in memory, over all partitions; beyond it the largest partition is written."""

_CODEC: Final = "delta.parquet.compression.codec"
_CODECS: Final = {"uncompressed": "none", "lz4raw": "lz4", "lz4_raw": "lz4"}


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
        data = self._file(pa.Table.from_arrays(rows.columns, schema=self._form.file_schema))
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
            raise StorageError(
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
