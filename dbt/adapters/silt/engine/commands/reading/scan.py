"""Reads exactly the files that a snapshot names.

Spark gets each file by name: it lists no folder, infers no schema and opens no footer before the work starts.
Files of other writers lack the partition columns, which are filled from the log; files of this engine contain them
(`partitions.IN_FILE_TAG`).
Under column mapping, files are read by physical names or ids, and the columns get the table's names.
Every read skips the rows that a deletion vector deletes (`scan_vectors`); this costs nothing for files without vector.
Rows that will be rewritten carry their ids if the table keeps row ids (`read_to_rewrite`).
A condition on a floating-point column that may contain a zero or NaN is never pushed into the Parquet reader (decision
0074).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.commands.reading import file_list, scan_vectors
from dbt.adapters.silt.engine.commands.reading.file_list import ListedFile
from dbt.adapters.silt.engine.commands.reading.positions import FILE, ROW, reports
from dbt.adapters.silt.engine.commands.reading.scan_vectors import WORDS, RowFilter, Way
from dbt.adapters.silt.engine.commands.spark import errors, frames, partitions, stored_columns
from dbt.adapters.silt.engine.commands.spark.shared_storage import spark_path
from dbt.adapters.silt.engine.commands.spark.types import check_collations, spark_schema
from dbt.adapters.silt.engine.commands.writing.conversion import fitted
from dbt.adapters.silt.engine.commands.writing.row_ids import ROW_ID, ROW_VERSION
from dbt.adapters.silt.engine.kernel.errors import DataFileChangedError, DataFileMissingError
from dbt.adapters.silt.engine.kernel.files import deletion_vectors
from dbt.adapters.silt.engine.kernel.files.bounds import uncertain_floats
from dbt.adapters.silt.engine.kernel.files.data_files import in_data_file
from dbt.adapters.silt.engine.kernel.files.deletion_vectors import Positions
from dbt.adapters.silt.engine.kernel.files.file_guard import Content
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.log import commit_search
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.table import column_mapping, storable_schema, type_widening
from dbt.adapters.silt.engine.kernel.table.paths import absolute_name, decode_path, is_absolute
from dbt.adapters.silt.engine.kernel.table.schema import (
    CHAR_VARCHAR_KEY,
    PrimitiveType,
    StructField,
    StructType,
    map_fields,
    nullable_schema,
)
from dbt.adapters.silt.engine.kernel.table.storable_schema import is_void
from dbt.adapters.silt.engine.kernel.table.text_lengths import has_char, padded_type
from dbt.adapters.silt.engine.kernel.table.value_order import not_a_value
from dbt.adapters.silt.engine.kernel.transaction.row_tracking import keeps_row_ids, materialized_columns

_MOST_LITERAL_GROUPS = 16
"""Up to this many different partition values are literals, each with a read of its own; more are joined."""

_FIRST_ID, _VERSION = "__silt_first_id", "__silt_version"
_METADATA = "__silt_metadata"


@dataclass(frozen=True)
class _Files:
    """Files to read in the same way.

    Args:
        paths: the files' paths in the log.
        columns: the columns that the files lack, or for which the log's values take precedence.
        values: the log's values of these columns, a tuple for each file.
        rows: the rows to read; by default all.
    """

    paths: tuple[str, ...]
    columns: tuple[str, ...] = ()
    values: tuple[tuple[str | None, ...], ...] = ()
    rows: RowFilter | None = None


@dataclass(frozen=True)
class _Ids:
    """The ids of rows, from the files and from the log.

    Args:
        columns: the files' columns of row ids and commit versions.
        given: the defaults of rows without these values, by file: the id of its first row, and the commit version.
    """

    columns: tuple[str, str]
    given: Mapping[str, tuple[int | None, int | None]]

    @property
    def stored(self) -> tuple[StructField, ...]:
        return tuple(StructField(name, PrimitiveType("long")) for name in self.columns)

    def of_rows(self) -> dict[str, str | Column]:
        """Returns `ROW_ID` and `ROW_VERSION` of rows with positions, stored values and the log's defaults."""
        row_id, version = map(F.col, map(quote, self.columns))
        first = F.col(_FIRST_ID) + F.col(ROW)
        return {ROW_ID: F.coalesce(row_id, first), ROW_VERSION: F.coalesce(version, F.col(_VERSION))}


