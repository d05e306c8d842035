"""Opens data files for Arrow, and skips row groups that a predicate rules out by the footer's statistics."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.files import file_guard, footers, stats_json
from dbt.adapters.silt.engine.kernel.files.data_files import in_data_file, located
from dbt.adapters.silt.engine.kernel.files.file_guard import Contradiction, Expected
from dbt.adapters.silt.engine.kernel.files.footers import ColumnChunks
from dbt.adapters.silt.engine.kernel.files.page_bounds import PageBounds
from dbt.adapters.silt.engine.kernel.files.statistics import TRUSTED, document
from dbt.adapters.silt.engine.kernel.rows.casts import position
from dbt.adapters.silt.engine.kernel.rows.scan import ArrowScan
from dbt.adapters.silt.engine.kernel.scan.skipping import might_match
from dbt.adapters.silt.engine.kernel.storage.store import ObjectMissing, Store
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, Metadata
from dbt.adapters.silt.engine.kernel.table.expressions import Column, Expression, columns
from dbt.adapters.silt.engine.kernel.table.paths import absolute_name, decode_path, is_absolute
from dbt.adapters.silt.engine.kernel.table.schema import ArrayType, DataType, MapType, StructType

NEAR_END: Final = 1 << 16
"""The bytes at the end of an object that are read when it is opened."""


@contextlib.contextmanager
def open_parquet(scan: ArrowScan, file: AddFile, store: Store) -> Iterator[tuple[pq.ParquetFile, PageBounds]]:
    """Opens a data file with Arrow and checks its size and number of rows against the log.

    Returns:
        The file, and the bounds of the memory that its rows take.

    Raises:
        DataFileMissingError: if the file is missing.
        DataFileChangedError: if the file has another size or number of rows.
        ExternalPathError: if the file is at a location that the table may not use.
        StorageError: if the storage failed.
        pa.ArrowException, OSError: if the file is not Parquet.
    """
    name = decode_path(file.path)
    with _source(scan, store, name) as source:
        size = source.size()
        problem = file_guard.size_problem(Expected(name, file.size, file.modification_time, file.stats), size)
        if problem is not None:
            raise file_guard.changed(Contradiction(problem), absolute_name(store.root, name), scan.table, scan.version)
        buffered = not store.has_folders
        bounds = PageBounds.of(source, by_pages=not buffered or size <= NEAR_END)
        parquet = pq.ParquetFile(
            source, metadata=bounds.metadata, coerce_int96_timestamp_unit="us", pre_buffer=buffered
        )
        _check_rows(scan, file, parquet.metadata.num_rows, absolute_name(store.root, name))
        yield parquet, bounds


@contextlib.contextmanager
def problems(scan: ArrowScan, file: AddFile) -> Iterator[None]:
    """Adds the table, the version and the file to errors.

    Raises:
        TableDamagedError: if Arrow cannot read the file.
        StorageError: if the operating system cannot read the file.
    """
    name = decode_path(file.path)
    try:
        yield
    except (errors.TableDamagedError, errors.UnsupportedFeatureError) as error:
        if error.table is not None:
            raise
        raise in_data_file(error, name, scan.table, scan.version) from error
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # a column's name may not be UTF-8
        if isinstance(error, OSError) and error.errno is not None:
            raise errors.StorageError(
                f"the data file {name} cannot be read ({error.strerror})", table=scan.table
            ) from error
        raise errors.TableDamagedError(
            f"the data file {name} cannot be read ({first_line(error)})",
            table=scan.table,
            version=scan.version,
            details={"path": name},
        ) from error


@contextlib.contextmanager
def _source(scan: ArrowScan, store: Store, name: str) -> Iterator[Any]:
    """Opens the file for Arrow; objects without their buffer, which would split Arrow's large reads."""
    where, own = located(store, name)
    try:
        found: Any = where.open_input(own)
    except ObjectMissing as error:
        raise _missing(scan, name) from error
    raw = found.raw if isinstance(found, io.BufferedReader) else found
    with found, raw if isinstance(raw, pa.NativeFile) else pa.PythonFile(raw, mode="r") as source:
        yield source


def _missing(scan: ArrowScan, name: str) -> errors.DataFileMissingError:
    where: dict[str, Any] = {"table": scan.table, "version": scan.version, "details": {"path": name}}
    if not is_absolute(name):
        return errors.DataFileMissingError(f"the data file {name} is missing", **where)
    return errors.DataFileMissingError(
        f"the data file {name} is missing: the table is a shallow clone, and VACUUM or a drop has deleted the file of "
        "its source",
        remedy="Restore the source's file from a copy, or clone the source again; a deep clone has its own files",
        **where,
    )


