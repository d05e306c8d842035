"""Separates the rows that an INSERT replaces from those that it keeps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from dbt.adapters.silt.engine.commands.reading import scan
from dbt.adapters.silt.engine.commands.rows import file_rows, marking
from dbt.adapters.silt.engine.commands.rows.selection import Limits
from dbt.adapters.silt.engine.commands.target import Target
from dbt.adapters.silt.engine.commands.writing import change_data
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.table import active_files

LIMITS: Final = Limits()
"""Up to how many bytes candidate files are rewritten without looking first which of them hold rows to replace."""


@dataclass(frozen=True)
class Split:
    """The files some of whose rows are replaced, and the rows of them that stay.

    Args:
        removed: the files that are rewritten, rows of the snapshot's files.
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


def split(
    spark: SparkSession,
    target: Target,
    candidates: pa.Table,
    going: Callable[[DataFrame], DataFrame],
    staying: Callable[[DataFrame], DataFrame],
) -> Split:
    """Tells the rows to replace from the others.

    Args:
        going: the rows of a frame that are replaced.
        staying: the others.
    """
    log, snapshot = target.log, target.snapshot
    if not change_data.is_recorded(snapshot):
        partly = _with_rows_to_replace(spark, target, candidates, going)
        return Split(partly, staying(scan.read(spark, log, snapshot, partly)) if partly.num_rows else None)
    found = marking.kept(going(scan.read(spark, log, snapshot, candidates, with_position=True)))
    plan = marking.plan(target, candidates, marking.positions(found), may_stay=False)
    if not plan.files_to_rewrite.num_rows:
        return Split(plan.removed)
    kept = scan.read(spark, log, snapshot, plan.files_to_rewrite, only=plan.survivors)
    return Split(plan.removed, kept, found.select(*map(quote, snapshot.schema.names)))


def _with_rows_to_replace(
    spark: SparkSession, target: Target, candidates: pa.Table, to_replace: Callable[[DataFrame], DataFrame]
) -> pa.Table:
    """The files to rewrite: all candidates where they are small, else those that hold a row to replace."""
    if active_files.size(candidates) <= LIMITS.at_once:
        return candidates
    positioned = scan.read(spark, target.log, target.snapshot, candidates, with_position=True)
    return file_rows.touched(to_replace(positioned), candidates)