@dataclass(frozen=True)
class _Scan:
    """The state that the reads of a snapshot share.

    Args:
        known: the size and the time of modification of each file, by its path in the log.
    """

    spark: SparkSession
    table: str
    version: int
    root: str
    schema: StructType
    stored: StructType
    with_position: bool
    ids: _Ids | None = None
    known: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def pairs(self, without: Collection[str] = ()) -> list[tuple[StructField, StructField]]:
        """Returns the table's columns, each with its field in data files."""
        gone = {name.lower() for name in without}
        both = zip(self.schema, self.stored, strict=True)
        return [(member, stored) for member, stored in both if member.name.lower() not in gone]


def read(
    spark: SparkSession,
    log: DeltaLog,
    snapshot: Snapshot,
    files: pa.Table | None = None,
    with_position: bool = False,
    only: Positions | None = None,
    *,
    fills_missing: bool = False,
) -> DataFrame:
    """Returns the rows of some files of a snapshot, in the table's columns, all of them nullable.

    Rows that the files' deletion vectors delete are never included.

    Args:
        files: rows of `snapshot.files`; by default all.
        with_position: whether the columns `FILE` and `ROW` are added.
        only: if given, the only rows to read, by file (one of `files`) and position. The caller must ensure that
            no vector deletes any of these rows, as is the case for positions from `with_position`.
        fills_missing: whether a column is null if a file lacks it, even if the log states values for it.

    Raises:
        DataFileMissingError: if a file is missing; a file that is deleted later fails the job that reads it.
        DataFileChangedError: if a file differs from the file that the log names.
        CorruptDeletionVectorError: if a deletion vector is unreadable, so that the table's rows are unknown.
    """
    chosen = snapshot.files if files is None else files
    check_files(log, snapshot, chosen, fills_missing=fills_missing)
    return _rows(_scan(spark, log, snapshot, with_position), log, snapshot, chosen, only)


def read_to_rewrite(
    spark: SparkSession,
    log: DeltaLog,
    snapshot: Snapshot,
    files: pa.Table | None = None,
    with_position: bool = False,
    only: Positions | None = None,
) -> DataFrame:
    """Like `read`; adds `ROW_ID` and `ROW_VERSION`, for `files.write`, if the table keeps row ids."""
    chosen = snapshot.files if files is None else files
    check_files(log, snapshot, chosen)
    scan = _scan(spark, log, snapshot, with_position)
    columns = materialized_columns(snapshot.metadata) if keeps_row_ids(snapshot) else None
    if columns is not None:
        given = zip(chosen["base_row_id"].to_pylist(), chosen["default_row_commit_version"].to_pylist(), strict=True)
        scan = replace(scan, ids=_Ids(columns, dict(zip(chosen["path"].to_pylist(), given, strict=True))))
    return _rows(scan, log, snapshot, chosen, only)


def check_files(log: DeltaLog, snapshot: Snapshot, files: pa.Table, *, fills_missing: bool = False) -> None:
    """Checks that files match the log and are in a location that the table may use; see `FileGuard.check`.

    A frame that `read` returned does not repeat the check when it is used again.

    Args:
        files: rows of `snapshot.files`.
        fills_missing: whether a file may lack columns that the log states values for.

    Raises:
        DataFileChangedError: if a file differs from the file that the log names.
        ExternalPathError, SymbolicLinkError: if a file is in a location that the table may not use.
    """
    try:
        log.guard.check(log.store, files, Content(snapshot.metadata, fills_missing), log.name, snapshot.version)
    except DataFileChangedError as error:
        raise commit_search.with_origin(log, snapshot, error) from error


