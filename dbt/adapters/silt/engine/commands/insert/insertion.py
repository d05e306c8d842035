"""Runs INSERT: writes the rows as files, and commits them in place of the files that they replace."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.commands.commit import commit, discarded_on_error, replaced_whole
from dbt.adapters.silt.engine.commands.insert.placement import Placed, Placement, place
from dbt.adapters.silt.engine.commands.reading import scan
from dbt.adapters.silt.engine.commands.rows import file_changes, file_rows, marking
from dbt.adapters.silt.engine.commands.rows.file_changes import FileChanges
from dbt.adapters.silt.engine.commands.rows.file_rows import CountedRows, ExpectedRows, Limits
from dbt.adapters.silt.engine.commands.tables import content
from dbt.adapters.silt.engine.commands.target import Outcome, Target, Uncommitted, WriteSettings
from dbt.adapters.silt.engine.commands.writing import change_data, files
from dbt.adapters.silt.engine.commands.writing.change_data import ChangeData
from dbt.adapters.silt.engine.commands.writing.files import Written
from dbt.adapters.silt.engine.kernel.errors import UnsupportedStatementError
from dbt.adapters.silt.engine.kernel.files import stats_json
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.scan import change_feed
from dbt.adapters.silt.engine.kernel.table import active_files
from dbt.adapters.silt.engine.kernel.table.actions import Json
from dbt.adapters.silt.engine.kernel.table.features import check_writable
from dbt.adapters.silt.engine.kernel.table.properties import IsolationLevel
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet, as_strings

OPERATION = "WRITE"

_INSERTED = "__silt_inserted"


@dataclass(frozen=True)
class Replacement:
    """The files and rows that an INSERT replaces.

    Args:
        mode: delta-spark's save mode, `Append` or `Overwrite`.
        removed: the files to remove from the table, rows of the snapshot's files; by default no file.
        opened: the number of files read, unless it is meaningless.
        reads: the parts of the table that the result depends on.
        parameters: the operation's parameters, in addition to the parameters of every INSERT.
        gone: the deleted rows, if they are to be recorded as changes.
    """

    mode: str
    removed: pa.Table | None = None
    opened: int | None = None
    reads: ReadSet = field(default_factory=ReadSet)
    parameters: Mapping[str, Json] = field(default_factory=dict)
    gone: DataFrame | None = None


def write(target: Target, placed: Placed, kept: DataFrame | None = None) -> Written:
    """Writes the query's rows, together with the kept rows of removed files.

    Args:
        kept: rows with the table's current columns.

    Raises:
        As `files.write`.
    """
    check_writable(target.snapshot.protocol, target.name, placed.metadata)
    routable = "true"
    if kept is None:
        rows = placed.df
        inserted = "count(1)"
    else:
        # Columns that only the checks use and the table's new columns are null in the kept rows.
        rows = placed.df.withColumn(_INSERTED, F.expr("true")).unionByName(kept, allowMissingColumns=True)
        inserted, routable = f"count_if({_INSERTED})", f"coalesce({_INSERTED}, false)"
    metrics = {_INSERTED: inserted}
    written = files.write_to(target, rows, placed.metadata, placed.checks, metrics, routable=routable)
    gone = sum(each.rows for each in written.routed)
    return replace(written, metrics={_INSERTED: int(written.metrics[_INSERTED]) - gone}, is_new=kept is None)


def replace_rows(
    target: Target, placed: Placed, parts: Split, replacement: Replacement, settings: WriteSettings
) -> Outcome:
    """Writes the query's rows and the kept rows, records the changes, and commits them in place of the removed files.

    Args:
        parts: the kept rows of rewritten files.

    Raises:
        DataFileChangedError: if a rewritten file no longer matches its entry in the log.
        As `files.write` and `commit`.
    """
    if replacement.gone is None or replacement.removed is None:
        return finish(target, placed, _checked(target, write(target, placed, parts.kept), parts), replacement, settings)
    if any(each.routes for each in target.tests):
        raise UnsupportedStatementError(
            "the table records its changes, so rows that replace others cannot be quarantined",
            table=target.name,
            remedy="Refuse failing rows instead of quarantining them, or append the rows",
        )
    placed = replace(placed, df=change_data.stable(placed.df))
    written = _checked(target, write(target, placed, parts.kept), parts)
    inserted = int(written.metrics[_INSERTED])
    deleted = file_rows.row_count(target, replacement.removed) - (written.rows - inserted)
    changes = file_changes.record(
        target,
        FileChanges(replacement.removed, replacement.removed, written),
        placed.metadata,
        {change_feed.DELETE: replacement.gone, change_feed.INSERT: placed.df},
        {change_feed.DELETE: deleted, change_feed.INSERT: inserted},
    )
    return finish(target, placed, written, replacement, settings, changes.recorded)


def _checked(target: Target, written: Written, parts: Split) -> Written:
    """Returns the written files; deletes them if rows of the rewritten files were lost."""
    with discarded_on_error(target.log, (written,)):
        parts.check(target, written.rows - int(written.metrics[_INSERTED]))
    return written


def finish(
    target: Target,
    placed: Placed,
    written: Written,
    replacement: Replacement,
    settings: WriteSettings,
    recorded: ChangeData | None = None,
) -> Outcome:
    """Commits the written files, the removal of the replaced files, and the change files, if any."""
    snapshot = target.snapshot
    removed = snapshot.files.slice(0, 0) if replacement.removed is None else replacement.removed
    uncommitted = (written,) if recorded is None else (written, recorded)
    with discarded_on_error(target.log, uncommitted):
        is_same = (
            settings.build is not None and not written.routed and _replaces_nothing(target, placed, written, removed)
        )
    if is_same:
        return _commit_unchanged(target, placed, uncommitted, replacement, settings)
    inserted = int(written.metrics[_INSERTED])
    deleted = _deleted(removed, written.rows - inserted)
    now = target.log.clock.now_ms()
    changes = Changes(
        operation=Operation(
            OPERATION,
            _parameters(placed, replacement),
            as_strings(_metrics(written, removed, written.rows - inserted, deleted)),
        ),
        adds=written.adds,
        removes=tuple(add.remove(now) for add in snapshot.add_files(removed)),
        metadata=placed.new_metadata(),
        change_files=() if recorded is None else recorded.files,
    )
    if replacement.reads.whole_table:
        changes = replaced_whole(snapshot, changes, settings)
    committed = commit(target.log, snapshot, changes, replacement.reads, settings, uncommitted)
    return Outcome(
        OPERATION,
        target.name,
        committed.version,
        rows_inserted=inserted,
        rows_deleted=None if replacement.removed is None else deleted,
        files_added=len(changes.adds),
        files_removed=len(changes.removes),
        files_skipped=0 if replacement.opened is None else snapshot.num_files - replacement.opened,
        attempts=committed.attempts,
    )


def _replaces_nothing(target: Target, placed: Placed, written: Written, removed: pa.Table) -> bool:
    """Returns whether a build replaces rows by the same rows; the kept rows of the removed files are in both."""
    if not removed.num_rows or placed.new_metadata() is not None:
        return False
    spark, snapshot = placed.df.sparkSession, target.snapshot
    return content.is_replaced_by_same_rows(spark, target.log, snapshot, removed, snapshot.metadata, written)


def _commit_unchanged(
    target: Target,
    placed: Placed,
    uncommitted: Sequence[Uncommitted],
    replacement: Replacement,
    settings: WriteSettings,
) -> Outcome:
    """Commits that the table has these rows already, and deletes their new files."""
    for each in uncommitted:
        each.discard(target.log)
    changes = Changes(operation=Operation(OPERATION, _parameters(placed, replacement)))
    if replacement.reads.whole_table:
        changes = replaced_whole(target.snapshot, changes, settings)
    # A row that another writer has added meanwhile would be a row that the build does not have.
    settings = replace(settings, commit=replace(settings.commit, isolation_level=IsolationLevel.SERIALIZABLE))
    committed = commit(target.log, target.snapshot, changes, replacement.reads, settings)
    version, attempts = committed.version, committed.attempts
    return Outcome(OPERATION, target.name, version, rows_inserted=0, attempts=attempts, unchanged=True)


def _deleted(removed: pa.Table, copied: int) -> int | None:
    """Returns the number of deleted rows of the removed files, or None if a file's statistics lack its row count."""
    had = stats_json.row_count(removed)
    return None if had is None else had - copied


