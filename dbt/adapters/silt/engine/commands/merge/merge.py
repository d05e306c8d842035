"""Runs MERGE INTO: finds the files that take part, writes them and commits.

A small target takes a single job: all candidate files are joined with the source and rewritten. For a larger target,
the source is made stable first, the range of its keys rules out files, and if many remain, a job finds touched files.
A MERGE that only inserts never rewrites a file. A MERGE into a table with deletion vectors rewrites only the files that
keep few rows (`marking`). The rows of a table that records its changes, and the rows of a MERGE that skips equal rows,
are found by position in the same way.

Multiple matches of a row of the target are detected without a separate job: there are then more joined rows with a row
of the target than the files hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from dbt.adapters.silt.engine.commands.merge import clauses as merge_clauses
from dbt.adapters.silt.engine.commands.merge import join
from dbt.adapters.silt.engine.commands.merge import marking as merge_marking
from dbt.adapters.silt.engine.commands.merge import plan as merge_plan
from dbt.adapters.silt.engine.commands.merge import source as merge_source
from dbt.adapters.silt.engine.commands.merge.clauses import ACTION, COPY, IGNORE, IN_TARGET, Clauses
from dbt.adapters.silt.engine.commands.merge.join import Matched, Sides, Source
from dbt.adapters.silt.engine.commands.merge.marking import Merged
from dbt.adapters.silt.engine.commands.merge.plan import MergePlan
from dbt.adapters.silt.engine.commands.merge.separation import separated, separates
from dbt.adapters.silt.engine.commands.rows import file_changes, file_rows, marking
from dbt.adapters.silt.engine.commands.rows.file_changes import FileChanges
from dbt.adapters.silt.engine.commands.rows.file_rows import Limits
from dbt.adapters.silt.engine.commands.spark.types import query_schema
from dbt.adapters.silt.engine.commands.target import Outcome, Target, WriteSettings, with_schema
from dbt.adapters.silt.engine.commands.writing import files, numbering, store_assignment
from dbt.adapters.silt.engine.commands.writing.files import Written
from dbt.adapters.silt.engine.kernel.scan import skipping
from dbt.adapters.silt.engine.kernel.table import active_files, storable_schema
from dbt.adapters.silt.engine.kernel.table.actions import Metadata
from dbt.adapters.silt.engine.kernel.table.expressions import TRUE, And, Expression
from dbt.adapters.silt.engine.kernel.table.features import check_writable
from dbt.adapters.silt.engine.kernel.table.schema import StructType
from dbt.adapters.silt.engine.kernel.table.storable_schema import check_storable
from dbt.adapters.silt.engine.kernel.transaction.changes import Operation, ReadSet, as_strings
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitResult
from dbt.adapters.silt.engine.sql.ast import MatchKind, RowVerb

OPERATION = "MERGE"

_PAIRS = "pairs"


@dataclass(frozen=True)
class _Found:
    """The source and the files that take part.

    Args:
        sides: the source, and the files to rewrite (of an insert-only MERGE: to read).
        opened: all files whose rows are read.
        predicate: the predicate by which the MERGE reads the target.
        matched: the matching rows of the source; None if they were not determined.
    """

    sides: Sides
    opened: pa.Table
    predicate: Expression
    matched: Matched | None = None


@dataclass(frozen=True)
class Computed:
    """A MERGE whose files are written, but not committed.

    Args:
        metadata: the table's new metadata.
        elapsed_ms: how long it took, in milliseconds.
    """

    found: _Found
    result: Merged
    metadata: Metadata
    elapsed_ms: int

    @property
    def changes(self) -> FileChanges:
        return self.result.changes

    @property
    def operation(self) -> Operation:
        parameters = merge_plan.operation_parameters(self.found.sides.plan)
        return Operation(OPERATION, parameters, _metrics(self.found, self.result, self.elapsed_ms))

    @property
    def pairs_each_source_row_once(self) -> bool:
        """Whether each row of the source is inserted, or updates a single row of the target.

        Known of a MERGE that skips equal rows, and updates and inserts without conditions.
        """
        clauses = self.found.sides.clauses
        inserted, updated = (self.result.of(clauses, verb, *MatchKind) for verb in (RowVerb.INSERT, RowVerb.UPDATE))
        return inserted + updated + self.result.equal == self.found.sides.source.rows

    def outcome(self, committed: CommitResult | None) -> Outcome:
        """Returns the outcome of the statement; `committed` is None if nothing had to be committed."""
        target, clauses = self.found.sides.target, self.found.sides.clauses
        return Outcome(
            OPERATION,
            target.name,
            target.snapshot.version if committed is None else committed.version,
            rows_inserted=self.result.of(clauses, RowVerb.INSERT, *MatchKind),
            rows_updated=self.result.of(clauses, RowVerb.UPDATE, *MatchKind),
            rows_deleted=self.result.of(clauses, RowVerb.DELETE, *MatchKind),
            files_added=self.changes.added,
            files_removed=self.changes.removed.num_rows,
            files_skipped=target.snapshot.num_files - self.changes.opened.num_rows,
            attempts=0 if committed is None else committed.attempts,
        )


def merge(
    spark: SparkSession,
    target: Target,
    source: DataFrame,
    plan: MergePlan,
    settings: WriteSettings,
    limits: Limits | None = None,
) -> Outcome:
    """Updates, deletes and inserts rows of the target, as the clauses say for the rows of the source.

    Raises:
        ConcurrentModificationError: if another writer's commit conflicts.
        As `compute`.
    """
    if not separates(target, source, plan):
        made = compute(spark, target, source, plan, limits)
        return made.outcome(_commit(made, settings))
    good, stored = separated(spark, target, source)
    try:
        made = compute(spark, target, good, plan, limits)
        return made.outcome(_commit(made, settings, stored))
    finally:
        stored.discard(target.log)


def compute(
    spark: SparkSession, target: Target, source: DataFrame, plan: MergePlan, limits: Limits | None = None
) -> Computed:
    """Writes the files of a MERGE without committing them.

    Raises:
        InvalidStatementError and its subclasses: if the clauses do not fit together, or do not fit the tables' columns.
        DataRejectedError: if a new row breaks a rule of the table, or does not fit into its columns.
        MultipleSourceRowsError: if clauses take more than one pair of some row of the target.
        DataFileMissingError, TableDamagedError: if a data file cannot be read.
    """
    started = target.log.clock.now_ms()
    plan = merge_source.as_stored(plan, source, target.snapshot.schema)
    metadata, clauses = _checked(target, plan, query_schema(source))
    bounds = limits or Limits()
    sides = Sides(spark, target, clauses, _unread_source(source, plan, bounds), target.snapshot.files)
    found = _find(join.with_boolean_conditions(sides), source, bounds)
    found = _stabilized(found)
    result = _run(found, metadata, bounds)
    return Computed(found, result, result.numbered or metadata, target.log.clock.now_ms() - started)


def _checked(target: Target, plan: MergePlan, source: StructType) -> tuple[Metadata, Clauses]:
    """Returns the target's new metadata, and the clauses resolved against it."""
    merge_plan.check(plan, target.name)
    storable_schema.check_names(target.snapshot.schema, target.name)
    storable_schema.check_names(source, target.name, "source's column")
    metadata = _evolved(target, plan, source)
    check_writable(target.snapshot.protocol, target.name, metadata)
    new = StructType.from_json(metadata.schema_string)
    return metadata, merge_clauses.number_clauses(plan, target.snapshot.schema, new, source, target.name)