def _scan(spark: SparkSession, log: DeltaLog, snapshot: Snapshot, with_position: bool) -> _Scan:
    schema = nullable_schema(type_widening.without_changes(column_mapping.without_mapping(snapshot.schema)))
    stored = _stored(snapshot)
    storable_schema.check_readable(stored, log.name)
    check_collations(spark, schema, log.name)
    return _Scan(spark, log.name, snapshot.version, log.store.root, schema, stored, with_position)


def _rows(scan: _Scan, log: DeltaLog, snapshot: Snapshot, files: pa.Table, only: Positions | None) -> DataFrame:
    try:
        scan = replace(scan, known=_known(files))
        groups = _groups(scan, log, snapshot, files, only)
        _check_values(scan, groups)
        parts = [_read_joined(scan, each) if _needs_join(scan, each) else _read_alike(scan, each) for each in groups]
    except (DataFileMissingError, DataFileChangedError) as error:
        raise commit_search.with_origin(log, snapshot, error) from error
    if not parts:
        return _empty(scan)
    paths = [column.parts for column in uncertain_floats(files, snapshot.metadata)]
    return stored_columns.without_pushdown(reduce(DataFrame.unionAll, parts), spark_schema(scan.schema), paths)


def _known(files: pa.Table) -> dict[str, tuple[int, int]]:
    columns = (files[name].to_pylist() for name in ("path", "size", "modification_time"))
    return {path: (size or 0, modified or 0) for path, size, modified in zip(*columns, strict=True)}


def _stored(snapshot: Snapshot) -> StructType:
    """Returns the columns that Spark reads in the data files."""
    metadata = snapshot.metadata
    readable = type_widening.readable_by_spark(snapshot.schema)
    if readable != snapshot.schema:
        metadata = replace(metadata, schema_string=readable.to_json())
    by_id = snapshot.properties.column_mapping_mode == "id"
    stored = nullable_schema(type_widening.without_changes(column_mapping.stored_schema(metadata, with_ids=by_id)))
    # Spark would pad a column that is declared as `char`, depending on the session's settings.
    return map_fields(stored, lambda each: each.with_metadata(**{CHAR_VARCHAR_KEY: None}) if has_char(each) else each)


def _empty(scan: _Scan) -> DataFrame:
    schema = scan.schema
    if scan.with_position:
        schema = schema.add(StructField(FILE, PrimitiveType("string")), StructField(ROW, PrimitiveType("long")))
    if scan.ids is not None:
        schema = schema.add(*(StructField(name, PrimitiveType("long")) for name in (ROW_ID, ROW_VERSION)))
    return scan.spark.createDataFrame([], spark_schema(schema))


def _groups(scan: _Scan, log: DeltaLog, snapshot: Snapshot, files: pa.Table, only: Positions | None) -> list[_Files]:
    """Returns the groups of files to read; a group is read whole, or without its deleted rows."""
    partitioning = [snapshot.schema.require(name, log.name) for name in snapshot.partition_columns]
    bitmaps = deletion_vectors.read_all(log.store, files, log.name) if only is None else only
    if not bitmaps:
        return _grouped(files, partitioning) if only is None else []
    is_partial = pc.is_in(files["path"], value_set=pa.array(bitmaps, pa.string()))
    groups = _grouped(files.filter(pc.invert(is_partial)), partitioning) if only is None else []
    partial = files.filter(is_partial)
    for some, rows in scan_vectors.filters(partial, bitmaps, only is not None, has_join=scan.ids is not None):
        of_path = dict(zip(some["path"].to_pylist(), rows.files, strict=True))
        for group in _grouped(some, partitioning, 0 if rows.way is Way.JOIN else _MOST_LITERAL_GROUPS):
            own = replace(rows, files=tuple(of_path[path] for path in group.paths))
            groups.append(replace(group, rows=own))
    return groups


