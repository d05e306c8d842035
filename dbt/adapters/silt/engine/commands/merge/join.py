"""Joins the target's and the source's rows of a MERGE, and finds the files that a small source touches in one job.

A full outer join sends every row of the target through a shuffle, because Spark cannot broadcast a side of it. The job
that finds the files also finds the unmatched rows of the source. The files are therefore joined with a broadcast
source, without a shuffle, and the inserted rows are read from the source alone.

ON may give a different result when evaluated again (`current_date()`). The matches of the second join are therefore
compared with the matches of the first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.commands.merge import clauses as merge_clauses
from dbt.adapters.silt.engine.commands.merge.clauses import (
    ACTION,
    COPY,
    IGNORE,
    IN_SOURCE,
    IN_TARGET,
    Clauses,
    NumberedClause,
)
from dbt.adapters.silt.engine.commands.merge.plan import MergePlan
from dbt.adapters.silt.engine.commands.reading import scan
from dbt.adapters.silt.engine.commands.reading.positions import FILE, ROW
from dbt.adapters.silt.engine.commands.rows import file_rows
from dbt.adapters.silt.engine.commands.rows.file_rows import Limits
from dbt.adapters.silt.engine.commands.spark import errors
from dbt.adapters.silt.engine.commands.spark.frames import computed_once_and_observed
from dbt.adapters.silt.engine.commands.target import Target
from dbt.adapters.silt.engine.commands.writing import checks, rules
from dbt.adapters.silt.engine.commands.writing.checks import example_row
from dbt.adapters.silt.engine.kernel.errors import MultipleSourceRowsError
from dbt.adapters.silt.engine.kernel.table import active_files
from dbt.adapters.silt.engine.kernel.table.schema import StructType
from dbt.adapters.silt.engine.sql.ast import MatchKind, RowVerb

_ONCE: Final = "__silt_once"
SOURCE_ROW: Final = "__silt_source_row"
"""The number of a row of the source."""
_EXAMPLE: Final = "__silt_example"

CARRIED: Final = (IN_SOURCE, SOURCE_ROW)
"""The columns of the written rows that `metrics` needs."""

_NUMBER: Final = "__silt_matched_rows"
_SUM: Final = "__silt_matched_sum"


@dataclass(frozen=True)
class Source:
    """The source's rows.

    Args:
        frame: the rows, under the source's alias.
        rows: the row count; None if it is not known beforehand.
        is_small: whether a single task can read all rows.
        size: the approximate size in memory, in bytes; None if unknown.
    """

    frame: DataFrame
    rows: int | None = None
    is_small: bool = False
    size: int | None = None

    @property
    def marked(self) -> DataFrame:
        return self.frame.withColumn(IN_SOURCE, F.expr("true"))

    @property
    def numbered(self) -> Source:
        """The source with `SOURCE_ROW`, a number that a row keeps in every read of a stable source."""
        return replace(self, frame=self.frame.withColumn(SOURCE_ROW, F.monotonically_increasing_id()))


@dataclass(frozen=True)
class Sides:
    """Both sides of a MERGE.

    Args:
        chosen: the files of the target that take part.
    """

    spark: SparkSession
    target: Target
    clauses: Clauses
    source: Source
    chosen: pa.Table

    @property
    def plan(self) -> MergePlan:
        return self.clauses.plan

    def target_rows(self, with_position: bool = False) -> DataFrame:
        """Returns the target's rows under its alias, with `IN_TARGET`."""
        rows = scan.read_to_rewrite(self.spark, self.target.log, self.target.snapshot, self.chosen, with_position)
        return self.as_target(rows)

    def as_target(self, rows: DataFrame) -> DataFrame:
        """Returns rows of the target under its alias, with `IN_TARGET`."""
        return rows.withColumn(IN_TARGET, F.expr("true")).alias(self.plan.target_alias)

    def source_rows(self) -> DataFrame:
        """Returns the source's rows under its alias, with `IN_SOURCE`."""
        return self.source.marked.alias(self.plan.source_alias)

    def on(self) -> str:
        # The line break ends a comment at the condition's end.
        return f"({self.plan.pairing}\n)"


