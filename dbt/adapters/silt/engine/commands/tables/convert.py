"""Runs CONVERT TO DELTA: turns a folder of Parquet files into a table; writes and moves no data file.

A single listing finds the files. It may miss a file that appears while it runs: the file is then not part of the table,
and VACUUM deletes it eventually, so no other program should write into the folder meanwhile.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.commands.commit import commit
from dbt.adapters.silt.engine.commands.spark import partitions
from dbt.adapters.silt.engine.commands.spark.types import spark_type
from dbt.adapters.silt.engine.commands.target import Outcome, WriteSettings
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.files import parquet_schema, statistics
from dbt.adapters.silt.engine.kernel.files.footer_check import read_footer
from dbt.adapters.silt.engine.kernel.files.statistics import FileStatistics
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.progress import Progress, counted
from dbt.adapters.silt.engine.kernel.storage.beneath import link_error
from dbt.adapters.silt.engine.kernel.storage.store import FileStatus, ObjectMissing, Store, Tree, joined
from dbt.adapters.silt.engine.kernel.table import storable_schema
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, Metadata
from dbt.adapters.silt.engine.kernel.table.features import protocol_for
from dbt.adapters.silt.engine.kernel.table.paths import LOG_FOLDER, is_absolute, log_path
from dbt.adapters.silt.engine.kernel.table.properties import TableProperties
from dbt.adapters.silt.engine.kernel.table.schema import PrimitiveType, StructField, StructType
from dbt.adapters.silt.engine.kernel.table.storable_schema import check_storable
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet

OPERATION: Final = "CONVERT"

_HIDDEN = ("_", ".")


@dataclass(frozen=True)
class _Found:
    """A data file, and the unescaped partition values in the names of its folders; None for null."""

    status: FileStatus
    values: tuple[tuple[str, str | None], ...]


def convert(
    spark: SparkSession,
    log: DeltaLog,
    partitioning: Sequence[StructField],
    settings: WriteSettings,
    with_statistics: bool = True,
) -> Outcome:
    """Turns the folder into a table; does nothing if it is a table already.

    Args:
        log: the log of the future table, in the folder.
        partitioning: the columns in the names of folders, in the order of the folders.

    Raises:
        NotATableError: if the folder does not exist or contains no Parquet file.
        InvalidStatementError: if the folders and the statement do not name the same partition columns, or a file's path
            begins like a URI.
        TypeMismatchError: if the columns of two files are of different types; names both files.
        ValueNotCastableError: if a folder's value is not of its column's type.
        TableDamagedError: if a file is not a Parquet file.
        SymbolicLinkError: if a file or a folder is a symbolic link.
        ConcurrentCreateError: if another writer created the table first.
    """
    if log.exists():
        return Outcome(OPERATION, log.name, log.snapshot().version, attempts=0)
    found = _data_files(log)
    _check_paths(found, log.name)
    _check_partitioning(found, partitioning, log.name)
    schema = _schema(log, found, partitioning, settings.progress)
    check_storable(schema, log.name)
    storable_schema.check_names(schema, log.name)
    names = tuple(schema.require(member.name).name for member in partitioning)
    partitions.check_partitionable(schema, names, log.name)
    gathered = _statistics(log, found, schema, names, settings.progress) if with_statistics else None
    adds = _adds(spark, log, found, schema, names, gathered)
    metadata = Metadata(log.clock.new_id(), schema.to_json(), names, created_time=log.clock.now_ms())
    parameters = {
        "numFiles": len(adds),
        "partitionedBy": json.dumps(list(names), ensure_ascii=False),
        "collectStats": with_statistics,
        "sourceFormat": "parquet",
    }
    changes = Changes(
        Operation(OPERATION, parameters, {"numConvertedFiles": str(len(adds))}),
        adds=adds,
        metadata=metadata,
        protocol=protocol_for(schema, {}),
    )
    log.store.make_folder(LOG_FOLDER)
    committed = commit(log, None, changes, ReadSet(), settings)
    return Outcome(OPERATION, log.name, committed.version, files_added=len(adds), attempts=committed.attempts)


def _data_files(log: DeltaLog) -> list[_Found]:
    try:
        found = list(_listed(log.store, log.store.tree(), "", ()))
    except ObjectMissing as error:
        raise errors.NotATableError("the folder does not exist", remedy="Check the path", table=log.name) from error
    if not found:
        raise errors.NotATableError("the folder contains no Parquet file", remedy="Check the path", table=log.name)
    return found


def _listed(store: Store, folders: Tree, folder: str, values: tuple[tuple[str, str | None], ...]) -> Iterator[_Found]:
    """Yields the files below a folder that are not hidden; names with `_` or `.` at the beginning are hidden.

    Raises:
        SymbolicLinkError: if a file or a folder is a symbolic link, which no reader of the table would follow.
    """
    files, names = folders.content(folder)
    for link in store.list_links(folder):
        if not link.startswith(_HIDDEN):
            raise link_error(f"{store.root}/{joined(folder, link)}")
    for status in files:
        if not status.name.startswith(_HIDDEN):
            yield _Found(status, values)
    for name in names:
        column, sign, value = name.partition("=")
        below = joined(folder, name)
        if sign:
            text = None if value == partitions.SPARK_NULL else unquote(value)
            yield from _listed(store, folders, below, (*values, (unquote(column), text)))
        elif not name.startswith(_HIDDEN):
            yield from _listed(store, folders, below, values)


def _check_paths(found: Sequence[_Found], table: str) -> None:
    """Rejects paths that readers of a log would parse as a URI with a scheme (`a:b.parquet`)."""
    for file in found:
        if is_absolute(file.status.path):
            raise errors.InvalidStatementError(
                f"the path {file.status.path} begins like the URI of another storage, up to its colon",
                remedy="Rename the file or the folder, without the colon",
                table=table,
            )


def _check_partitioning(found: Sequence[_Found], partitioning: Sequence[StructField], table: str) -> None:
    wanted = [member.name for member in partitioning]
    for file in found:
        given = [name for name, _ in file.values]
        if [name.lower() for name in given] != [name.lower() for name in wanted]:
            clause = ", ".join(f"{quote(name)} string" for name in given)
            raise errors.InvalidStatementError(
                f"{file.status.path} lies in folders of the partition columns [{', '.join(given)}], and the statement "
                f"names [{', '.join(wanted)}]",
                remedy=f"Add `PARTITIONED BY ({clause})`, with the columns' types" if given else "Leave them out",
                table=table,
            )


def _schema(
    log: DeltaLog, found: Sequence[_Found], partitioning: Sequence[StructField], progress: Progress
) -> StructType:
    """Returns the columns of all files, with the partition columns in their positions in the files, or at the end."""
    paths = [file.status.path for file in found]
    with ThreadPoolExecutor(log.store.files_at_once) as pool:
        read = pool.map(functools.partial(_file_schema, log.store), paths)
        schemas = list(counted(read, progress, "schemas read", len(paths)))
    merged, first_with = StructType(), dict[str, str]()
    for path, schema in zip(paths, schemas, strict=True):
        try:
            merged = parquet_schema.merged(merged, schema)
        except errors.TypeMismatchError as error:
            other = next(first_with[each.name.lower()] for each in schema if _differs(merged, each))
            raise errors.TypeMismatchError(
                f"{error.problem}: {other} and {path}", remedy=error.action, table=log.name
            ) from error
        for member in schema:
            first_with.setdefault(member.name.lower(), path)
    for member in partitioning:
        there = merged.field(member.name)
        typed = StructField(member.name if there is None else there.name, member.type, True, member.metadata)
        merged = merged.add(typed) if there is None else merged.replace(there.name, typed)
    return merged


def _differs(merged: StructType, member: StructField) -> bool:
    there = merged.field(member.name)
    if there is None:
        return False
    try:
        parquet_schema.merged(StructType((there,)), StructType((member,)))
    except errors.TypeMismatchError:
        return True
    return False


def _file_schema(store: Store, path: str) -> StructType:
    try:
        with store.open_input(path) as source:
            return parquet_schema.of_footer(read_footer(source))
    except pa.ArrowInvalid as error:
        raise errors.TableDamagedError(
            f"{path} is not a Parquet file ({error})", remedy="Move it out of the folder, or name it with a leading `_`"
        ) from error
    except pa.ArrowNotImplementedError as error:
        raise errors.TypeMismatchError(
            f"{path} has a type that a table's column cannot have ({error})",
            remedy="Write the file again with another type",
        ) from error
    except errors.TypeMismatchError as error:
        raise errors.TypeMismatchError(f"{path}: {error.problem}", remedy=error.action) from error


def _statistics(
    log: DeltaLog, found: Sequence[_Found], schema: StructType, names: tuple[str, ...], progress: Progress
) -> Mapping[str, FileStatistics]:
    paths = [file.status.path for file in found]
    return statistics.from_footers(log.store, paths, schema, TableProperties({}), names, progress)


def _adds(
    spark: SparkSession,
    log: DeltaLog,
    found: Sequence[_Found],
    schema: StructType,
    names: tuple[str, ...],
    gathered: Mapping[str, FileStatistics] | None,
) -> tuple[AddFile, ...]:
    texts = [
        _log_values(spark, schema.require(name), {file.values[at][1] for file in found}, log.name)
        for at, name in enumerate(names)
    ]
    adds = []
    for file in found:
        path = file.status.path
        values = {name: texts[at][file.values[at][1]] for at, name in enumerate(names)}
        adds.append(
            AddFile(
                path=log_path(path),
                partition_values=values,
                size=file.status.size,
                modification_time=file.status.modified_ms,
                stats=None if gathered is None else gathered[path].json,
            )
        )
    return tuple(adds)


def _log_values(
    spark: SparkSession, member: StructField, texts: set[str | None], table: str
) -> Mapping[str | None, str | None]:
    """Returns the log's form of each string in a folder's name, which must be a value of the column's type."""
    given = sorted(text for text in texts if text is not None)
    if not given or member.type == PrimitiveType("string"):
        return {text: text for text in texts}
    kind = spark_type(member.type)
    frame = spark.createDataFrame([(text,) for text in given], "text string")
    value = F.col("text").try_cast(kind)
    spelled = F.unix_micros(value) if member.type == PrimitiveType("timestamp") else value
    rows = frame.select("text", spelled.cast("string").alias("value")).collect()
    for row in rows:
        if not row.value:
            raise errors.ValueNotCastableError(
                f"the value of the folder `{member.name}={row.text}` is not of type {kind.simpleString()}",
                remedy="Give the column another type in PARTITIONED BY; nothing was written",
                table=table,
            )
    return {None: None} | {row.text: partitions.log_value(row.value, member.type) for row in rows}
