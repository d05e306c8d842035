"""Runs ALTER TABLE ... ADD, DROP, ALTER, CHANGE and RENAME COLUMN.

Without column mapping, a data file identifies its columns by name. So RENAME rewrites all rows of the table, in a
single commit, and so does DROP, because the old values must not reappear when the name is used again. With column
mapping (`delta.columnMapping.mode` = `name`), neither touches a data file. A new type rewrites the rows as well, unless
`delta.enableTypeWidening` is true and the type is wider, and so does a new column with a default or a generated value.
All other changes affect only the metadata.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.commands.reading import scan
from dbt.adapters.silt.engine.commands.rows import file_changes, file_rows
from dbt.adapters.silt.engine.commands.rows.file_changes import FileChanges
from dbt.adapters.silt.engine.commands.spark.partitions import check_partitionable
from dbt.adapters.silt.engine.commands.spark.types import spark_type
from dbt.adapters.silt.engine.commands.tables import column_types, schema_edits, stats_columns
from dbt.adapters.silt.engine.commands.tables.metadata_commit import MetadataChange, check_rows, commit_metadata
from dbt.adapters.silt.engine.commands.tables.schema_edits import spelled
from dbt.adapters.silt.engine.commands.target import Outcome, Target, WriteSettings, with_schema
from dbt.adapters.silt.engine.commands.writing import files, generated, row_ids
from dbt.adapters.silt.engine.commands.writing import rules as table_rules
from dbt.adapters.silt.engine.commands.writing.checks import not_null_checks, table_checks
from dbt.adapters.silt.engine.commands.writing.store_assignment import assign
from dbt.adapters.silt.engine.kernel.errors import InvalidStatementError
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.scan import skipping
from dbt.adapters.silt.engine.kernel.table import clustering, expressions, keys, storable_schema
from dbt.adapters.silt.engine.kernel.table.actions import Json, Metadata
from dbt.adapters.silt.engine.kernel.table.column_mapping import is_mapped
from dbt.adapters.silt.engine.kernel.table.properties import TableProperties
from dbt.adapters.silt.engine.kernel.table.schema import (
    CURRENT_DEFAULT,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    nullable_schema,
)
from dbt.adapters.silt.engine.kernel.table.storable_schema import check_storable
from dbt.adapters.silt.engine.kernel.transaction.changes import Operation, ReadSet, as_json
from dbt.adapters.silt.engine.sql.ast import ColumnChange, Name, NewColumn


def add_columns(
    spark: SparkSession, target: Target, columns: Sequence[NewColumn], if_not_exists: bool, settings: WriteSettings
) -> Outcome:
    """Adds columns, at the end or at the positions that they name.

    Existing rows get null, or the column's default or generated value, for which all rows of the table are rewritten.

    Raises:
        InvalidStatementError: if a column exists already, or a NOT NULL column without value is added to a table with
            rows.
        ColumnNotFoundError: if a struct, or the column of AFTER, does not exist.
        TypeMismatchError, StatementSyntaxError, InvalidNameError: if a column's type or name is not allowed.
        ConcurrentModificationError: if another writer changed the table's metadata.
    """
    target.check_writable()
    schema, made = target.snapshot.schema, []
    for column in columns:
        if if_not_exists and schema_edits.find(schema, column.path, target.name) is not None:
            continue
        if not column.nullable and not _has_value(column) and target.snapshot.num_files:
            raise InvalidStatementError(
                f"the column `{spelled(column.path)}` cannot be NOT NULL: existing rows have no value for it",
                remedy="Add it without NOT NULL, fill it, then use `alter column ... set not null`",
                table=target.name,
            )
        schema = schema_edits.added(schema, column, target.name)
        made.append(_described(schema_edits.require(schema, column.path, target.name), column.path))
    operation = Operation("ADD COLUMNS", {"columns": as_json(made)})
    generated.check_defaults(spark, schema, target.name)
    generated.check_expressions(spark, schema, target.name)
    metadata = _checked_metadata(target, schema)
    if made and any(map(_has_value, columns)):
        frame = scan.read_to_rewrite(spark, target.log, target.snapshot)
        return _finish(target, operation, metadata, frame, settings)
    reads = ReadSet(whole_table=any(not column.nullable for column in columns))
    return commit_metadata(target, MetadataChange(operation, metadata, reads), settings)


def _has_value(column: NewColumn) -> bool:
    """Returns whether existing rows get a value in the column."""
    return column.default is not None or column.generated is not None


def drop_columns(
    spark: SparkSession, target: Target, paths: Sequence[Name], if_exists: bool, settings: WriteSettings
) -> Outcome:
    """Drops columns. Without column mapping it rewrites all rows, so it costs as much as writing the table.

    Raises:
        ColumnNotFoundError: if a column does not exist and `if_exists` is False.
        InvalidStatementError: if a constraint, a generated column, the partitioning or the clustering uses a column, or
            no column would remain.
        ConcurrentModificationError: if another writer changed any row of the table, or its metadata.
    """
    target.check_writable()
    schema, gone = target.snapshot.schema, []
    for path in paths:
        if if_exists and schema_edits.find(schema, path, target.name) is None:
            continue
        if len(path) == 1 and path[0].lower() in _folded(target.snapshot.partition_columns):
            raise InvalidStatementError(
                f"the column `{path[0]}` cannot be dropped: the table is partitioned by it",
                remedy="Re-create the table with `create or replace table`",
                table=target.name,
            )
        _check_not_clustered_by(target, path)
        schema = schema_edits.dropped(schema, path, target.name)
        gone.append(path)
    generated.check_not_used(spark, target.snapshot.schema, (path[0] for path in gone), target.name)
    keys.check_droppable(target.snapshot.metadata, gone, target.name)
    operation = Operation("DROP COLUMNS", {"columns": as_json([spelled(path) for path in gone])})
    metadata = keys.without_columns(stats_columns.without(_checked_metadata(target, schema), gone), gone)
    _check_conditions(spark, target, metadata)
    frame = None if is_mapped(metadata.configuration) else _without_columns(spark, target, gone)
    return _finish(target, operation, metadata, frame, settings)


def change_columns(
    spark: SparkSession, target: Target, changes: Sequence[ColumnChange], settings: WriteSettings
) -> Outcome:
    """Changes columns: names, types, comments, positions and NOT NULL.

    A new name without column mapping rewrites all rows of the table, and so does a new type, unless
    `delta.enableTypeWidening` is true and the type is wider: this costs as much as writing the table. All other changes
    affect only metadata. SET NOT NULL uses the statistics, and reads only files that may contain a null.

    Raises:
        ColumnNotFoundError: if a column does not exist.
        InvalidStatementError: if another column has the new name, or a constraint or a generated column uses it.
        TypeMismatchError, ValueNotCastableError: if the new type cannot hold the column's values.
        NotNullViolationError: if a column for SET NOT NULL contains a null.
        ConcurrentModificationError: if another writer changed the table's metadata, or rows that the change depends on.
    """
    target.check_writable()
    schema = target.snapshot.schema
    others = (change.path[0] for change in changes if change.new_name is not None or change.type is not None)
    generated.check_not_used(spark, schema, others, target.name)
    for change in changes:
        schema = _changed(schema, change, target)
    if any(change.default or change.type for change in changes):
        generated.check_defaults(spark, schema, target.name)
    new_names = _new_names(changes)
    under_new_names = _renamed(target.snapshot.schema, new_names, target.name)
    schema = _renamed(schema, new_names, target.name)
    metadata = _renamed_metadata(target, _checked_metadata(target, schema), new_names)
    operation = _operation(changes, schema)
    moves_files = under_new_names != target.snapshot.schema and not is_mapped(metadata.configuration)
    for path in new_names if moves_files else ():
        _check_not_clustered_by(target, path)
    if new_names or any(change.type is not None for change in changes):
        _check_conditions(spark, target, metadata)
    if moves_files or any(column_types.needs_rewrite(change, target) for change in changes):
        return _finish(target, operation, metadata, _renamed_columns(spark, target, under_new_names), settings)
    _check_nulls(spark, target, changes)
    rests_on_rows = any(change.nullable is False for change in changes)
    return commit_metadata(target, MetadataChange(operation, metadata, ReadSet(whole_table=rests_on_rows)), settings)


def _checked_metadata(target: Target, schema: StructType) -> Metadata:
    check_storable(schema, target.name, target.snapshot.schema)
    storable_schema.check_names(schema, target.name)
    return with_schema(target, schema)


def _check_not_clustered_by(target: Target, path: Name) -> None:
    """Checks that files are not clustered by a column, or by a column inside of it."""
    physical = clustering.physical_path(target.snapshot.schema, path)
    if any(column[: len(physical)] == physical for column in clustering.clustering_columns(target.snapshot.domains)):
        raise InvalidStatementError(
            f"the column `{spelled(path)}` cannot be changed: the table is clustered by it",
            remedy="Cluster the table by other columns first: alter table ... cluster by (...), or cluster by none",
            table=target.name,
        )


def _finish(
    target: Target,
    operation: Operation,
    metadata: Metadata,
    frame: DataFrame | None,
    settings: WriteSettings,
) -> Outcome:
    """Commits the metadata, and replaces all rows with the frame's rows, if there is a frame."""
    schema = StructType.from_json(metadata.schema_string)
    check_partitionable(schema, metadata.partition_columns, target.name)
    if frame is None or not target.snapshot.num_files:
        return commit_metadata(
            target, MetadataChange(operation, metadata, ReadSet(whole_table=frame is not None)), settings
        )
    everything = target.snapshot.files
    expected = file_rows.row_count(target, everything)
    assigned = assign(frame, schema.add(*row_ids.carried(target.snapshot)), target.name, by_name=True)
    rules = (*assigned.checks, *table_checks(schema, TableProperties(metadata.configuration), target.name))
    written = files.write(assigned.df, target.log, metadata, rules)
    file_changes.check_kept(target, FileChanges(everything, everything, written), expected)
    return commit_metadata(target, MetadataChange(operation, metadata, ReadSet(whole_table=True), written), settings)