def _commit(made: Computed, settings: WriteSettings, stored: Written | None = None) -> CommitResult | None:
    """Commits the files.

    Args:
        stored: the stored rows of the source, if some of them were routed.
    """
    found, target, changes = made.found, made.found.sides.target, made.changes
    if stored is not None and stored.routed:
        changes = replace(changes, routed=replace(stored, adds=()))
    reads = ReadSet(predicates=(found.predicate,), whole_table=found.predicate == TRUE)
    changed = None if made.metadata == target.snapshot.metadata else made.metadata
    return file_changes.commit_files(target, made.operation, changes, reads, settings, changed)


def _evolved(target: Target, plan: MergePlan, source: StructType) -> Metadata:
    """Returns the target's metadata with the source's new columns that the statement asks for and sets."""
    old = target.snapshot.schema
    if not plan.schema_evolution:
        return target.snapshot.metadata
    named = {name[-1].lower() for name in merge_plan.assigned_names(plan)}
    wanted = source if merge_plan.has_star(plan) else StructType(tuple(f for f in source if f.name.lower() in named))
    new = store_assignment.evolve(old, wanted)
    if new == old:
        return target.snapshot.metadata
    check_storable(new, target.name, old)
    return with_schema(target, new)


def _unread_source(source: DataFrame, plan: MergePlan, limits: Limits) -> Source:
    is_small = plan.source_bytes is not None and plan.source_bytes <= limits.single_task
    return Source(source.alias(plan.source_alias), is_small=is_small)


