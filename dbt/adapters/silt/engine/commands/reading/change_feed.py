"""Reads the rows that versions changed: from the change data feed, or by comparing the rows (decision 0086).

If a version removed files and added files, their rows are compared: equal rows cancel each other. The rows of all such
versions are compared in a single aggregation, grouped by version.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.commands.reading import scan
from dbt.adapters.silt.engine.commands.reading.positions import FILE, reports
from dbt.adapters.silt.engine.commands.spark.types import spark_schema
from dbt.adapters.silt.engine.commands.writing.row_ids import ROW_ID, ROW_VERSION
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.scan.change_feed import (
    DELETE,
    FEED_COLUMNS,
    INSERT,
    UPDATE_POSTIMAGE,
    UPDATE_PREIMAGE,
    ChangedFile,
    ChangedVersions,
    VersionChanges,
    changed_files,
)
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, RemoveFile
from dbt.adapters.silt.engine.kernel.table.active_files import files_table
from dbt.adapters.silt.engine.kernel.table.schema import (
    CHANGE_TYPE,
    COMMIT_TIMESTAMP,
    COMMIT_VERSION,
    ArrayType,
    DataType,
    MapType,
    PrimitiveType,
    StructType,
    nullable_schema,
)
from dbt.adapters.silt.engine.kernel.transaction.row_tracking import keeps_row_ids, materialized_columns

_AT = "__silt_at"

UPSERT: Final = "upsert"
"""The change type of the newest row of a key, among `newest` rows; a key that is gone has `DELETE`."""

_ADDED = (INSERT, UPDATE_POSTIMAGE)
_FLOATS = (PrimitiveType("float"), PrimitiveType("double"))
_VARIANT = PrimitiveType("variant")


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


_BEFORE, _AFTER, _TIMES, _RANK = "__silt_before", "__silt_after", "__silt_times", "__silt_rank"
_TEXT, _VALUE, _IMAGE = "__silt_text_", "__silt_value_", "__silt_image"


def read_changed(spark: SparkSession, log: DeltaLog, changed: ChangedVersions) -> DataFrame:
    """Returns the rows that versions changed, with the table's columns and `FEED_COLUMNS`.

    Raises:
        The errors of `read`.
    """
    end = changed.end
    with_ids = _are_rows_tracked(changed)
    compared = [each for each in changed.versions if _must_compare(each, end.schema, with_ids)]
    exact = [each for each in changed.versions if not _must_compare(each, end.schema, with_ids)]
    parts = [read(spark, log, end, exact)] if exact or not compared else []
    if compared:
        rows = read(spark, log, end, compared, with_ids)
        parts.append(_images(rows, end.schema) if with_ids else _without_cancelled_pairs(rows, end.schema))
    return reduce(DataFrame.unionAll, parts)


def read_all(spark: SparkSession, log: DeltaLog, snapshot: Snapshot) -> DataFrame:
    """Returns all rows of a version as inserts of that version, with the table's columns and `FEED_COLUMNS`."""
    facts = {
        CHANGE_TYPE: F.lit(INSERT),
        COMMIT_VERSION: F.lit(snapshot.version).cast("bigint"),
        COMMIT_TIMESTAMP: F.timestamp_millis(F.lit(log.committed_at(snapshot))),
    }
    return scan.read(spark, log, snapshot).withColumns(facts)