# Dropped columns


def _without_columns(spark: SparkSession, target: Target, gone: Sequence[Name]) -> DataFrame | None:
    if not gone or not target.snapshot.num_files:
        return None
    frame = scan.read_to_rewrite(spark, target.log, target.snapshot)
    kept = []
    for member in nullable_schema(target.snapshot.schema):
        inner = [path[1:] for path in gone if path[0].lower() == member.name.lower()]
        if () in inner:
            continue
        kept.append(_without_members(F.col(quote(member.name)), member.type, inner).alias(member.name))
    return frame.select(*kept, *(member.name for member in row_ids.carried(target.snapshot)))


def _without_members(value: Column, data_type: DataType, gone: Sequence[Name]) -> Column:
    """Returns a value without some members of the structs inside of it; null remains null."""
    if not gone:
        return value
    if isinstance(data_type, StructType):
        members = []
        for member in data_type:
            inner = [path[1:] for path in gone if path[0].lower() == member.name.lower()]
            if () not in inner:
                members.append(_without_members(value.getField(member.name), member.type, inner).alias(member.name))
        return F.when(value.isNotNull(), F.struct(*members))
    if isinstance(data_type, ArrayType):
        element_type, inside = data_type.element_type, [path[1:] for path in gone]
        return F.transform(value, lambda element: _without_members(element, element_type, inside))
    if isinstance(data_type, MapType):
        keys = [path[1:] for path in gone if path[0].lower() == "key"]
        values = [path[1:] for path in gone if path[0].lower() == "value"]
        key_type, value_type = data_type.key_type, data_type.value_type
        if keys:
            value = F.transform_keys(value, lambda key, _: _without_members(key, key_type, keys))
        if values:
            value = F.transform_values(value, lambda _, each: _without_members(each, value_type, values))
    return value