def joined(sides: Sides, limits: Limits, once: bool = False) -> DataFrame:
    """Joins all rows of the target, and all source rows if there is an INSERT, and adds `ACTION`.

    Args:
        once: whether a row of the target that matches several rows of the source is returned once, in the pair that a
            clause takes if such a pair exists; the source must then be stable.
    """
    sides = replace(sides, source=sides.source.numbered) if once else sides
    target, source = sides.target_rows(with_position=once), sides.source_rows()
    if active_files.size(sides.chosen) <= limits.single_task:
        # Two sides of one partition each are joined in place; otherwise both are shuffled first. With a hash of the
        # source's rows, a file's rows keep their order, new rows follow them, and nothing is sorted.
        target = target.coalesce(1)
        source = source.coalesce(1).hint("shuffle_hash") if sides.source.is_small else source
    how = "full_outer" if sides.clauses.plan.of(MatchKind.NOT_MATCHED) else "left_outer"
    pairs = target.join(source, F.expr(sides.on()), how).withColumn(ACTION, merge_clauses.action(sides.clauses))
    if not once:
        return pairs
    # The key is the same in every run of a task, because the tasks of a lost executor are run again.
    key = f"case when {IN_TARGET} then concat({FILE}, ':', {ROW}) else cast({SOURCE_ROW} as string) end"
    first = Window.partitionBy(F.expr(key)).orderBy(F.col(ACTION).desc())
    return pairs.withColumn(_ONCE, F.row_number().over(first)).filter(f"{_ONCE} = 1")


def unmatched_target(sides: Sides, target: DataFrame) -> DataFrame:
    """Returns the target's rows that match no row of the source, with `ACTION` and both marks.

    Args:
        target: the rows of the chosen files.
    """
    rows = sides.as_target(target).join(sides.source_rows(), F.expr(sides.on()), "left_anti")
    return rows.withColumns({IN_SOURCE: F.expr("cast(null as boolean)"), ACTION: F.expr(str(COPY))})


def unmatched_source(sides: Sides, clauses: Clauses) -> DataFrame:
    """Returns the source's rows that match no row of the chosen files, with `ACTION` and both marks.

    Args:
        clauses: the INSERT clauses.
    """
    rows = sides.source_rows()
    if sides.chosen.num_rows:
        rows = rows.join(sides.target_rows(), F.expr(sides.on()), "left_anti")
    rows = rows.withColumn(IN_TARGET, F.expr("cast(null as boolean)"))
    return rows.withColumn(ACTION, merge_clauses.action(clauses))


def inserted(sides: Sides, matched: DataFrame) -> DataFrame:
    """Returns the source's rows that an INSERT adds, with `ACTION` and both marks.

    Args:
        sides: both sides, with a numbered, stable source.
        matched: `SOURCE_ROW` of the rows that match a row of the target.
    """
    unmatched = sides.source_rows().join(matched, SOURCE_ROW, "left_anti").alias(sides.plan.source_alias)
    nothing = replace(sides, chosen=sides.chosen.slice(0, 0)).target_rows()
    rows = unmatched.join(nothing, F.lit(False), "left_outer")
    return rows.withColumn(ACTION, merge_clauses.action(sides.clauses)).filter(f"{ACTION} <> {IGNORE}")


def touched(sides: Sides) -> pa.Table:
    """Returns the chosen files that the MERGE has to rewrite; runs a job."""
    how = "left_outer" if sides.plan.of(MatchKind.NOT_MATCHED_BY_SOURCE) else "inner"
    pairs = sides.target_rows(with_position=True).join(sides.source_rows(), F.expr(sides.on()), how)
    pairs = pairs.withColumn(ACTION, merge_clauses.action(sides.clauses))
    wanted = F.col(ACTION) > COPY
    if any(clause.action.verb is RowVerb.INSERT for clause in sides.plan.clauses):
        # A source row is inserted only if it matches nothing: every file with a match must take part in the join.
        wanted = wanted | F.col(IN_SOURCE)
    return file_rows.touched(pairs.filter(wanted), sides.target.log, sides.chosen).files


