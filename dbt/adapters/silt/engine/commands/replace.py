"""INSERT that takes the place of some rows: REPLACE WHERE, REPLACE USING, and the overwriting of partitions.

Each is one commit. Files all of whose rows go are removed unread; of the others only those that hold rows to replace
are written anew, in the same job as the new rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.commands import (
    change_data,
    insertion,
    marking,
    merge_source,
    partition_match,
    row_changes,
    scan,
)
from dbt.adapters.silt.engine.commands.checks import Check, counted, example_row, shown
from dbt.adapters.silt.engine.commands.insertion import Replacement
from dbt.adapters.silt.engine.commands.merge_plan import KeyEquality, MergePlan
from dbt.adapters.silt.engine.commands.partitions import quoted
from dbt.adapters.silt.engine.commands.placement import Placed, Placement, place
from dbt.adapters.silt.engine.commands.row_changes import Limits, Rows
from dbt.adapters.silt.engine.commands.target import Outcome, Target, WriteSettings
from dbt.adapters.silt.engine.kernel import expressions, skipping
from dbt.adapters.silt.engine.kernel.changes import ReadSet
from dbt.adapters.silt.engine.kernel.errors import ReplaceWhereMismatchError, SiltError
from dbt.adapters.silt.engine.kernel.schema import StructType

LIMITS: Final = Limits()
"""Up to how many bytes candidate files are written anew without looking first which of them hold rows to replace."""

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
    """Deletes the rows for which a condition is true, and inserts those of a query, for which it must be true.

    Raises:
        ReplaceWhereMismatchError: the condition is not true for a row of the query.
        As `insert.append`, and ConcurrentModificationError: another writer changed rows for which it may be true.
    """
    if rows.condition is None:
        raise ValueError("REPLACE WHERE has a condition")
    placed = _inside(place(query, target, placement), rows, target.name)
    candidates = skipping.prune(target.snapshot, rows.predicate)
    is_whole = skipping.fully_matched(target.snapshot, rows.predicate, candidates)
    whole, others = candidates.filter(is_whole), candidates.filter(pc.invert(is_whole))
    matches = _is_true(rows.condition)
    split = _split(
        spark,
        target,
        others,
        going=lambda frame: frame.alias(rows.alias).filter(matches),
        staying=lambda frame: frame.alias(rows.alias).filter(~matches),
    )
    replacement = Replacement(
        _OVERWRITE,
        pa.concat_tables([whole, split.removed]),
        opened=others.num_rows,
        reads=ReadSet(predicates=(rows.predicate,), paths=_paths(others)),
        parameters={"predicate": rows.condition},
        gone=split.gone_with(whole, spark, target),
    )
    return insertion.replace_rows(target, placed, split.kept, replacement, settings)


def replace_using(
    spark: SparkSession,
    target: Target,
    query: DataFrame,
    placement: Placement,
    columns: Sequence[str],
    settings: WriteSettings,
) -> Outcome:
    """Deletes the rows whose values in some columns are those of a row of the query, and inserts the query's rows.

    Values are compared by `=`: a row with a null among them is replaced by none, and replaces none. Where the columns
    are the table's partition columns, whole files go and none is read.

    Raises:
        ColumnNotFoundError: the table has no such column.
        As `insert.append`, and ConcurrentModificationError: another writer changed rows that are, or may be, replaced.
    """
    names = tuple(dict.fromkeys(target.snapshot.schema.require(name, target.name).name for name in columns))
    parameters = {"replaceUsingCols": f"({', '.join(names)})"}
    placed = place(query, target, placement)
    if set(names) == set(target.snapshot.partition_columns):
        return _replace_files(target, placed, Replacement(_OVERWRITE, parameters=parameters), settings)
    return _replace_rows(spark, target, placed, names, Replacement(_OVERWRITE, parameters=parameters), settings)


def overwrite_partitions(
    spark: SparkSession, target: Target, query: DataFrame, placement: Placement, settings: WriteSettings
) -> Outcome:
    """Puts the rows of a query in the place of the partitions that they are in, null counting as a value.

    A table without partition columns is one partition. Raises as `replace_using`.
    """
    placed = place(query, target, placement)
    parameters = {"isDynamicPartitionOverwrite": True}
    if not target.snapshot.partition_columns:
        written = insertion.write(target, placed)
        everything = Replacement(_OVERWRITE, target.snapshot.files, reads=ReadSet(whole_table=True, transactions=True))
        return insertion.finish(target, placed, written, everything, settings)
    return _replace_files(target, placed, Replacement(_OVERWRITE, parameters=parameters), settings, null_safe=True)


def _inside(placed: Placed, rows: Rows, table: str) -> Placed:
    """The query's rows, and a check that the condition is true for each."""

    def error(count: int, example: str | None) -> SiltError:
        return ReplaceWhereMismatchError(
            f"{counted(count, 'of the query lie', 'of the query lies')} outside of what is replaced, "
            f"{str(rows.condition).strip()}{shown(example)}",
            remedy="Nothing was written: filter the query by the same condition, or widen the condition",
            table=table,
            details={"rows": count},
        )

    schema = StructType.from_json(placed.metadata.schema_string)
    outside = ~_is_true(str(rows.condition))
    marked = placed.df.alias(rows.alias).withColumn(_OUTSIDE, outside)
    check = Check(F.col(_OUTSIDE), example_row(schema), error)
    return replace(placed, df=marked, checks=(check, *placed.checks))


