"""Runs an INSERT that replaces some rows: REPLACE WHERE, USING and ON, and the overwriting of partitions.

Each is a single commit. A file whose rows are all replaced is removed without being read. Of the remaining files only
the files with rows to replace are rewritten, in the same job as the new rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.commands.insert import insertion
from dbt.adapters.silt.engine.commands.insert.insertion import Replacement, split
from dbt.adapters.silt.engine.commands.insert.placement import Placed, Placement, place
from dbt.adapters.silt.engine.commands.merge import source as merge_source
from dbt.adapters.silt.engine.commands.merge.plan import KeyEquality, MergePlan
from dbt.adapters.silt.engine.commands.merge.source import StableSource
from dbt.adapters.silt.engine.commands.reading import partition_match
from dbt.adapters.silt.engine.commands.rows.file_rows import Rows, check_condition, no_rows
from dbt.adapters.silt.engine.commands.target import Outcome, Target, WriteSettings
from dbt.adapters.silt.engine.commands.writing import rules
from dbt.adapters.silt.engine.commands.writing.checks import Check, counted, example_row, shown
from dbt.adapters.silt.engine.kernel.errors import ReplaceWhereMismatchError, SiltError
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.scan import skipping
from dbt.adapters.silt.engine.kernel.table import expressions
from dbt.adapters.silt.engine.kernel.table.expressions import And, Expression
from dbt.adapters.silt.engine.kernel.table.schema import StructType
from dbt.adapters.silt.engine.kernel.transaction.changes import ReadSet
from dbt.adapters.silt.engine.sql.query.rule_texts import one_line

_MOST_SENT_BYTES = 32 << 20
"""The size up to which the keys to replace are sent to every task that reads an input."""

_OVERWRITE = "Overwrite"
_OUTSIDE = "__silt_outside"
_SOURCE = "__silt_source"
_TARGET = "__silt_target"


def replace_where(
    spark: SparkSession,
    target: Target,
    query: DataFrame,
    placement: Placement,
    rows: Rows,
    settings: WriteSettings,
) -> Outcome:
    """Deletes the rows for which a condition is true, and inserts the query's rows, for which it must be true.

    Raises:
        InvalidStatementError: if the condition is not boolean.
        ReplaceWhereMismatchError: if the condition is not true for a row of the query.
        As `insert.append`, and ConcurrentModificationError: if another writer changed rows for which it may be true.
    """
    if rows.condition is None:
        raise ValueError("REPLACE WHERE has a condition")
    check_condition(spark, target, rows)
    placed = _inside(place(query, target, placement).with_numbers(), rows, target.name)
    candidates = skipping.prune(target.snapshot, rows.predicate)
    is_whole = skipping.fully_matched(target.snapshot, rows.predicate, candidates)
    whole, others = candidates.filter(is_whole), candidates.filter(pc.invert(is_whole))
    matches = _is_true(rows.condition)
    parts = split(
        spark,
        target,
        others,
        to_replace=lambda frame: frame.alias(rows.alias).filter(matches),
        to_keep=lambda frame: frame.alias(rows.alias).filter(~matches),
    )
    replacement = Replacement(
        _OVERWRITE,
        pa.concat_tables([whole, parts.removed]),
        opened=others.num_rows,
        reads=ReadSet(predicates=(rows.predicate,), paths=_paths(others)),
        parameters={"predicate": rows.condition},
        gone=parts.all_replaced(whole, spark, target),
    )
    return insertion.replace_rows(target, placed, parts, replacement, settings)


def replace_using(
    target: Target,
    query: DataFrame,
    placement: Placement,
    columns: Sequence[str],
    settings: WriteSettings,
) -> Outcome:
    """Deletes the rows whose values in some columns equal a query row's values, and inserts the query's rows.

    Values are compared by `=`: a row with a null in these columns is not replaced, and replaces no row. If the columns
    are the table's partition columns, whole files are removed and no file is read.

    Raises:
        ColumnNotFoundError: if the table lacks a column.
        As `insert.append`, and ConcurrentModificationError: if another writer changed rows that are or may be replaced.
    """
    names = tuple(dict.fromkeys(target.snapshot.schema.require(name, target.name).name for name in columns))
    parameters = {"replaceUsingCols": f"({', '.join(names)})"}
    placed = place(query, target, placement).with_numbers()
    if set(names) == set(target.snapshot.partition_columns):
        return _replace_files(target, placed, Replacement(_OVERWRITE, parameters=parameters), settings)
    plan = _equal_columns(names)
    source = _source(target, placed.df, plan)
    placed, replacement = replace(placed, df=source.frame), Replacement(_OVERWRITE, parameters=parameters)
    return _replace_rows(target, placed, source, plan, replacement, settings)


def replace_keys(
    target: Target,
    query: Callable[[DataFrame, Expression], DataFrame],
    placement: Placement,
    keys: DataFrame,
    settings: WriteSettings,
) -> Outcome:
    """Deletes the rows that have one of the keys, with null as a value, and inserts a query's rows.

    Args:
        query: returns the query from the keys, which are computed once, and a condition on the key's columns that each
            of the keys meets.
        keys: the keys; their columns have the names of columns of the table.

    Raises:
        As `insert.append`, and ConcurrentModificationError: if another writer changed rows of the table.
    """
    names = tuple(target.snapshot.schema.require(name, target.name).name for name in keys.columns)
    plan = _equal_columns(names, null_safe=True)
    source = _source(target, keys, plan)
    is_small = source.size is not None and source.size <= _MOST_SENT_BYTES
    kept = F.broadcast(source.frame) if is_small else source.frame
    placed = place(query(kept, source.predicate), target, placement).with_numbers()
    replacement = Replacement(_OVERWRITE, parameters={"replaceChangedKeys": f"({', '.join(names)})"})
    return _replace_rows(target, placed, source, plan, replacement, settings)


def replace_on(
    target: Target,
    query: DataFrame,
    placement: Placement,
    plan: MergePlan,
    settings: WriteSettings,
) -> Outcome:
    """Deletes the rows for which a condition is true with some row of the query, and inserts the query's rows.

    If the condition is that the partition columns are equal, whole files are removed and no file is read.

    Args:
        plan: the condition, the aliases of its two sides, and the keys that it implies; it has no clauses.

    Raises:
        As `insert.append`, and ConcurrentModificationError: if another writer changed rows that are or may be replaced.
    """
    replacement = Replacement(_OVERWRITE, parameters={"replaceOn": plan.condition})
    null_safe = _by_partitions(target, placement, plan)
    if null_safe is not None:
        placed = place(query, target, placement).with_numbers()
        return _replace_files(target, placed, replacement, settings, null_safe)
    place(query, target, placement)  # raises before the query runs
    plan = _with_boolean_condition(target, query, plan)
    plan = merge_source.as_stored(plan, query, target.snapshot.schema)
    source = _source(target, query, plan)
    placed = place(source.frame, target, placement).with_numbers()
    return _replace_rows(target, placed, source, plan, replacement, settings)


def _with_boolean_condition(target: Target, query: DataFrame, plan: MergePlan) -> MergePlan:
    def pairs() -> DataFrame:
        rows = no_rows(query.sparkSession, target).alias(plan.target_alias)
        return rows.join(query.alias(plan.source_alias), F.lit(False))

    checked = rules.checked(plan.condition, "the condition of REPLACE ON", pairs, target.name)
    return plan if checked == plan.condition else replace(plan, as_run=checked)


def overwrite_partitions(target: Target, query: DataFrame, placement: Placement, settings: WriteSettings) -> Outcome:
    """Replaces the partitions that contain rows of the query; null counts as a value.

    A table without partition columns is a single partition. Raises as `replace_using`.
    """
    placed = place(query, target, placement).with_numbers()
    parameters = {"isDynamicPartitionOverwrite": True}
    if not target.snapshot.partition_columns:
        written = insertion.write(target, placed)
        everything = Replacement(_OVERWRITE, target.snapshot.files, reads=ReadSet(whole_table=True, transactions=True))
        return insertion.finish(target, placed, written, everything, settings)
    return _replace_files(target, placed, Replacement(_OVERWRITE, parameters=parameters), settings, null_safe=True)


def _inside(placed: Placed, rows: Rows, table: str) -> Placed:
    """Adds a check that the condition is true for each of the query's rows."""

    def error(count: int, example: str | None) -> SiltError:
        return ReplaceWhereMismatchError(
            f"{counted(count, 'of the query do', 'of the query does')} not match the condition of the replacement, "
            f"{one_line(str(rows.condition))}{shown(example)}",
            remedy="Nothing was written: filter the query by the same condition, or widen the condition",
            table=table,
            details={"rows": count},
        )

    schema = StructType.from_json(placed.metadata.schema_string)
    outside = ~_is_true(str(rows.condition))
    marked = placed.df.alias(rows.alias).withColumn(_OUTSIDE, outside)
    check = Check(F.col(_OUTSIDE), example_row(schema, str(rows.condition)), error)
    return replace(placed, df=marked, checks=(check, *placed.checks))