def _parameters(placed: Placed, replacement: Replacement) -> dict[str, Json]:
    evolution = {"canMergeSchema": True} if placed.evolved else {}
    partition_by = json.dumps(list(placed.metadata.partition_columns), ensure_ascii=False)
    return {"mode": replacement.mode, "partitionBy": partition_by, **replacement.parameters, **evolution}


def _metrics(written: Written, removed: pa.Table, copied: int, deleted: int | None) -> dict[str, int | None]:
    metrics: dict[str, int | None] = {**written.operation_metrics()}
    if removed.num_rows:
        metrics["numRemovedFiles"] = removed.num_rows
        metrics["numRemovedBytes"] = active_files.size(removed)
        metrics["numCopiedRows"] = copied
        metrics["numDeletedRows"] = deleted
    return metrics


def append(
    target: Target,
    query: DataFrame,
    placement: Placement,
    settings: WriteSettings,
    instead_of: pa.Table | None = None,
) -> Outcome:
    """Adds the rows of a query to the table; reads nothing of the table itself.

    Args:
        instead_of: files that an earlier attempt has added, which are removed.

    Raises:
        ColumnNotFoundError, TypeMismatchError: if the query's columns do not fit.
        DataRejectedError: if a row breaks a rule of the table.
        ConcurrentModificationError: if another writer changed the table's schema or properties.
    """
    removed = None if instead_of is None or not instead_of.num_rows else instead_of
    return _insert(target, place(query, target, placement), Replacement("Append", removed), settings)