def _grouped(
    files: pa.Table, partitioning: Sequence[StructField], most_literal: int = _MOST_LITERAL_GROUPS
) -> list[_Files]:
    """Groups files: all files with every column; the rest by partition values, or together if the values are many."""
    paths = files["path"].to_pylist()
    if not partitioning:
        return [_Files(tuple(paths))] if paths else []
    partition_columns = tuple(member.name for member in partitioning)
    # If a type was widened, the log's string takes precedence: a float's digits differ from the double's.
    in_file = not any(type_widening.TYPE_CHANGES in member.metadata for member in partitioning)
    whole: list[str] = []
    by_values: dict[tuple[str | None, ...], list[str]] = defaultdict(list)
    columns = (files["partition_values"].to_pylist(), files["tags"].to_pylist())
    for path, values, tags in zip(paths, *columns, strict=True):
        given = dict(values)
        texts = tuple(given.get(member.physical_name) for member in partitioning)
        # An empty string is null in the log, though earlier versions of this engine wrote an empty string to the file.
        if in_file and "" not in texts and dict(tags or ()).get(partitions.IN_FILE_TAG) == "true":
            whole.append(path)
        else:
            by_values[texts].append(path)
    groups = [_Files(tuple(group), partition_columns, (values,) * len(group)) for values, group in by_values.items()]
    if len(groups) > most_literal:
        groups = [
            _Files(
                tuple(path for group in groups for path in group.paths),
                partition_columns,
                tuple(values for group in groups for values in group.values),
            )
        ]
    return [_Files(tuple(whole)), *groups] if whole else groups


def _check_values(scan: _Scan, groups: Sequence[_Files]) -> None:
    """Checks the partition values that the rows of files get from the log.

    Raises:
        CorruptLogError: if a string is not a value of the column's type.
    """
    columns = next((group.columns for group in groups if group.columns), ())
    for position, name in enumerate(columns):
        paths = {
            values[position]: path
            for group in groups
            if group.columns
            for path, values in zip(group.paths, group.values, strict=True)
        }
        member = scan.schema.require(name, scan.table)
        wrong = partitions.unreadable(scan.spark, paths, member.type)
        if wrong is not None:
            path = decode_path(paths[wrong])
            raise in_data_file(not_a_value(wrong, member), path, scan.table, scan.version)


def _needs_join(scan: _Scan, files: _Files) -> bool:
    """Returns whether rows need a table of files for their file's values, ids or bitmap."""
    has_bitmaps = files.rows is not None and files.rows.way is Way.JOIN
    return scan.ids is not None or has_bitmaps or len(set(files.values)) > 1


def _read_alike(scan: _Scan, files: _Files) -> DataFrame:
    """Reads files whose missing columns have the same values in all files."""
    frame = _open(scan, files)
    values = dict(zip(files.columns, files.values[0], strict=True)) if files.values else {}
    is_same = scan.stored.sql_name == scan.schema.sql_name and not any(map(has_char, scan.schema))
    is_as_stored = is_same and not _voids(scan.schema) and not values
    if is_as_stored and not (files.rows or scan.with_position):
        return frame
    if files.rows is not None or scan.with_position:
        frame = frame.withColumn(_METADATA, frame.metadataColumn("_metadata"))
    if files.rows is not None:
        frame = frame.filter(files.rows.condition(scan.spark, f"{_METADATA}.file_size", f"{_METADATA}.row_index"))
    positions = {FILE: f"{_METADATA}.file_path", ROW: f"{_METADATA}.row_index"} if scan.with_position else {}
    if is_as_stored:
        return frames.select(frame, {**{name: quote(name) for name in scan.schema.names}, **positions})
    given = {name: F.lit(value).cast("string") for name, value in values.items()}
    return frames.select(frame, {**_table_columns(scan, given), **positions})


def _read_joined(scan: _Scan, files: _Files) -> DataFrame:
    """Reads files, and joins their missing columns, ids or bitmaps from a broadcast table."""
    frame = _open(scan, files)
    metadata = frame.metadataColumn("_metadata")
    present = [quote(stored.name) for member, stored in scan.pairs(files.columns) if not is_void(member.type)]
    present += [] if scan.ids is None else map(quote, scan.ids.columns)
    frame = frame.select(*present, metadata["file_path"].alias(FILE), metadata["row_index"].alias(ROW))
    known = scan.spark.createDataFrame(_table_of_files(scan, files))
    joined = frame.join(F.broadcast(known), FILE)
    if files.rows is not None:
        joined = joined.filter(files.rows.by_words(ROW))
    given = {name: F.col(f"__silt_value_{position}") for position, name in enumerate(files.columns)}
    columns = _table_columns(scan, given)
    positions = {FILE: FILE, ROW: ROW} if scan.with_position else {}
    return frames.select(joined, {**columns, **positions, **({} if scan.ids is None else scan.ids.of_rows())})