def _is_true(condition: str) -> Column:
    # The line break ends a comment at the condition's end.
    return F.expr(f"(({condition}\n) <=> true)")


def _replace_files(
    target: Target, placed: Placed, replacement: Replacement, settings: WriteSettings, null_safe: bool = False
) -> Outcome:
    """Replaces the partitions of the written files: reads no file of the table, and the query only once."""
    written = insertion.write(target, placed)
    matched = partition_match.match(target.snapshot, written.adds, null_safe)
    done = replace(replacement, removed=matched.files, opened=0, reads=ReadSet(predicates=(matched.predicate,)))
    return insertion.finish(target, placed, written, done, settings)


def _equal_columns(names: Sequence[str], null_safe: bool = False) -> MergePlan:
    """Returns the condition that a row of the table and a row of the query are equal in some columns."""
    sides = [(f"{quote(_TARGET)}.{quote(name)}", f"{quote(_SOURCE)}.{quote(name)}") for name in names]
    keys = tuple(
        KeyEquality(expressions.Column.of(name), given, null_safe)
        for name, (_, given) in zip(names, sides, strict=True)
    )
    condition = " and ".join(f"{column} {'<=>' if null_safe else '='} {given}" for column, given in sides)
    return MergePlan(_TARGET, _SOURCE, condition, clauses=(), keys=keys, keys_only=True)


