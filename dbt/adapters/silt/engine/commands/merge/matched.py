"""Finds the files that a small source touches, and which of its rows match, with one job.

A full outer join sends every row of the target through a shuffle, because Spark cannot broadcast a side of it. The rows
of the source that match nothing are known from the job that finds the files. So the files are joined with a source
that every task has at hand, their rows stay where they are, and what is inserted comes from the source alone.

ON may say something else when it is asked again (`current_date()`). What the second join matches is therefore compared
with what the first has found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.commands.merge import clauses as merge_clauses
from dbt.adapters.silt.engine.commands.merge import join
from dbt.adapters.silt.engine.commands.merge.clauses import ACTION, IN_SOURCE, IN_TARGET
from dbt.adapters.silt.engine.commands.merge.join import SOURCE_ROW, Sides
from dbt.adapters.silt.engine.commands.reading.positions import FILE
from dbt.adapters.silt.engine.commands.rows import file_rows
from dbt.adapters.silt.engine.commands.rows.selection import Limits
from dbt.adapters.silt.engine.commands.spark import errors
from dbt.adapters.silt.engine.commands.spark.computed_once import computed_once_and_observed
from dbt.adapters.silt.engine.sql.ast import MatchKind

CARRIED: Final = (IN_SOURCE, SOURCE_ROW)
"""What the written rows carry for `metrics`."""

_NUMBER: Final = "__silt_matched_rows"
_SUM: Final = "__silt_matched_sum"


@dataclass(frozen=True)
class Matched:
    """The rows of a numbered source that match a row of the target.

    Args:
        rows: their `SOURCE_ROW`, one for each match.
        found: what `metrics` gave for them.
    """

    rows: DataFrame
    found: Mapping[str, Any]

    def is_same(self, observed: Mapping[str, Any]) -> bool:
        """Whether another join has matched the same rows of the source as often."""
        return all(observed[name] == self.found[name] for name in (_NUMBER, _SUM))


def pays(sides: Sides, limits: Limits) -> bool:
    """Whether there is something to insert from a source that every task may have at hand."""
    size = sides.source.size
    return (
        size is not None
        and size <= limits.broadcast
        and bool(sides.plan.of(MatchKind.NOT_MATCHED))
        and not sides.plan.of(MatchKind.NOT_MATCHED_BY_SOURCE)
    )


def find(sides: Sides) -> tuple[pa.Table, Matched]:
    """Those of the chosen files that have a match, and the source's rows that match; runs a job.

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
    return file_rows.touched(rows, sides.target.log, sides.chosen), Matched(rows.select(SOURCE_ROW), found)


def parts(sides: Sides, matched: Matched) -> tuple[DataFrame, DataFrame]:
    """The rows of the chosen files with what they match, and those that are inserted; with `ACTION` and all marks."""
    rewritten = sides.target_rows().join(F.broadcast(sides.source_rows()), F.expr(sides.on()), "left_outer")
    rewritten = rewritten.withColumn(ACTION, merge_clauses.action(sides.clauses))
    return rewritten, join.inserted(sides, F.broadcast(matched.rows)).hint("rebalance")


def metrics() -> dict[str, str]:
    """What tells, of joined rows with the `CARRIED` columns, which rows of the source match and how often."""
    is_match = f"{IN_TARGET} and {IN_SOURCE}"
    # Of 32 bits, so that the sum of two billion of them is in range.
    hashed = f"xxhash64({SOURCE_ROW}) & 4294967295"
    return {_NUMBER: f"count_if({is_match})", _SUM: f"sum(if({is_match}, {hashed}, null))"}
