"""Computes the statistics of data files from their Parquet footers, as the JSON of `add.stats`.

Source: the Delta specification, section "Per-file Statistics". A missing statistic is always safe, but a wrong
statistic loses rows, so statistics that a footer does not prove are omitted:

- A column has no statistics if any of its chunks lacks them (values too long, timestamps as INT96).
- A maximum of floating-point numbers is only used from a writer that orders NaN above them (parquet-mr).
- The null count of an array or a map is only known if its leaves have no nulls at all, because a Parquet leaf counts
  empty lists and null elements as well.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dbt.adapters.silt.engine.kernel.errors import DataFileMissingError, TableDamagedError
from dbt.adapters.silt.engine.kernel.files import data_files, footers
from dbt.adapters.silt.engine.kernel.files.footer_check import read_footer
from dbt.adapters.silt.engine.kernel.files.footers import ColumnChunks
from dbt.adapters.silt.engine.kernel.files.stats_json import string_literal, truncated_maximum, truncated_minimum
from dbt.adapters.silt.engine.kernel.identifiers import split_name
from dbt.adapters.silt.engine.kernel.progress import Progress, counted, silent
from dbt.adapters.silt.engine.kernel.storage.store import ObjectMissing, Store
from dbt.adapters.silt.engine.kernel.table.properties import TableProperties
from dbt.adapters.silt.engine.kernel.table.schema import ArrayType, DataType, MapType, PrimitiveType, StructType

_TAG: Final = "SILT_STATISTICS"
_OF_OWN_FILES: Final = "own"
TRUSTED: Final[Mapping[str, str]] = {_TAG: _OF_OWN_FILES}
"""The tag of a file that this engine wrote: floating-point maxima include NaN, and other bounds are values of rows.

