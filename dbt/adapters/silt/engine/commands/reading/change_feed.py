"""Reads the change data feed: the rows that versions changed, with change type, version and time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.commands.reading import scan
from dbt.adapters.silt.engine.commands.reading.positions import FILE, reports
from dbt.adapters.silt.engine.commands.spark.types import spark_schema
from dbt.adapters.silt.engine.commands.writing.row_ids import ROW_ID, ROW_VERSION
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.scan.change_feed import FEED_COLUMNS, ChangedFile, VersionChanges, changed_files
from dbt.adapters.silt.engine.kernel.table.active_files import files_table
from dbt.adapters.silt.engine.kernel.table.schema import CHANGE_TYPE, COMMIT_TIMESTAMP, COMMIT_VERSION, nullable_schema

_AT = "__silt_at"


def read(
    spark: SparkSession, log: DeltaLog, end: Snapshot, changes: Iterable[VersionChanges], with_ids: bool = False
) -> DataFrame:
    """Returns the rows that versions changed, with the table's columns and `FEED_COLUMNS`.

    Args:
        end: the version that determines the columns of the rows.
        with_ids: whether `ROW_ID` and `ROW_VERSION` are added; all files of the changes must have row ids.

    Raises:
        DataFileMissingError: if a file is missing, for example after a VACUUM.
        CorruptLogError: if a version removed files of a partitioned table without recording their partitions.
    """
    found = [file for each in changes for file in changed_files(log, each, end)]
    parts = [_read_alike(spark, log, end, files, with_ids) for files in _separated(found)]
    if parts:
        return reduce(DataFrame.unionAll, parts)
    empty = nullable_schema(end.schema).add(*FEED_COLUMNS)
    return spark.createDataFrame([], spark_schema(empty))


def _separated(files: Sequence[ChangedFile]) -> Iterator[list[ChangedFile]]:
    """Yields files to read together: of the same kind, and each path once, because paths distinguish the rows."""
    rounds: dict[tuple[tuple[bool, bool], int], list[ChangedFile]] = defaultdict(list)
    seen: dict[tuple[tuple[bool, bool], str], int] = defaultdict(int)
    for each in files:
        rounds[each.kind, seen[each.kind, each.file.path]].append(each)
        seen[each.kind, each.file.path] += 1
    yield from rounds.values()


def _read_alike(
    spark: SparkSession, log: DeltaLog, end: Snapshot, files: Sequence[ChangedFile], with_ids: bool
) -> DataFrame:
    rows_of = scan.read_to_rewrite if with_ids else scan.read
    schema = end.schema
    if files[0].change_type is None:
        schema = schema.add(FEED_COLUMNS.require(CHANGE_TYPE))
    held = replace(end, metadata=replace(end.metadata, schema_string=schema.to_json()))
    table = files_table(each.file for each in files)
    only = None if files[0].rows is None else {each.file.path: each.rows for each in files if each.rows is not None}
    if len({each.facts for each in files}) == 1:
        change_type, version, at = files[0].facts
        frame = rows_of(spark, log, held, table, only=only)
        given = F.lit(change_type) if change_type is not None else F.col(CHANGE_TYPE)
        return _with_facts(frame, end, given, F.lit(version), F.lit(at))
    frame = rows_of(spark, log, held, table, with_position=True, only=only)
    joined = frame.join(F.broadcast(_table_of_facts(spark, log, files)), FILE)
    return _with_facts(joined, end, F.col(CHANGE_TYPE), F.col(COMMIT_VERSION), F.col(_AT))


def _table_of_facts(spark: SparkSession, log: DeltaLog, files: Sequence[ChangedFile]) -> DataFrame:
    """Returns a table with a row for each name by which Spark may report a file."""
    named = [(name, each) for each in files for name in reports(log.store.root, each.file.path)]
    columns = {
        FILE: pa.array([name for name, _ in named], pa.string()),
        COMMIT_VERSION: pa.array([each.version for _, each in named], pa.int64()),
        _AT: pa.array([each.timestamp_ms for _, each in named], pa.int64()),
    }
    if files[0].change_type is not None:
        columns[CHANGE_TYPE] = pa.array([each.change_type for _, each in named], pa.string())
    return spark.createDataFrame(pa.table(columns))


def _with_facts(frame: DataFrame, end: Snapshot, change_type: Column, version: Column, at: Column) -> DataFrame:
    return frame.select(
        *(quote(name) for name in end.schema.names),
        *(name for name in (ROW_ID, ROW_VERSION) if name in frame.columns),
        change_type.alias(CHANGE_TYPE),
        version.cast("bigint").alias(COMMIT_VERSION),
        F.timestamp_millis(at).alias(COMMIT_TIMESTAMP),
    )