def _by_partitions(target: Target, placement: Placement, plan: MergePlan) -> bool | None:
    """Returns whether null equals null, or None if the condition is not equality of the partition columns.

    The partition columns of a query are only known if columns are matched by name.
    """
    wanted = {name.lower() for name in target.snapshot.partition_columns}
    equal = {key.column.parts[0].lower() for key in plan.keys if _is_same_column(key, plan)}
    kinds = {key.null_safe for key in plan.keys}
    is_all = plan.keys_only and placement.by_name and len(equal) == len(plan.keys) and len(kinds) == 1
    return kinds.pop() if is_all and wanted and equal == wanted else None


def _is_same_column(key: KeyEquality, plan: MergePlan) -> bool:
    """Returns whether the key equals the source's column of the same name, with or without backquotes."""
    name, *fields = key.column.parts
    aliases = (plan.source_alias, quote(plan.source_alias))
    written = {f"{alias}.{quote(name)}".lower() for alias in aliases}
    if name.isidentifier():
        written |= {f"{alias}.{name}".lower() for alias in aliases}
    return not fields and key.source.lower() in written


def _source(target: Target, rows: DataFrame, plan: MergePlan) -> StableSource:
    """Returns the query's rows, kept because its keys are read separately."""
    source = merge_source.stabilise(rows, plan, target.snapshot.schema)
    return merge_source.with_values(source, target.snapshot.schema, target.snapshot.partition_columns)


def _replace_rows(
    target: Target,
    placed: Placed,
    source: StableSource,
    plan: MergePlan,
    replacement: Replacement,
    settings: WriteSettings,
) -> Outcome:
    """Replaces the single rows for which the plan's condition is true with some row of the source."""
    predicate = And((plan.target_predicate, source.predicate))
    candidates = skipping.prune(target.snapshot, predicate)
    matches = F.expr(plan.pairing)
    parts = split(
        source.frame.sparkSession,
        target,
        candidates,
        to_replace=lambda frame: frame.alias(plan.target_alias).join(source.frame, matches, "left_semi"),
        to_keep=lambda frame: frame.alias(plan.target_alias).join(source.frame, matches, "left_anti"),
    )
    done = replace(
        replacement,
        removed=parts.removed,
        opened=candidates.num_rows,
        reads=ReadSet(predicates=(predicate,), paths=_paths(candidates)),
        gone=parts.gone,
    )
    return insertion.replace_rows(target, placed, parts, done, settings)


def _paths(chosen: pa.Table) -> frozenset[str]:
    return frozenset(chosen["path"].to_pylist())