def _check_rows(scan: ArrowScan, file: AddFile, rows: int, path: str) -> None:
    said = stats_json.record_count(file.stats)
    if said is not None and said != rows:
        problem = f"the data file {decode_path(file.path)} has {rows} rows, but the log says {said}"
        raise file_guard.changed(Contradiction(problem), path, scan.table, scan.version)


def first_line(error: Exception) -> str:
    """Returns the first line of the message of an error, or the name of its class if the message is empty."""
    return (str(error).splitlines() or [type(error).__name__])[0]


Path: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class _Leaf:
    """A column that a predicate names.

    Attributes:
        physical: path in statistics.
        in_file: path in the file, if the file has the column.
    """

    physical: Path
    in_file: Path | None
    type: DataType


@dataclass(frozen=True)
class RowGroups:
    """The row groups of a file of a table.

    Attributes:
        stored: the table's columns with the names and ids in files, in the table's order.
        by_id: whether columns in files are found by ids.
    """

    footer: pq.FileMetaData
    metadata: Metadata
    stored: StructType
    by_id: bool

    def matching(self, file: AddFile, predicate: Expression) -> list[int]:
        """Returns the row groups that may have a row for which the predicate is true."""
        groups = list(range(self.footer.num_row_groups))
        found = (leaf for column in set(columns(predicate)) for leaf in self._leaf(column))
        leaves = sorted(found, key=lambda leaf: leaf.physical)
        if not leaves:
            return groups
        known = [replace(file, stats=self._statistics(group, leaves), tags=TRUSTED) for group in groups]
        may = might_match(known, self.metadata, predicate)
        return [group for group, matches in zip(groups, may, strict=True) if matches]

    def _leaf(self, column: Column) -> Iterator[_Leaf]:
        """Yields the column with its paths, or nothing if it has no statistics of its own."""
        wanted: DataType = StructType.from_json(self.metadata.schema_string)
        stored: DataType = self.stored
        held: Sequence[pa.Field] | None = list(self.footer.schema.to_arrow_schema())
        physical, in_file = [], []
        for part in column.parts:
            if not isinstance(wanted, StructType) or not isinstance(stored, StructType):
                return
            at = [name.lower() for name in wanted.names].index(part.lower())
            of_file = stored.fields[at]
            index = None if held is None else position(held, of_file, self.by_id)
            physical.append(wanted.fields[at].physical_name)
            wanted, stored = wanted.fields[at].type, of_file.type
            if held is None or index is None:
                held = None
                continue
            in_file.append(held[index].name)
            kind = held[index].type
            held = [kind.field(inner) for inner in range(kind.num_fields)] if pa.types.is_struct(kind) else []
        if not isinstance(wanted, StructType | ArrayType | MapType):
            yield _Leaf(tuple(physical), None if held is None else tuple(in_file), wanted)

    def _statistics(self, group: int, leaves: Sequence[_Leaf]) -> str:
        """Returns the statistics of a row group, in the form of a file's statistics in the log."""
        rows = self.footer.row_group(group).num_rows
        found = footers.read(self.footer, [leaf.in_file for leaf in leaves if leaf.in_file is not None], [group])
        texts: dict[str, dict[Path, str]] = {"minValues": {}, "maxValues": {}, "nullCount": {}}
        for leaf in leaves:
            for name, text in _entries(leaf, rows, found.get(leaf.in_file or ())):
                if text is not None:
                    texts[name][leaf.physical] = text
        parts = [f'"{name}":{document(values)}' for name, values in texts.items() if values]
        return "{" + ",".join([f'"numRecords":{rows}', *parts]) + "}"


def _entries(leaf: _Leaf, rows: int, chunks: ColumnChunks | None) -> Iterator[tuple[str, str | None]]:
    """Yields the statistics of a column as JSON literals; in a file without the column all rows are null."""
    if leaf.in_file is None:
        yield "nullCount", str(rows)
    elif chunks is not None:
        yield "minValues", chunks.literal(chunks.minimum, leaf.type, _whole)
        yield "maxValues", chunks.literal(chunks.maximum, leaf.type, _whole)
        yield "nullCount", None if chunks.null_count is None else str(chunks.null_count)


def _whole(text: str) -> str:
    return text
