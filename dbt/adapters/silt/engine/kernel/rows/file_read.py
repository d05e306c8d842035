"""Reads a data file of a scan as record batches: the table's columns, without deleted rows, filtered."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dbt.adapters.silt.engine.kernel.errors import CorruptDeletionVectorError, TableDamagedError
from dbt.adapters.silt.engine.kernel.files import deletion_vectors
from dbt.adapters.silt.engine.kernel.files.footer_check import field_id
from dbt.adapters.silt.engine.kernel.files.footers import WIDE_DIFFERENCES, may_be_wide_differences
from dbt.adapters.silt.engine.kernel.files.page_bounds import MOST_OF_A_FILE, DecodedTexts, PageBounds, rows_of
from dbt.adapters.silt.engine.kernel.rows import casts
from dbt.adapters.silt.engine.kernel.rows.casts import FileTraits, fitted, position, to_table
from dbt.adapters.silt.engine.kernel.rows.filters import outcomes
from dbt.adapters.silt.engine.kernel.rows.open_file import RowGroups, first_line, open_parquet, problems
from dbt.adapters.silt.engine.kernel.rows.scan import ArrowScan, ScanColumn
from dbt.adapters.silt.engine.kernel.rows.types import arrow_type
from dbt.adapters.silt.engine.kernel.storage.store import Store
from dbt.adapters.silt.engine.kernel.table.actions import AddFile
from dbt.adapters.silt.engine.kernel.table.expressions import TRUE, columns
from dbt.adapters.silt.engine.kernel.table.schema import DataType, StructField
from dbt.adapters.silt.engine.kernel.table.text_lengths import blanks, has_char, padded_type
from dbt.adapters.silt.engine.kernel.table.value_order import not_a_value, value_order_of

_WORTH_A_PROBE: Final = 4
"""The columns of the predicate are read first if they are this many times smaller than all columns."""

_BITS: Final = 8


def read_file(scan: ArrowScan, file: AddFile, store: Store) -> Iterator[pa.RecordBatch]:
    """Yields the rows of a file of the scan, in order, without empty batches.

    Args:
        store: the table's folder (`open_databases.open_location` opens it in another process).

    Raises:
        DataFileMissingError: if the file is missing.
        DataFileChangedError: if the file differs from the file in the log.
        TableDamagedError: if the file, its deletion vector or its partition values cannot be read.
        ExternalPathError: if the file is at a location that the table may not use.
        UnsupportedFeatureError: if the file has dates of the calendar of Spark before version 3.
        StorageError: if the storage failed.
    """
    with problems(scan, file), open_parquet(scan, file, store) as (parquet, bounds):
        yield from _FileRead.of(scan, file, parquet, bounds).batches(store)


@dataclass(frozen=True)
class _FileRead:
    """The read of an open file.

    Attributes:
        places: position in the file of each column to read, if the file has the column.
    """

    scan: ArrowScan
    file: AddFile
    parquet: pq.ParquetFile
    bounds: PageBounds
    traits: FileTraits
    places: tuple[int | None, ...]

    @classmethod
    def of(cls, scan: ArrowScan, file: AddFile, parquet: pq.ParquetFile, bounds: PageBounds) -> _FileRead:
        fields = list(parquet.schema_arrow)
        if scan.by_id and fields and all(field_id(field) is None for field in fields):
            raise TableDamagedError("it has no column ids, which the table's column mapping needs")
        places = (
            None if each.is_partition else position(fields, each.stored, scan.by_id) for each in scan.read_columns
        )
        traits = FileTraits(scan.by_id, casts.is_old(parquet.metadata))
        return cls(scan, file, parquet, bounds, traits, tuple(places))

    def batches(self, store: Store) -> Iterator[pa.RecordBatch]:
        """Yields the remaining rows of each row group."""
        footer = self.parquet.metadata
        kept = _kept_rows(self.file, footer.num_rows, store, self.scan.table)
        groups = self._groups()
        start = 0
        for group in range(footer.num_row_groups):
            rows = footer.row_group(group).num_rows
            left = None if kept is None else kept.slice(start, rows)
            if group in groups and self._has_rows(group, left):
                yield from self._of_group(group, left)
            start += rows

    def _has_rows(self, group: int, kept: pa.BooleanArray | None) -> bool:
        """Returns whether a row may remain, by reading only the predicate's columns first if they are small."""
        return self._probe is None or next(self._probe._of_group(group, kept), None) is not None

    @functools.cached_property
    def _probe(self) -> _FileRead | None:
        """The read of the predicate's columns alone, or None if it would save little."""
        needed = (column.parts[0].lower() for column in columns(self.scan.predicate))
        read = {column.field.name.lower(): column.field.name for column in self.scan.read_columns}
        names = tuple(dict.fromkeys(read[name] for name in needed))
        if not names:
            return None
        probe = _FileRead.of(replace(self.scan, names=names), self.file, self.parquet, self.bounds)
        return probe if probe._stored_bytes() * _WORTH_A_PROBE < self._stored_bytes() else None

    def _stored_bytes(self) -> int:
        """Returns the approximate compressed size of the columns in the file's first row group, in bytes."""
        footer = self.parquet.metadata
        if footer.num_row_groups == 0:
            return 0
        names = {self.parquet.schema_arrow.field(at).name for at in self.places if at is not None}
        leaves = (footer.row_group(0).column(at) for at in range(footer.num_columns))
        return sum(leaf.total_compressed_size for leaf in leaves if leaf.path_in_schema.partition(".")[0] in names)

    def _groups(self) -> Sequence[int]:
        """Returns the row groups to read; a single group was already checked by the log's statistics."""
        every = range(self.parquet.metadata.num_row_groups)
        if self.scan.predicate == TRUE or (len(every) < 2 and self.file.stats):
            return every
        scan = self.scan
        groups = RowGroups(self.parquet.metadata, scan.metadata, scan.stored, scan.by_id)
        return groups.matching(self.file, scan.predicate)

    def _of_group(self, group: int, kept: pa.BooleanArray | None) -> Iterator[pa.RecordBatch]:
        start = 0
        for found in self._stored_batches(group):
            rows = found.num_rows
            batch = self._table_batch(found)
            self._texts.add(batch)
            yield from self._filtered(batch, None if kept is None else kept.slice(start, rows))
            start += rows

    def _stored_batches(self, group: int) -> Iterator[pa.RecordBatch]:
        """Yields the read columns as stored; if the file lacks them all, batches with only the number of rows."""
        fields = self.parquet.schema_arrow
        names = [fields.field(at).name for at in sorted({at for at in self.places if at is not None})]
        if names:
            yield from self._decoded(group, names)
            return
        left, most = self.parquet.metadata.row_group(group).num_rows, rows_of(self._further_bytes)
        while left > 0:
            rows = min(left, most)
            yield pa.RecordBatch.from_arrays([pa.nulls(rows)], names=[""])
            left -= rows

    def _decoded(self, group: int, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yields columns as stored.

        Raises:
            TableDamagedError: if Arrow cannot read a column that Spark may be able to read.
            pa.ArrowException, OSError: if the file cannot be read for another reason.
        """
        rows = self._rows_at_once(group, names)
        try:
            yield from self.parquet.iter_batches(rows, row_groups=[group], columns=names)
        except (pa.ArrowException, OSError) as error:
            if not may_be_wide_differences(error, self.parquet.metadata, names):
                raise
            raise TableDamagedError(f"Arrow cannot read it ({first_line(error)})", remedy=WIDE_DIFFERENCES) from error

    def _rows_at_once(self, group: int, names: Sequence[str]) -> int:
        """Returns the number of rows to decode at a time, so that they take little memory. Raises as `_decoded`."""
        kinds = [self.parquet.schema_arrow.field(name).type for name in names]
        if all(map(pa.types.is_primitive, kinds)):
            return rows_of(self._further_bytes + sum(kind.bit_width // _BITS + 1 for kind in kinds))
        return self.bounds.rows_at_once(group, frozenset(names), self._further_bytes)

    @functools.cached_property
    def _texts(self) -> DecodedTexts:
        return DecodedTexts(self.file.size, MOST_OF_A_FILE)

    @functools.cached_property
    def _further_bytes(self) -> int:
        """The bytes that a row takes for values that are not in the file: of partitions, and the blanks of a `char`."""
        return sum(map(self._bytes_outside, self.scan.read_columns))

    def _bytes_outside(self, column: ScanColumn) -> int:
        text = self.file.partition_values.get(column.field.physical_name) if column.is_partition else None
        return len(text or "") + blanks(column.field)

    def _table_batch(self, found: pa.RecordBatch) -> pa.RecordBatch:
        pairs = zip(self.scan.read_columns, self.places, strict=True)
        arrays = [self._column(column, index, found) for column, index in pairs]
        return pa.RecordBatch.from_arrays(arrays, names=[column.field.name for column in self.scan.read_columns])

    def _column(self, column: ScanColumn, index: int | None, found: pa.RecordBatch) -> pa.Array:
        stored = self._as_stored(column, index, found)
        return fitted(stored, padded_type(column.field)) if has_char(column.field) else stored

    def _as_stored(self, column: ScanColumn, index: int | None, found: pa.RecordBatch) -> pa.Array:
        if column.is_partition:
            text = self.file.partition_values.get(column.field.physical_name)
            return _partition_column(text, column.field, found.num_rows)
        if index is None:
            return pa.nulls(found.num_rows, arrow_type(column.field.type))
        name = self.parquet.schema_arrow.field(index).name
        try:
            return to_table(found.column(name), column.field.type, column.stored.type, self.traits)
        except pa.ArrowException as error:
            kind, wanted = found.column(name).type, column.field.type.sql_name
            raise TableDamagedError(
                f"its column `{name}` has the type {kind} and cannot be read as {wanted} ({error})"
            ) from error

    def _filtered(self, batch: pa.RecordBatch, kept: pa.BooleanArray | None) -> Iterator[pa.RecordBatch]:
        mask: Any = kept
        if self.scan.predicate != TRUE:
            true = outcomes(self.scan.predicate, batch)
            mask = true if mask is None else pc.and_kleene(true, mask)
        wanted = batch.select(list(self.scan.names))
        left = wanted if mask is None else wanted.filter(mask)
        if left.num_rows:
            yield pa.RecordBatch.from_arrays(left.columns, schema=self.scan.schema)


def _kept_rows(file: AddFile, rows: int, store: Store, table: str) -> pa.BooleanArray | None:
    """Returns for each row of the file whether it is in the table, or None if all rows are.

    Args:
        rows: number of rows in the file.

    Raises:
        CorruptDeletionVectorError: if the vector cannot be read, or deletes rows that the file does not have.
        DataFileMissingError: if the file of the vector is missing.
        ExternalPathError: if that file is at a location that the table may not use.
        StorageError: if the storage failed.
    """
    vector = file.deletion_vector
    if vector is None:
        return None
    bitmap = deletion_vectors.read(store, [vector], table)[vector.unique_id]
    if bitmap and bitmap.max() >= rows:
        raise CorruptDeletionVectorError(
            f"a deletion vector cannot be used: it deletes row {bitmap.max()} of {file.path}, which has {rows} rows",
            table=table,
            details={"deletion_vector": vector.to_json()},
        )
    # The words have their bits in the order of Arrow's Booleans.
    words = deletion_vectors.words(bitmap)
    bits = words.buffers()[1].to_pybytes()[words.offset * _BITS :] if len(words) else b""
    padded = bits + bytes(max(0, rows // _BITS + 1 - len(bits)))
    return pc.invert(pa.Array.from_buffers(pa.bool_(), rows, [None, pa.py_buffer(padded)]))


_FLOATS = ("float", "double")


def _partition_column(text: str | None, field: StructField, length: int) -> pa.Array:
    """Returns a column with the same partition value in every row.

    Raises:
        CorruptLogError: if the string is not a value of the column's type.
    """
    return pa.repeat(partition_value(text, field), length)


def partition_value(text: str | None, field: StructField) -> pa.Scalar:
    """Converts a partition value of the log to Arrow.

    Raises:
        CorruptLogError: if the string is not a value of the column's type.
    """
    target = arrow_type(field.type)
    if not text:
        return pa.scalar(None, target)
    try:
        return _typed(text, field.type, target)
    except (pa.ArrowException, ValueError) as error:
        raise not_a_value(text, field) from error


def _typed(text: str, data_type: DataType, target: pa.DataType) -> pa.Scalar:
    name = getattr(data_type, "name", "")
    if name == "string":
        return pa.scalar(text)
    if name == "binary":
        return pa.scalar(text.encode(), target)
    if name in _FLOATS:
        return pa.array([text.strip()]).cast(target)[0]
    order = value_order_of(data_type)
    form = None if order is None else order.from_texts(pa.array([text.strip()]))[0]
    if form is None or not form.is_valid:
        raise ValueError(text)
    return _of_form(form, target)


def _of_form(form: pa.Scalar, target: pa.DataType) -> pa.Scalar:
    """Converts a value of a `ValueOrder` to the column's own type."""
    forms = pa.array([form.as_py()], form.type)
    if pa.types.is_timestamp(target):
        return forms.cast(pa.timestamp("us")).view(target)[0]
    if pa.types.is_date(target):
        return forms.cast(pa.int32()).view(target)[0]
    return forms.cast(target)[0]
