"""Separates the rows that an INSERT replaces from the rows that it keeps."""

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
"""The size up to which candidate files are rewritten without first searching them for rows to replace."""


@dataclass(frozen=True)
class Split:
    """The files that contain replaced rows, and their kept rows.

    Args:
        removed: the rewritten files, rows of the snapshot's files.
        kept: their kept rows, if a file is rewritten.
        gone: their replaced rows, if the table records its changes.
        read: the counted rows of the removed files, unless the kept rows are known by position.
        survivors: the number of kept rows, if it is known beforehand.
    """

    removed: pa.Table
    kept: DataFrame | None = None
    gone: DataFrame | None = None
    read: CountedRows | None = None
    survivors: int | None = None

    def check(self, target: Target, kept: int) -> None:
        """Checks that no row of the removed files was lost.

        Args:
            kept: the number of their rows that were written.

        Raises:
            DataFileChangedError: if a data file no longer matches its entry in the log.
            InternalError: if rows were lost or duplicated for another reason.
        """
        if self.read is not None:
            self.read.check(target, kept)
        if self.survivors is not None and self.survivors != kept:
            raise file_rows.miscounted(target, self.removed, f"{kept} rows were kept instead of {self.survivors}")

    def all_replaced(self, whole: pa.Table, spark: SparkSession, target: Target) -> DataFrame | None:
        """Returns the replaced rows, including the rows of whole files, if changes are recorded."""
        if self.gone is None:
            return None
        return scan.read(spark, target.log, target.snapshot, whole).unionAll(self.gone)


def split(
    spark: SparkSession,
    target: Target,
    candidates: pa.Table,
    to_replace: Callable[[DataFrame], DataFrame],
    to_keep: Callable[[DataFrame], DataFrame],
) -> Split:
    """Separates the rows to replace from the rows to keep.

    Args:
        to_replace: selects the rows of a frame that are replaced.
        to_keep: selects the rows of a frame that are kept.
    """
    log, snapshot = target.log, target.snapshot
    if not change_data.is_recorded(snapshot):
        partly = _with_rows_to_replace(spark, target, candidates, to_replace)
        if not partly.num_rows:
            return Split(partly)
        read = file_rows.counted(spark, target, partly)
        return Split(partly, to_keep(read.frame), read=read)
    found = marking.kept(to_replace(scan.read(spark, log, snapshot, candidates, with_position=True)))
    plan = marking.plan(target, candidates, marking.positions(target, found, candidates), may_stay=False)
    if not plan.files_to_rewrite.num_rows:
        return Split(plan.removed)
    kept = scan.read_to_rewrite(spark, log, snapshot, plan.files_to_rewrite, only=plan.survivors)
    gone = found.select(*map(quote, snapshot.schema.names))
    return Split(plan.removed, kept, gone, survivors=plan.num_survivors)


def _with_rows_to_replace(
    spark: SparkSession, target: Target, candidates: pa.Table, to_replace: Callable[[DataFrame], DataFrame]
) -> pa.Table:
    """Returns the files to rewrite: all candidates if they are small, else the files with a row to replace."""
    if active_files.size(candidates) <= LIMITS.at_once:
        return candidates
    positioned = scan.read(spark, target.log, target.snapshot, candidates, with_position=True)
    return file_rows.touched(to_replace(positioned), target.log, candidates)