def _find(sides: Sides, source: DataFrame, limits: Limits) -> _Found:
    """Chooses the files that take part, as far as the search pays off."""
    plan, snapshot = sides.plan, sides.target.snapshot
    whole = bool(plan.of(MatchKind.NOT_MATCHED_BY_SOURCE))
    predicate = TRUE if whole else plan.target_predicate
    candidates = skipping.prune(snapshot, predicate)
    if active_files.size(candidates) <= limits.direct:
        return _Found(replace(sides, chosen=candidates), candidates, predicate)
    stable = merge_source.stabilise(source, plan, snapshot.schema)
    if not whole:
        predicate = And((predicate, stable.predicate))
        candidates = skipping.prune(snapshot, predicate)
        if active_files.size(candidates) > limits.at_once:
            stable = merge_source.with_values(stable, snapshot.schema, snapshot.partition_columns)
            predicate = And((plan.target_predicate, stable.predicate))
            candidates = skipping.prune(snapshot, predicate)
    rows = Source(stable.frame, stable.rows, stable.rows <= limits.single_task_rows, stable.size)
    found = _Found(replace(sides, source=rows, chosen=candidates), candidates, predicate)
    if active_files.size(candidates) <= limits.at_once or plan.inserts_only or _is_by_position(sides):
        return found
    return _touched(found, limits)


def _touched(found: _Found, limits: Limits) -> _Found:
    """Restricts the files to the files that must be rewritten; runs a job."""
    sides = found.sides
    if not join.is_worthwhile(sides, limits):
        return replace(found, sides=replace(sides, chosen=join.touched(sides)))
    sides = replace(sides, source=sides.source.numbered)
    files_with_matches, matched = join.find(sides)
    return replace(found, sides=replace(sides, chosen=files_with_matches), matched=matched)


def _stabilized(found: _Found) -> _Found:
    """Makes the source stable if rows are found by position, since that takes more than one job."""
    if found.sides.plan.inserts_only or not _is_by_position(found.sides):
        return found
    return replace(found, sides=merge_marking.stable(found.sides))


def _is_by_position(sides: Sides) -> bool:
    return sides.plan.skips_equal_rows or marking.finds_rows_by_position(sides.target.snapshot)


def _run(found: _Found, metadata: Metadata, limits: Limits) -> Merged:
    sides, plan = found.sides, found.sides.plan
    nothing = sides.chosen.slice(0, 0)
    if plan.inserts_only or sides.chosen.num_rows == 0:
        if not plan.of(MatchKind.NOT_MATCHED):
            return Merged(FileChanges(found.opened, nothing), {}, 0)
        return _insert(found, metadata)
    if _is_by_position(sides):
        return _unless_unchanged(found, merge_marking.mark(sides, found.opened, metadata, limits))
    if plan.deletes_every_match and len(plan.clauses) == 1:
        return _delete(found, metadata)
    total = file_rows.row_count(sides.target, sides.chosen)
    result, pairs = _rewrite(found, metadata, limits, total)
    if pairs > total:
        file_changes.drop_written(sides.target, result.changes)
        found = _unambiguous(found)
        result, pairs = _joined(found, metadata, join.joined(found.sides, limits, once=True), total)
    if pairs != total:
        file_changes.drop_written(sides.target, result.changes)
        what = f"{pairs} rows of {total} came out of the join of a MERGE"
        raise file_rows.miscounted(sides.target, sides.chosen, what)
    return _unless_unchanged(found, result)


def _unambiguous(found: _Found) -> _Found:
    """Makes the source stable and checks that at most one of its rows would change each row of the target.

    Raises:
        MultipleSourceRowsError: if several rows would.
    """
    sides = merge_marking.stable(found.sides)
    error = join.multiple_matches(sides)
    if error is not None:
        raise error
    return replace(found, sides=sides, matched=None)


def _insert(found: _Found, metadata: Metadata) -> Merged:
    """Adds the source's unmatched rows; removes no file."""
    sides = found.sides
    inserts = tuple(clause for clause in sides.clauses.all if clause.clause.kind is MatchKind.NOT_MATCHED)
    clauses = replace(sides.clauses, all=inserts, old=StructType())
    rows = join.unmatched_source(sides, clauses).filter(f"{ACTION} <> {IGNORE}")
    result, _ = _write([rows], clauses, found, metadata)
    return replace(result, changes=replace(result.changes, removed=sides.chosen.slice(0, 0)))


def _delete(found: _Found, metadata: Metadata) -> Merged:
    """Keeps the target's unmatched rows; the number of matches of the deleted rows does not matter."""
    sides = found.sides
    clauses = replace(sides.clauses, all=())
    read = file_rows.counted(sides.spark, sides.target, sides.chosen)
    result, _ = _write([join.unmatched_target(sides, read.frame)], clauses, found, metadata)
    file_changes.check_read(sides.target, result.changes, read, result.copied)
    deleted = file_rows.row_count(sides.target, sides.chosen) - result.copied
    (number,) = sides.clauses.deletions
    return _unless_unchanged(found, replace(result, counts={number: deleted}))