def multiple_matches(sides: Sides) -> MultipleSourceRowsError | None:
    """Returns the error if several rows of the source would change the same row of the target, or None.

    Runs a job. A pair that no clause takes does not count.
    """
    schema = sides.target.snapshot.schema
    keys = dict.fromkeys(key.column.parts[0] for key in sides.plan.keys if key.column.parts[0] in schema)
    example = example_row(StructType(tuple(schema.require(name) for name in keys)) if keys else schema)
    target = sides.target_rows(with_position=True).withColumn(_EXAMPLE, example).alias(sides.plan.target_alias)
    matches = (
        target.join(sides.source_rows(), F.expr(sides.on()), "inner")
        .filter(merge_clauses.action(sides.clauses) > COPY)
        .groupBy(FILE, ROW)
        .agg(F.count(F.lit(1)).alias("matches"), F.first(_EXAMPLE).alias("example"))
        .filter("matches > 1")
    )
    with errors.mapped():
        found = matches.agg(
            F.count(F.lit(1)).alias("rows"),
            F.max("matches").alias("matches"),
            F.max_by("example", "matches").alias("row"),
        ).first()
    if found is None or found["rows"] == 0:
        return None
    rows = checks.counted(found["rows"], "of the table are", "of the table is")
    return MultipleSourceRowsError(
        f"{rows} matched by more than one row of the source: {found['row']} by {found['matches']} of them",
        table=sides.target.name,
        details=found.asDict(),
    )


def with_boolean_conditions(sides: Sides) -> Sides:
    """Returns the same MERGE with boolean conditions.

    Raises:
        InvalidStatementError: if the condition of ON or of a WHEN clause has another type.
    """
    table, empty = sides.target.name, replace(sides, chosen=sides.chosen.slice(0, 0))

    def pairs() -> DataFrame:
        return empty.target_rows().join(empty.source_rows(), F.lit(False))

    def of_clause(clause: NumberedClause) -> NumberedClause:
        if clause.condition is None:
            return clause
        what = f"the condition of {clause.clause.kind.sql}"
        return replace(clause, condition=rules.checked(clause.condition, what, pairs, table))

    on = rules.checked(sides.plan.condition, "the condition of ON", pairs, table)
    plan = sides.plan if on == sides.plan.condition else replace(sides.plan, as_run=on)
    numbered = tuple(map(of_clause, sides.clauses.all))
    return replace(sides, clauses=replace(sides.clauses, plan=plan, all=numbered))


@dataclass(frozen=True)
class Matched:
    """The rows of a numbered source that match a row of the target.

    Args:
        rows: their `SOURCE_ROW`, repeated for each match.
        found: the observed values of `metrics`.
    """

    rows: DataFrame
    found: Mapping[str, Any]

    def is_same(self, observed: Mapping[str, Any]) -> bool:
        """Returns whether another join matched the same rows of the source, equally often."""
        return all(observed[name] == self.found[name] for name in (_NUMBER, _SUM))


def is_worthwhile(sides: Sides, limits: Limits) -> bool:
    """Returns whether the MERGE inserts, and the source is small enough to broadcast."""
    size = sides.source.size
    return (
        size is not None
        and size <= limits.broadcast
        and bool(sides.plan.of(MatchKind.NOT_MATCHED))
        and not sides.plan.of(MatchKind.NOT_MATCHED_BY_SOURCE)
    )


def find(sides: Sides) -> tuple[pa.Table, Matched]:
    """Returns the chosen files that have a match, and the source's matching rows; runs a job.

    Args:
        sides: with a numbered, stable source.
    """
    target = sides.target_rows(with_position=True)
    pairs = target.join(F.broadcast(sides.source_rows()), F.expr(sides.on()), "inner")
    with errors.mapped():
        rows, found = computed_once_and_observed(
            pairs.select(FILE, SOURCE_ROW, IN_SOURCE, IN_TARGET),
            [F.expr(f"{aggregate} as {name}") for name, aggregate in metrics().items()],
        )
    return file_rows.touched(rows, sides.target.log, sides.chosen).files, Matched(rows.select(SOURCE_ROW), found)


def parts(sides: Sides, matched: Matched) -> tuple[DataFrame, DataFrame]:
    """Returns the chosen files' rows with their matches, and the inserted rows; with `ACTION` and both marks."""
    rewritten = sides.target_rows().join(F.broadcast(sides.source_rows()), F.expr(sides.on()), "left_outer")
    rewritten = rewritten.withColumn(ACTION, merge_clauses.action(sides.clauses))
    return rewritten, inserted(sides, F.broadcast(matched.rows)).hint("rebalance")


def metrics() -> dict[str, str]:
    """Returns aggregates over joined rows that identify the matching rows of the source and their match counts."""
    is_match = f"{IN_TARGET} and {IN_SOURCE}"
    # 32 bits, so that the sum of two billion hashes is in range.
    hashed = f"xxhash64({SOURCE_ROW}) & 4294967295"
    return {_NUMBER: f"count_if({is_match})", _SUM: f"sum(if({is_match}, {hashed}, null))"}