# Changed columns


def _new_names(changes: Sequence[ColumnChange]) -> dict[Name, str]:
    """Returns the new names of renamed columns, by their current paths."""
    return {
        each.path: each.new_name for each in changes if each.new_name is not None and each.new_name != each.path[-1]
    }


def _renamed(schema: StructType, new_names: Mapping[Name, str], table: str) -> StructType:
    for path, new_name in new_names.items():
        schema = schema_edits.renamed(schema, path, new_name, table)
    return schema


def _renamed_metadata(target: Target, metadata: Metadata, new_names: Mapping[Name, str]) -> Metadata:
    """Returns the metadata with partition columns, statistics' columns and keys under their new names."""
    of_columns = {path[0].lower(): new_name for path, new_name in new_names.items() if len(path) == 1}
    partition_columns = tuple(of_columns.get(name.lower(), name) for name in target.snapshot.partition_columns)
    renamed = stats_columns.renamed(replace(metadata, partition_columns=partition_columns), new_names)
    return keys.with_renamed_columns(renamed, new_names)


def _changed(schema: StructType, change: ColumnChange, target: Target) -> StructType:
    """Returns the schema with a change applied, except for the new name."""
    path, table = change.path, target.name
    schema_edits.require(schema, path, table)
    if not schema_edits.is_column(schema, path, table):
        schema_edits.check_part(change, table)
    if change.type is not None:
        schema = column_types.with_type(schema, path, change.type, target)
    if change.comment is not None:
        schema = schema_edits.changed(
            schema, path, lambda field: field.with_metadata(comment=change.comment or None), table
        )
    if change.nullable is not None:
        nullable = change.nullable
        schema = schema_edits.changed(schema, path, lambda field: replace(field, nullable=nullable), table)
    if change.default is not None:
        schema = _with_default(schema, path, change.default, table)
    if change.position is not None:
        schema = schema_edits.moved(schema, path, change.position, table)
    schema_edits.require(schema, path, table)
    return schema