def _rewrite(found: _Found, metadata: Metadata, limits: Limits, total: int) -> tuple[Merged, int]:
    """Joins and writes; also returns how many joined rows have a row of the target; the files hold `total`."""
    if found.matched is not None:
        result, observed = _write(join.parts(found.sides, found.matched), found.sides.clauses, found, metadata)
        if found.matched.is_same(observed):
            return _each_deleted_once(found.sides.clauses, result, int(observed[_PAIRS]), total)
        file_changes.drop_written(found.sides.target, result.changes)
    return _joined(replace(found, matched=None), metadata, join.joined(found.sides, limits), total)


def _joined(found: _Found, metadata: Metadata, joined: DataFrame, total: int) -> tuple[Merged, int]:
    """Writes the joined rows; as `_rewrite`."""
    clauses = found.sides.clauses
    result, observed = _write([joined.filter(f"{ACTION} <> {IGNORE}")], clauses, found, metadata)
    return _each_deleted_once(clauses, result, int(observed[_PAIRS]), total)


def _each_deleted_once(clauses: Clauses, result: Merged, pairs: int, total: int) -> tuple[Merged, int]:
    if not clauses.plan.deletes_every_match:
        return result, pairs
    # A row with two matches is in two pairs, and is deleted once.
    (number,) = clauses.numbers(MatchKind.MATCHED, RowVerb.DELETE)
    unmatched = pairs - result.counts[number]
    return replace(result, counts=result.counts | {number: total - unmatched}), total


def _write(
    parts: Sequence[DataFrame], clauses: Clauses, found: _Found, metadata: Metadata
) -> tuple[Merged, Mapping[str, Any]]:
    """Writes all rows except deleted rows, which the same pass counts; also returns the observed metrics."""
    target = found.sides.target
    carried = () if found.matched is None else join.CARRIED
    made = [merge_clauses.new_rows(rows, clauses, target.snapshot.properties, target.name, carried) for rows in parts]
    new_rows, rules = reduce(DataFrame.unionAll, (rows for rows, _ in made)), made[0][1]
    new_rows, metadata = numbering.numbered(new_rows, metadata, merge_clauses.unnumbered(clauses))
    numbers = [clause.number for clause in clauses.all]
    metrics = {str(number): f"count_if({ACTION} = {number})" for number in (COPY, *numbers)}
    metrics[_PAIRS] = f"count_if({IN_TARGET})"
    if found.matched is not None:
        metrics |= join.metrics()
    gone = ", ".join(map(str, clauses.deletions))
    only = f"{ACTION} not in ({gone})" if gone else None
    written = files.write_to(target, new_rows, metadata, rules, metrics, only)
    counts = {number: int(written.metrics[str(number)]) for number in numbers}
    changes = FileChanges(found.opened, found.sides.chosen, written)
    return Merged(changes, counts, int(written.metrics[str(COPY)]), metadata), written.metrics


def _unless_unchanged(found: _Found, result: Merged) -> Merged:
    """Returns the result; drops the written files if it contains no changes."""
    if any(result.counts.values()):
        return result
    return replace(result, changes=file_changes.drop_written(found.sides.target, result.changes), copied=0)


def _metrics(found: _Found, result: Merged, elapsed_ms: int) -> dict[str, str]:
    """Returns `operationMetrics` by delta-spark's names."""
    clauses, changes = found.sides.clauses, result.changes
    by_source = MatchKind.NOT_MATCHED_BY_SOURCE
    return as_strings(
        {
            "numSourceRows": found.sides.source.rows,
            "numTargetRowsInserted": result.of(clauses, RowVerb.INSERT, *MatchKind),
            "numTargetRowsUpdated": result.of(clauses, RowVerb.UPDATE, *MatchKind),
            "numTargetRowsMatchedUpdated": result.of(clauses, RowVerb.UPDATE, MatchKind.MATCHED),
            "numTargetRowsNotMatchedBySourceUpdated": result.of(clauses, RowVerb.UPDATE, by_source),
            "numTargetRowsDeleted": result.of(clauses, RowVerb.DELETE, *MatchKind),
            "numTargetRowsMatchedDeleted": result.of(clauses, RowVerb.DELETE, MatchKind.MATCHED),
            "numTargetRowsNotMatchedBySourceDeleted": result.of(clauses, RowVerb.DELETE, by_source),
            "numTargetRowsCopied": result.copied,
            "numOutputRows": 0 if changes.written is None else changes.written.rows,
            "numTargetFilesAdded": changes.added,
            "numTargetFilesRemoved": changes.removed.num_rows,
            "numTargetBytesAdded": 0 if changes.written is None else changes.written.size,
            "numTargetBytesRemoved": active_files.size(changes.removed),
            "numTargetChangeFilesAdded": len(changes.change_files),
            **changes.vector_metrics("numTarget"),
            "executionTimeMs": elapsed_ms,
        }
    )