def newest(rows: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Returns the newest row of each key in rows with changes, as `UPSERT`, or as `DELETE` if the key is gone.

    A key that several rows of the table have, contrary to its purpose, keeps several rows.

    Args:
        keys: the names of the columns of the key; null is a value.
    """
    is_added = F.col(CHANGE_TYPE).isin(*_ADDED)
    order = Window.partitionBy(*map(quote, keys)).orderBy(F.col(COMMIT_VERSION).desc(), is_added.desc())
    latest = rows.withColumn(_RANK, F.rank().over(order)).filter(F.col(_RANK) == 1)
    kind = F.when(is_added, F.lit(UPSERT)).otherwise(F.lit(DELETE))
    return latest.withColumn(CHANGE_TYPE, kind).select(*map(quote, rows.columns))


def _are_rows_tracked(changed: ChangedVersions) -> bool:
    """Returns whether equal row ids mean the same row in the whole range, and all files have row ids."""
    if not keeps_row_ids(changed.end):
        return False
    columns = materialized_columns(changed.end.metadata)
    if any(materialized_columns(each) != columns for each in changed.described):
        return False
    return all(file.base_row_id is not None for each in changed.versions for file in _files(each))


def _files(changes: VersionChanges) -> Iterator[AddFile | RemoveFile]:
    yield from changes.inserted
    yield from changes.deleted
    yield from (each.after for each in changes.revised)


def _must_compare(changes: VersionChanges, schema: StructType, with_ids: bool) -> bool:
    if with_ids:
        kinds = (changes.inserted, changes.deleted, changes.revised)
        return sum(map(bool, kinds)) > 1
    is_rewritten = bool(changes.deleted) and bool(changes.inserted or changes.revised)
    return is_rewritten and all(_is_comparable(member.type) for member in schema)


def _images(rows: DataFrame, schema: StructType) -> DataFrame:
    """Returns the changes of rows with ids: a row is unchanged if its id and its row commit version are unchanged."""
    row = F.struct(*(F.col(name) for name in (ROW_VERSION, *map(quote, schema.names))))
    is_added = F.col(CHANGE_TYPE).isin(*_ADDED)
    pairs = rows.groupBy(COMMIT_VERSION, COMMIT_TIMESTAMP, ROW_ID).agg(
        F.first(F.when(~is_added, row), ignorenulls=True).alias(_BEFORE),
        F.first(F.when(is_added, row), ignorenulls=True).alias(_AFTER),
    )
    before, after = F.col(_BEFORE), F.col(_AFTER)
    are_versions_equal = before[ROW_VERSION].eqNullSafe(after[ROW_VERSION])
    images = F.array_compact(
        F.array(
            _image(before, F.when(after.isNull(), F.lit(DELETE)).otherwise(F.lit(UPDATE_PREIMAGE))),
            _image(after, F.when(before.isNull(), F.lit(INSERT)).otherwise(F.lit(UPDATE_POSTIMAGE))),
        )
    )
    changed = pairs.filter(before.isNull() | after.isNull() | ~are_versions_equal)
    found = changed.select(COMMIT_VERSION, COMMIT_TIMESTAMP, F.explode(images).alias(_IMAGE))
    image = F.col(_IMAGE)
    values = [image["row"][name].alias(name) for name in schema.names]
    return found.select(*values, image["type"].alias(CHANGE_TYPE), COMMIT_VERSION, COMMIT_TIMESTAMP)


def _image(row: Column, change_type: Column) -> Column:
    return F.when(row.isNotNull(), F.struct(change_type.alias("type"), row.alias("row")))


def _without_cancelled_pairs(rows: DataFrame, schema: StructType) -> DataFrame:
    """Returns the changes of rows without ids: equal rows that were removed and added cancel each other."""
    grouped_as_text = {index for index, member in enumerate(schema) if _is_grouped_as_text(member.type)}
    texts = [F.col(f"{_VALUE}{index}").cast("string").alias(f"{_TEXT}{index}") for index in grouped_as_text]
    # Spark replaces a grouping column in the whole aggregation by its normal form, so the values are copied before.
    copies = [F.col(quote(schema.names[index])).alias(f"{_VALUE}{index}") for index in grouped_as_text]
    copied = rows.select("*", *copies)
    values = [F.first(f"{_VALUE}{index}").alias(f"{_VALUE}{index}") for index in grouped_as_text]
    sign = F.when(F.col(CHANGE_TYPE).isin(*_ADDED), 1).otherwise(-1)
    keys = [COMMIT_VERSION, COMMIT_TIMESTAMP, *map(quote, schema.names)]
    counted = copied.groupBy(*keys, *texts).agg(F.sum(sign).alias(_TIMES), *values)
    left = counted.filter(F.col(_TIMES) != 0)
    repeated = F.explode(F.array_repeat(F.lit(1), F.abs(_TIMES).cast("int")))
    columns = [
        F.col(f"{_VALUE}{index}").alias(name) if index in grouped_as_text else F.col(quote(name))
        for index, name in enumerate(schema.names)
    ]
    kind = F.when(F.col(_TIMES) > 0, F.lit(INSERT)).otherwise(F.lit(DELETE)).alias(CHANGE_TYPE)
    return left.select(*columns, kind, COMMIT_VERSION, COMMIT_TIMESTAMP, repeated.alias(_IMAGE)).drop(_IMAGE)


def _is_grouped_as_text(member: DataType) -> bool:
    """Returns whether different values, such as 0.0 and -0.0, or maps in another order, may be grouped together."""
    return any(isinstance(each, MapType) or each in _FLOATS for each in _types_in(member))


def _is_comparable(member: DataType) -> bool:
    return _VARIANT not in _types_in(member)


def _types_in(data_type: DataType) -> Iterator[DataType]:
    """Yields a type and all types within it."""
    yield data_type
    inner: Sequence[DataType] = ()
    match data_type:
        case ArrayType():
            inner = (data_type.element_type,)
        case MapType():
            inner = (data_type.key_type, data_type.value_type)
        case StructType():
            inner = tuple(member.type for member in data_type)
    for each in inner:
        yield from _types_in(each)