def _with_default(schema: StructType, path: Name, default: str, table: str) -> StructType:
    if len(path) > 1:
        raise InvalidStatementError(f"`{spelled(path)}` is inside a column: only columns have defaults", table=table)
    kept = {CURRENT_DEFAULT: default or None}
    return schema_edits.changed(schema, path, lambda field: field.with_metadata(**kept), table)


def _check_nulls(spark: SparkSession, target: Target, changes: Sequence[ColumnChange]) -> None:
    """Checks that the columns for SET NOT NULL contain no null; reads only the files that statistics do not exclude."""
    for change in changes:
        if change.nullable is not False:
            continue
        might_be_null = expressions.IsNull(expressions.Column(change.path))
        candidates = skipping.prune(target.snapshot, might_be_null)
        strict = schema_edits.changed(
            nullable_schema(target.snapshot.schema),
            change.path,
            lambda field: replace(field, nullable=False),
            target.name,
        )
        check_rows(spark, target, candidates, not_null_checks(strict, target.name))


def _renamed_columns(spark: SparkSession, target: Target, under_new_names: StructType) -> DataFrame:
    """Returns the rows with columns and members of structs renamed: a cast between structs works by position."""
    frame = scan.read_to_rewrite(spark, target.log, target.snapshot)
    ids = (member.name for member in row_ids.carried(target.snapshot))
    pairs = zip(target.snapshot.schema, nullable_schema(under_new_names), strict=True)
    return frame.select(*(_renamed_column(old, new) for old, new in pairs), *ids)


def _renamed_column(old: StructField, new: StructField) -> Column:
    value = F.col(quote(old.name))
    if not isinstance(new.type, ArrayType | MapType | StructType):
        return value.alias(new.name)
    return value.cast(spark_type(new.type)).alias(new.name)


def _check_conditions(spark: SparkSession, target: Target, metadata: Metadata) -> None:
    """Checks that the columns of every CHECK constraint still exist.

    Raises:
        InvalidStatementError: if a column of a constraint does not.
    """
    conditions = TableProperties(metadata.configuration).constraints

    def uses_column(name: str) -> InvalidStatementError:
        return InvalidStatementError(
            f"the check constraint `{name}`, {conditions[name]}, uses the column",
            remedy=f"Drop the constraint first: alter table ... drop constraint {name}",
            table=target.name,
        )

    schema = StructType.from_json(metadata.schema_string)
    table_rules.check_conditions(spark, schema, conditions, target.name, uses_column)


# Operations in the history


def _operation(changes: Sequence[ColumnChange], schema: StructType) -> Operation:
    renames = [change for change in changes if change.new_name is not None]
    if len(changes) == 1 and renames:
        (change,) = renames
        new_path = (*change.path[:-1], change.new_name or "")
        return Operation("RENAME COLUMN", {"oldColumnPath": spelled(change.path), "newColumnPath": spelled(new_path)})
    described = []
    for change in changes:
        path = (*change.path[:-1], change.new_name or change.path[-1])
        described.append(_described(schema_edits.require(schema, path, ""), path))
    if len(described) == 1:
        return Operation("CHANGE COLUMN", {"column": as_json(described[0]["column"])})
    return Operation("CHANGE COLUMNS", {"columns": as_json(described)})


def _described(field: StructField, path: Name) -> dict[str, Json]:
    (column,) = json.loads(StructType((replace(field, name=spelled(path)),)).to_json())["fields"]
    return {"column": column}


def _folded(names: Sequence[str]) -> set[str]:
    return {name.lower() for name in names}