def _is_true(condition: str) -> Column:
    # The line break ends a comment at the condition's end.
    return F.expr(f"(({condition}\n) <=> true)")


@dataclass(frozen=True)
class _Split:
    """What becomes of files some of whose rows are replaced.

    Args:
        removed: the files that are written anew, rows of the snapshot's files.
        kept: their rows that stay; None where there are no such files.
        gone: their rows that go; None where the table does not record its changes.
    """

    removed: pa.Table
    kept: DataFrame | None = None
    gone: DataFrame | None = None

    def gone_with(self, whole: pa.Table, spark: SparkSession, target: Target) -> DataFrame | None:
        """The rows that go, those of whole files too; None where nothing is to be recorded."""
        if self.gone is None:
            return None
        return scan.read(spark, target.log, target.snapshot, whole).unionAll(self.gone)


def _split(
    spark: SparkSession,
    target: Target,
    candidates: pa.Table,
    going: Callable[[DataFrame], DataFrame],
    staying: Callable[[DataFrame], DataFrame],
) -> _Split:
    """Tells the rows to replace from the others.

    Args:
        going: the rows of a frame that are replaced.
        staying: the others.
    """
    log, snapshot = target.log, target.snapshot
    if not change_data.is_recorded(snapshot):
        partly = _with_rows_to_replace(spark, target, candidates, going)
        return _Split(partly, staying(scan.read(spark, log, snapshot, partly)) if partly.num_rows else None)
    found = marking.kept(going(scan.read(spark, log, snapshot, candidates, with_position=True)))
    plan = marking.plan(target, candidates, marking.positions(found), may_stay=False)
    if not plan.worn.num_rows:
        return _Split(plan.removed)
    kept = scan.read(spark, log, snapshot, plan.worn, only=plan.left)
    return _Split(plan.removed, kept, found.select(*map(quoted, snapshot.schema.names)))


def _with_rows_to_replace(
    spark: SparkSession, target: Target, candidates: pa.Table, to_replace: Callable[[DataFrame], DataFrame]
) -> pa.Table:
    """The files to write anew: all candidates where they are small, else those that hold a row to replace."""
    if row_changes.size(candidates) <= LIMITS.at_once:
        return candidates
    positioned = scan.read(spark, target.log, target.snapshot, candidates, with_position=True)
    return row_changes.touched(to_replace(positioned), candidates)


def _replace_files(
    target: Target, placed: Placed, replacement: Replacement, settings: WriteSettings, null_safe: bool = False
) -> Outcome:
    """Replaces the partitions that the written files are in: no file of the table is read, and the query only once."""
    written = insertion.write(target, placed)
    matched = partition_match.match(target.snapshot, written.adds, null_safe)
    done = replace(replacement, removed=matched.files, opened=0, reads=ReadSet(predicates=(matched.predicate,)))
    return insertion.finish(target, placed, written, done, settings)


def _replace_rows(
    spark: SparkSession,
    target: Target,
    placed: Placed,
    names: Sequence[str],
    replacement: Replacement,
    settings: WriteSettings,
) -> Outcome:
    """Replaces single rows: the query is kept, because its keys are read besides its rows."""
    snapshot = target.snapshot
    keys = tuple(KeyEquality(expressions.Column.of(name), f"{quoted(_SOURCE)}.{quoted(name)}") for name in names)
    plan = MergePlan(_TARGET, _SOURCE, condition="", clauses=(), keys=keys)
    source = merge_source.stabilise(placed.df, plan, snapshot.schema)
    source = merge_source.with_values(source, snapshot.schema, snapshot.partition_columns)
    wanted = source.frame.select(*(F.col(f"{_SOURCE}.{quoted(name)}") for name in names)).distinct()
    candidates = skipping.prune(snapshot, source.predicate)
    split = _split(
        spark,
        target,
        candidates,
        going=lambda frame: frame.join(wanted, list(names), "left_semi"),
        staying=lambda frame: frame.join(wanted, list(names), "left_anti"),
    )
    done = replace(
        replacement,
        removed=split.removed,
        opened=candidates.num_rows,
        reads=ReadSet(predicates=(source.predicate,), paths=_paths(candidates)),
        gone=split.gone,
    )
    return insertion.replace_rows(target, replace(placed, df=source.frame), split.kept, done, settings)


def _paths(chosen: pa.Table) -> frozenset[str]:
    return frozenset(chosen["path"].to_pylist())
