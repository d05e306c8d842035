"""Separates the rows that an INSERT replaces from those that it keeps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from dbt.adapters.silt.engine.commands.reading import scan
from dbt.adapters.silt.engine.commands.rows import file_rows, marking
from dbt.adapters.silt.engine.commands.rows.file_rows import CountedRows
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
        read: the rows of the removed files, counted; None where the rows that stay are known by position.
        survivors: how many rows stay; None where that is not known before.
    """

    removed: pa.Table
    kept: DataFrame | None = None
    gone: DataFrame | None = None
    read: CountedRows | None = None
    survivors: int | None = None

    def check(self, target: Target, kept: int) -> None:
        """Passes where no row of the removed files was lost.

        Args:
            kept: how many of their rows were written.

        Raises:
            DataFileChangedError: a file is another one than the log names.
            InternalError: rows were lost or doubled otherwise.
        """
        if self.read is not None:
            self.read.check(target, kept)
        if self.survivors is not None and self.survivors != kept:
            raise file_rows.miscounted(target, self.removed, f"{kept} rows were kept instead of {self.survivors}")

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
        if not partly.num_rows:
            return Split(partly)
        read = file_rows.counted(spark, target, partly)
        return Split(partly, staying(read.frame), read=read)
    found = marking.kept(going(scan.read(spark, log, snapshot, candidates, with_position=True)))
    plan = marking.plan(target, candidates, marking.positions(target, found, candidates), may_stay=False)
    if not plan.files_to_rewrite.num_rows:
        return Split(plan.removed)
    kept = scan.read_to_rewrite(spark, log, snapshot, plan.files_to_rewrite, only=plan.survivors)
    gone = found.select(*map(quote, snapshot.schema.names))
    return Split(plan.removed, kept, gone, survivors=plan.num_survivors)


def _with_rows_to_replace(
    spark: SparkSession, target: Target, candidates: pa.Table, to_replace: Callable[[DataFrame], DataFrame]
) -> pa.Table:
    """The files to rewrite: all candidates where they are small, else those that hold a row to replace."""
    if active_files.size(candidates) <= LIMITS.at_once:
        return candidates
    positioned = scan.read(spark, target.log, target.snapshot, candidates, with_position=True)
    return file_rows.touched(to_replace(positioned), target.log, candidates)
