"""Finds the files that a small source touches, and its matching rows, with a single job.

A full outer join sends every row of the target through a shuffle, because Spark cannot broadcast a side of it. The job
that finds the files also finds the unmatched rows of the source. The files are therefore joined with a broadcast
source, without a shuffle, and the inserted rows are read from the source alone.

ON may give a different result when evaluated again (`current_date()`). The matches of the second join are therefore
compared with the matches of the first.
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
"""The columns of the written rows that `metrics` needs."""

_NUMBER: Final = "__silt_matched_rows"
_SUM: Final = "__silt_matched_sum"


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
    return file_rows.touched(rows, sides.target.log, sides.chosen), Matched(rows.select(SOURCE_ROW), found)


def parts(sides: Sides, matched: Matched) -> tuple[DataFrame, DataFrame]:
    """Returns the chosen files' rows with their matches, and the inserted rows; with `ACTION` and both marks."""
    rewritten = sides.target_rows().join(F.broadcast(sides.source_rows()), F.expr(sides.on()), "left_outer")
    rewritten = rewritten.withColumn(ACTION, merge_clauses.action(sides.clauses))
    return rewritten, join.inserted(sides, F.broadcast(matched.rows)).hint("rebalance")


def metrics() -> dict[str, str]:
    """Returns aggregates over joined rows that identify the matching rows of the source and their match counts."""
    is_match = f"{IN_TARGET} and {IN_SOURCE}"
    # 32 bits, so that the sum of two billion hashes is in range.
    hashed = f"xxhash64({SOURCE_ROW}) & 4294967295"
    return {_NUMBER: f"count_if({is_match})", _SUM: f"sum(if({is_match}, {hashed}, null))"}
