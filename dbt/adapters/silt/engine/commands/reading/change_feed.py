"""Reads the rows that versions changed: from the change data feed, or by comparing the rows (decision 0086).

If a version removed files and added files, their rows are compared: equal rows cancel each other. The rows of all such
versions are compared in a single aggregation, grouped by version.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.commands.reading import scan
from dbt.adapters.silt.engine.commands.reading.positions import FILE, reports
from dbt.adapters.silt.engine.commands.spark.errors import SHARED_KEY
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
from dbt.adapters.silt.engine.kernel.table.collations import has_collation
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

_BROADCAST: Final = 256 * 2**20
"""The size of the deleted rows in bytes up to which their keys are sent to every task."""
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
_NUMBER, _ADDS, _REMAINS, _KEPT = "__silt_number", "__silt_adds", "__silt_remains", "__silt_kept"
_TEXT, _VALUE, _IMAGE, _UPDATE = "__silt_text_", "__silt_value_", "__silt_image", "__silt_update"


def read_changed(spark: SparkSession, log: DeltaLog, changed: ChangedVersions) -> DataFrame:
    """Returns the rows that versions changed, with the table's columns and `FEED_COLUMNS`.

    Raises:
        The errors of `read`.
    """
    end = changed.end
    recorded = [each for each in changed.versions if each.change_files]
    with_ids = _are_rows_tracked(changed)
    compared = [each for each in changed.versions if _must_compare(each, end.schema, with_ids)]
    others = {each.version for each in (*compared, *recorded)}
    exact = [each for each in changed.versions if each.version not in others]
    parts = [read(spark, log, end, exact)] if exact or not (compared or recorded) else []
    if compared:
        rows = read(spark, log, end, compared, with_ids)
        parts.append(_images(rows, end.schema) if with_ids else _without_cancelled_pairs(rows, end.schema))
    if recorded:
        rows = read(spark, log, end, recorded)
        parts.append(_without_cancelled_pairs(rows, end.schema) if _are_comparable(end.schema) else rows)
    return reduce(DataFrame.unionAll, parts)


def read_all(spark: SparkSession, log: DeltaLog, snapshot: Snapshot) -> DataFrame:
    """Returns all rows of a version as inserts of that version, with the table's columns and `FEED_COLUMNS`."""
    facts = {
        CHANGE_TYPE: F.lit(INSERT),
        COMMIT_VERSION: F.lit(snapshot.version).cast("bigint"),
        COMMIT_TIMESTAMP: F.timestamp_millis(F.lit(log.committed_at(snapshot))),
    }
    return scan.read(spark, log, snapshot).withColumns(facts)


@dataclass(frozen=True)
class Remaining:
    """The table's rows at the end of changes that may delete rows; `deleted_bytes` is an upper limit of their size."""

    rows: DataFrame
    deleted_bytes: int


def newest(rows: DataFrame, keys: Sequence[str], remaining: Remaining | None = None) -> DataFrame:
    """Returns the newest row of each key in rows with changes, as `UPSERT`, or as `DELETE` if the key is gone.

    If several rows of the table share a key, the row that changed last counts, and the row that remains if that row was
    deleted. The query fails with `SHARED_KEY` if that does not determine a row.

    Args:
        keys: the names of the columns of the key; null is a value.
        remaining: the rows that remain, if the changes may delete rows.
    """
    columns = [*map(quote, rows.columns)]
    is_added = F.col(CHANGE_TYPE).isin(*_ADDED)
    key = Window.partitionBy(*map(quote, keys))
    order = key.orderBy(F.col(COMMIT_VERSION).desc(), is_added.desc())
    ranked = rows.select(*columns, F.rank().over(order).alias(_RANK), F.row_number().over(order).alias(_NUMBER))
    latest = ranked.filter((F.col(_RANK) == 1) & (is_added | (F.col(_NUMBER) == 1)))
    found = latest.select(*columns, is_added.alias(_ADDS), F.lit(False).alias(_REMAINS))
    if remaining is not None:
        found = found.unionAll(_remaining(found, keys, remaining))
    numbers = [F.count_if(F.col(each)).over(key).alias(name) for each, name in ((_ADDS, _TIMES), (_REMAINS, _KEPT))]
    counted = found.select("*", *numbers)
    chosen = counted.filter(_is_unique(keys)).filter(F.col(_ADDS) | (F.col(_REMAINS) == (F.col(_KEPT) > 0)))
    kind = F.when(F.col(_ADDS) | F.col(_REMAINS), F.lit(UPSERT)).otherwise(F.lit(DELETE))
    return chosen.withColumn(CHANGE_TYPE, kind).select(*columns)


def _remaining(latest: DataFrame, keys: Sequence[str], remaining: Remaining) -> DataFrame:
    """Returns the table's rows whose key is among the deleted rows, with the facts of the deletion."""
    gone = latest.filter(~F.col(_ADDS))
    facts = [F.col(name) for name in (CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP)]
    named = [F.col(quote(name)).alias(f"{_VALUE}{number}") for number, name in enumerate(keys)]
    same = [F.col(quote(name)).eqNullSafe(F.col(f"{_VALUE}{number}")) for number, name in enumerate(keys)]
    wanted = gone.select(*named, *facts)
    # With a broadcast, Spark does not read the table if no key is gone.
    wanted = F.broadcast(wanted) if remaining.deleted_bytes <= _BROADCAST else wanted
    kept = remaining.rows.join(wanted, reduce(Column.__and__, same))
    columns = [*map(quote, latest.columns[:-2])]
    return kept.select(*columns, F.lit(False).alias(_ADDS), F.lit(True).alias(_REMAINS))