def _table_of_files(scan: _Scan, files: _Files) -> pa.Table:
    """Returns a row for each name by which Spark may report a file: missing values, ids, the bitmap."""
    values = files.values or ((),) * len(files.paths)
    rows = [
        (position, report, *given)
        for position, (path, given) in enumerate(zip(files.paths, values, strict=True))
        for report in reports(scan.root, path)
    ]
    positions, *texts = zip(*rows, strict=True)
    names = [FILE, *(f"__silt_value_{position}" for position in range(len(files.columns)))]
    table = pa.table([pa.array(column, pa.string()) for column in texts], names=names)
    if scan.ids is not None:
        ids = zip(*(scan.ids.given[files.paths[position]] for position in positions), strict=True)
        for name, column in zip((_FIRST_ID, _VERSION), ids, strict=True):
            table = table.append_column(name, pa.array(column, pa.int64()))
    return table if files.rows is None else table.append_column(WORDS, files.rows.words().take(pa.array(positions)))


def _table_columns(scan: _Scan, given: Mapping[str, Column]) -> dict[str, str | Column]:
    """Returns the table's columns by name, in order, from the log's strings in `given` or from the files."""
    by_name = {name.lower(): text for name, text in given.items()}
    columns: dict[str, str | Column] = {}
    for member, stored in scan.pairs():
        text = by_name.get(member.name.lower())
        if text is not None:
            column: str | Column = partitions.typed(text, member.type)
        else:
            column = F.lit(None) if is_void(member.type) else stored_columns.to_table_column(member, stored)
        if isinstance(column, Column) or has_char(member):
            as_column = F.expr(column) if isinstance(column, str) else column
            column = fitted(as_column, padded_type(member)).alias(member.name, metadata=dict(member.metadata))
        columns[member.name] = column
    return columns


def _open(scan: _Scan, files: _Files) -> DataFrame:
    stored = (stored for member, stored in scan.pairs(files.columns) if not is_void(member.type))
    held = StructType((*stored, *(() if scan.ids is None else scan.ids.stored)))
    reader = scan.spark.read.schema(spark_schema(held)).options(ignoreMissingFiles=False, ignoreCorruptFiles=False)
    listed = [ListedFile(absolute_name(scan.root, path), *scan.known[path]) for path in files.paths]
    try:
        with errors.mapped(scan.table, scan.version):
            if file_list.can_list(scan.spark, listed):
                with file_list.folder(listed) as folder:
                    return reader.options(**file_list.OPTIONS).parquet(folder)
            frame = reader.parquet(*(spark_path(scan.root, path) for path in files.paths))
            frame.schema  # noqa: B018 -- Spark Connect looks for the files only when the frame is analysed
            return frame
    except DataFileMissingError as error:
        raise _named_source(scan, files, error) from error


def _named_source(scan: _Scan, files: _Files, error: DataFileMissingError) -> DataFileMissingError:
    """Returns the error; names the source of the file if the table is a shallow clone."""
    reported = str(error.details.get("path", ""))
    elsewhere = [path for path in files.paths if is_absolute(decode_path(path))]
    missing = next((path for path in elsewhere if reported.endswith(spark_path(scan.root, path))), None)
    if missing is None:
        return error
    return DataFileMissingError(
        f"the data file {decode_path(missing)} is missing: the table is a shallow clone, and the file belonged to its "
        "source, where VACUUM or a drop has deleted it",
        remedy="Restore the source's file from a copy, or clone the source again; a deep clone has files of its own",
        table=scan.table,
        version=scan.version,
        details=error.details,
    )


def _voids(schema: StructType) -> bool:
    return any(is_void(member.type) for member in schema)