def overwrite(target: Target, query: DataFrame, placement: Placement, settings: WriteSettings) -> Outcome:
    """Replaces all rows of the table with the rows of a query; raises as `append`, and:

    Raises:
        ConcurrentModificationError: if another writer changed any file of the table.
    """
    everything = Replacement("Overwrite", target.snapshot.files, reads=ReadSet(whole_table=True, transactions=True))
    return _insert(target, place(query, target, placement), everything, settings)


def _insert(target: Target, placed: Placed, replacement: Replacement, settings: WriteSettings) -> Outcome:
    numbered = placed.with_numbers()
    return finish(target, numbered, write(target, numbered), replacement, settings)


LIMITS: Final = Limits()
"""The size up to which candidate files are rewritten without first searching them for rows to replace."""


@dataclass(frozen=True)
class Split:
    """The files that contain replaced rows, and their kept rows.

    Args:
        removed: the rewritten files, rows of the snapshot's files.
        kept: their kept rows, if a file is rewritten.
        gone: their replaced rows, if the table records its changes.
        read: the rows of the removed files, if one is rewritten; their number shows whether a row was lost.
    """

    removed: pa.Table
    kept: DataFrame | None = None
    gone: DataFrame | None = None
    read: CountedRows | ExpectedRows | None = None

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

    def replaced() -> DataFrame:
        return to_replace(scan.read(spark, log, snapshot, candidates, with_position=True))

    if not change_data.is_recorded(snapshot):
        partly = file_rows.to_rewrite(target, candidates, replaced, LIMITS).files
        if not partly.num_rows:
            return Split(partly)
        read = file_rows.counted(spark, target, partly)
        return Split(partly, to_keep(read.frame), read=read)
    found = marking.kept(replaced())
    plan = marking.plan(target, candidates, marking.positions(target, found, candidates), may_stay=False)
    if not plan.files_to_rewrite.num_rows:
        return Split(plan.removed)
    kept = scan.read_to_rewrite(spark, log, snapshot, plan.files_to_rewrite, only=plan.survivors)
    gone = found.select(*map(quote, snapshot.schema.names))
    return Split(plan.removed, kept, gone, ExpectedRows(kept, plan.removed, plan.num_survivors))