def _is_unique(keys: Sequence[str]) -> Column:
    """Returns a condition that fails if a key does not determine a row, and is true otherwise."""
    values = F.to_json(F.struct(*map(quote, keys)), {"ignoreNullFields": "false"})
    error = F.raise_error(F.concat(F.lit(SHARED_KEY), values)).cast("boolean")
    return F.when((F.col(_TIMES) <= 1) & (F.col(_KEPT) <= 1), F.lit(True)).otherwise(error)


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
    return changes.adds_rows and changes.removes_rows and _are_comparable(schema)


def _images(rows: DataFrame, schema: StructType) -> DataFrame:
    """Returns the changes of rows with ids: a row is unchanged if its id and its row commit version are unchanged, or
    its id and all values.
    """
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
    are_equal = are_versions_equal | _are_values_equal(before, after, schema)
    changed = pairs.filter(before.isNull() | after.isNull() | ~are_equal)
    found = changed.select(COMMIT_VERSION, COMMIT_TIMESTAMP, F.explode(images).alias(_IMAGE))
    image = F.col(_IMAGE)
    values = [image["row"][name].alias(name) for name in schema.names]
    return found.select(*values, image["type"].alias(CHANGE_TYPE), COMMIT_VERSION, COMMIT_TIMESTAMP)


def _image(row: Column, change_type: Column) -> Column:
    return F.when(row.isNotNull(), F.struct(change_type.alias("type"), row.alias("row")))


def _are_values_equal(before: Column, after: Column, schema: StructType) -> Column:
    """Returns whether the values of two rows are the same; False if they cannot be compared."""
    if not _are_comparable(schema) or any(_has_inner_map(member.type) for member in schema):
        return F.lit(False)
    found = F.lit(True)
    for member in schema:
        old, new = before[member.name], after[member.name]
        if _is_grouped_as_text(member.type):
            found &= old.cast("string").eqNullSafe(new.cast("string"))
        if isinstance(member.type, MapType):
            old, new = F.map_entries(old), F.map_entries(new)
        found &= old.eqNullSafe(new)
    return found


def _without_cancelled_pairs(rows: DataFrame, schema: StructType) -> DataFrame:
    """Returns the changes without equal rows that were removed and added, which cancel each other.

    The images of updates cancel only each other.
    """
    grouped_as_text = {index for index, member in enumerate(schema) if _is_grouped_as_text(member.type)}
    texts = [F.col(f"{_VALUE}{index}").cast("string").alias(f"{_TEXT}{index}") for index in grouped_as_text]
    # Spark replaces a grouping column in the whole aggregation by its normal form, so the values are copied before.
    copies = [F.col(quote(schema.names[index])).alias(f"{_VALUE}{index}") for index in grouped_as_text]
    copied = rows.select("*", *copies)
    values = [F.first(f"{_VALUE}{index}").alias(f"{_VALUE}{index}") for index in grouped_as_text]
    sign = F.when(F.col(CHANGE_TYPE).isin(*_ADDED), 1).otherwise(-1)
    is_update = F.col(CHANGE_TYPE).isin(UPDATE_PREIMAGE, UPDATE_POSTIMAGE).alias(_UPDATE)
    keys = [COMMIT_VERSION, COMMIT_TIMESTAMP, *map(quote, schema.names)]
    counted = copied.groupBy(*keys, is_update, *texts).agg(F.sum(sign).alias(_TIMES), *values)
    left = counted.filter(F.col(_TIMES) != 0)
    repeated = F.explode(F.array_repeat(F.lit(1), F.abs(_TIMES).cast("int")))
    columns = [
        F.col(f"{_VALUE}{index}").alias(name) if index in grouped_as_text else F.col(quote(name))
        for index, name in enumerate(schema.names)
    ]
    added = F.when(F.col(_UPDATE), F.lit(UPDATE_POSTIMAGE)).otherwise(F.lit(INSERT))
    removed = F.when(F.col(_UPDATE), F.lit(UPDATE_PREIMAGE)).otherwise(F.lit(DELETE))
    kind = F.when(F.col(_TIMES) > 0, added).otherwise(removed).alias(CHANGE_TYPE)
    return left.select(*columns, kind, COMMIT_VERSION, COMMIT_TIMESTAMP, repeated.alias(_IMAGE)).drop(_IMAGE)


def _is_grouped_as_text(member: DataType) -> bool:
    """Returns whether different values may be grouped together: 0.0 and -0.0, maps in another order, and strings that a
    collation compares as equal.
    """
    inner = tuple(_types_in(member))
    names = (each.name for each in inner if isinstance(each, PrimitiveType))
    return any(isinstance(each, MapType) or each in _FLOATS for each in inner) or has_collation(names)


def _are_comparable(schema: StructType) -> bool:
    return all(_VARIANT not in _types_in(member.type) for member in schema)


def _has_inner_map(member: DataType) -> bool:
    """Returns whether a value contains a map in another value, which Spark cannot compare by `=`."""
    return any(isinstance(each, MapType) for each in _types_in(member) if each is not member)


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