A string's bound may still be shortened to the table's prefix length. Other values of the tag have no meaning: CONVERT
tagged files of other writers with `true` as well.
"""


@dataclass(frozen=True)
class FileStatistics:
    """The statistics of a file.

    Attributes:
        num_records: the number of rows.
        json: the JSON string for `add.stats`.
        missing: paths of the indexed columns whose chunks lack statistics, by physical names.
    """

    num_records: int
    json: str
    missing: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class IndexedColumn:
    """A leaf column with statistics: its path by physical names, and its type (an array or a map is a leaf)."""

    path: tuple[str, ...]
    type: DataType


def are_trusted(files: pa.Table) -> pa.BooleanArray:
    """Returns whether each file has the tag `TRUSTED`.

    Args:
        files: a table with the column `tags` of `active_files.FILES`.
    """
    values = pc.map_lookup(files["tags"].combine_chunks(), pa.scalar(_TAG), "first")
    return pc.fill_null(pc.equal(values, _OF_OWN_FILES), False)


def from_footers(
    store: Store,
    paths: Sequence[str],
    schema: StructType,
    properties: TableProperties,
    partition_columns: Sequence[str] = (),
    progress: Progress = silent,
) -> dict[str, FileStatistics]:
    """Computes the statistics of these data files, by path.

    Args:
        store: the table's folder.
        paths: names in the store, not URIs.
        progress: the callback for the number of footers read.

    Raises:
        DataFileMissingError: if a file is missing.
        TableDamagedError: if a file is not Parquet.
        StorageError: if the storage failed.
    """
    columns = indexed_columns(schema, properties, partition_columns)

    prefix_length = properties.string_prefix_length
    with ThreadPoolExecutor(store.files_at_once) as pool:
        read = counted(pool.map(functools.partial(_footer, store), paths), progress, "footers read", len(paths))
        return {path: _from_metadata(footer, columns, prefix_length) for path, footer in zip(paths, read, strict=True)}


def from_footer(
    footer: pq.FileMetaData, schema: StructType, properties: TableProperties, partition_columns: Sequence[str] = ()
) -> FileStatistics:
    """Computes the statistics of a data file from its footer."""
    columns = indexed_columns(schema, properties, partition_columns)
    return _from_metadata(footer, columns, properties.string_prefix_length)


def indexed_columns(
    schema: StructType, properties: TableProperties, partition_columns: Sequence[str] = ()
) -> tuple[IndexedColumn, ...]:
    """Returns the columns with statistics: the columns that the table names or its first; never partition columns."""
    data = schema.drop(*partition_columns)
    names = properties.data_skipping_stats_columns
    if names is not None:
        wanted = [split_name(name.lower()) for name in names]
        return tuple(
            column for logical, column in _leaves(data) if any(logical[: len(name)] == name for name in wanted)
        )
    count = properties.data_skipping_num_indexed_cols
    leaves = (column for _, column in _leaves(data))
    return tuple(leaves if count < 0 else itertools.islice(leaves, count))


def _leaves(
    schema: StructType, logical: tuple[str, ...] = (), physical: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], IndexedColumn]]:
    """Yields leaf columns in schema order, each after its path of logical names in lower case."""
    for member in schema:
        names = (*logical, member.name.lower())
        path = (*physical, member.physical_name)
        if isinstance(member.type, StructType):
            yield from _leaves(member.type, names, path)
        else:
            yield names, IndexedColumn(path, member.type)


def _footer(store: Store, path: str) -> pq.FileMetaData:
    where, own = data_files.located(store, path)
    try:
        with where.open_input(own) as source:
            return read_footer(source)
    except (ObjectMissing, FileNotFoundError) as error:
        raise DataFileMissingError(f"the data file {path} is missing") from error
    except pa.ArrowInvalid as error:
        raise TableDamagedError(f"the data file {path} is not a Parquet file ({error})") from error


def _from_metadata(metadata: pq.FileMetaData, columns: Sequence[IndexedColumn], prefix_length: int) -> FileStatistics:
    found = footers.read(metadata, [_path_in_file(column) for column in columns])
    entries = {
        column.path: _entry(column, found.get(_path_in_file(column)), metadata.num_rows, prefix_length)
        for column in columns
    }
    parts = [f'"numRecords":{metadata.num_rows}']
    for name in ("minValues", "maxValues", "nullCount"):
        texts = ((path, entry.get(name)) for path, entry in entries.items())
        values = {path: text for path, text in texts if text is not None}
        if values:
            parts.append(f'"{name}":{document(values)}')
    missing = tuple(column.path for column in columns if _lacks_statistics(column, found.get(_path_in_file(column))))
    return FileStatistics(metadata.num_rows, "{" + ",".join(parts) + "}", missing)


def _entry(
    column: IndexedColumn, chunks: ColumnChunks | None, num_records: int, prefix_length: int
) -> Mapping[str, str | None]:
    """Returns the column's JSON literals by statistic. In a file without the column all rows are null."""
    if chunks is None and _is_variant(column):
        return {}
    if chunks is None:
        return {"nullCount": str(num_records)}
    nulls = None if chunks.null_count is None else str(chunks.null_count)
    if isinstance(column.type, ArrayType | MapType):
        return {"nullCount": nulls if nulls == "0" else None}
    shorter = functools.partial(truncated_minimum, prefix_length=prefix_length)
    longer = functools.partial(truncated_maximum, prefix_length=prefix_length)
    return {
        "minValues": chunks.literal(chunks.minimum, column.type, shorter),
        "maxValues": chunks.literal(chunks.maximum, column.type, longer),
        "nullCount": nulls,
    }


def _path_in_file(column: IndexedColumn) -> tuple[str, ...]:
    """Returns the Parquet leaf with the column's nulls: a variant is a group, and each of its values has metadata."""
    return (*column.path, "metadata") if _is_variant(column) else column.path


def _is_variant(column: IndexedColumn) -> bool:
    return column.type == PrimitiveType("variant")


def _lacks_statistics(column: IndexedColumn, chunks: ColumnChunks | None) -> bool:
    return chunks is not None and not chunks.complete and not isinstance(column.type, ArrayType | MapType)


def document(values: Mapping[tuple[str, ...], str]) -> str:
    """Builds the JSON object with each literal at its path; paths with the same first name must be consecutive."""
    members = []
    for name, group in itertools.groupby(values.items(), key=lambda item: item[0][0]):
        below = {path[1:]: text for path, text in group}
        members.append(f"{string_literal(name)}:{below[()] if () in below else document(below)}")
    return "{" + ",".join(members) + "}"
