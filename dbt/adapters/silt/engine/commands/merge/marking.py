"""Runs a MERGE with deletion vectors: changed rows are deleted by a vector and written to new files.

Also used for a table that records its changes, since the rows to record are then known individually, and for SKIP EQUAL
ROWS, since files whose rows do not change are then not rewritten.

Matching rows are joined once, and the pairs are kept with their resulting rows. The deleted rows of the target, the
unmatched rows of the source and the written rows are all derived from these pairs, so that a nondeterministic condition
(`rand()`) cannot delete one row and write a different row.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Final

import pyarrow as pa
from pyroaring import BitMap64
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.commands.commit import discarded_on_error
from dbt.adapters.silt.engine.commands.merge import clauses as merge_clauses
from dbt.adapters.silt.engine.commands.merge import join, source
from dbt.adapters.silt.engine.commands.merge.clauses import (
    ACTION,
    COPY,
    IN_SOURCE,
    IN_TARGET,
    Clauses,
    SettingsByClause,
)
from dbt.adapters.silt.engine.commands.merge.equal_rows import EQUAL, with_action
from dbt.adapters.silt.engine.commands.merge.join import SOURCE_ROW, Sides, Source
from dbt.adapters.silt.engine.commands.reading import positions, scan
from dbt.adapters.silt.engine.commands.reading.positions import FILE, ROW, FoundRows
from dbt.adapters.silt.engine.commands.rows import file_changes, file_rows, marking
from dbt.adapters.silt.engine.commands.rows.file_changes import FileChanges
from dbt.adapters.silt.engine.commands.rows.file_rows import Limits
from dbt.adapters.silt.engine.commands.writing import change_data, files, numbering
from dbt.adapters.silt.engine.commands.writing.checks import Check
from dbt.adapters.silt.engine.commands.writing.files import Written
from dbt.adapters.silt.engine.kernel.errors import MultipleSourceRowsError
from dbt.adapters.silt.engine.kernel.files import deletion_vectors
from dbt.adapters.silt.engine.kernel.files.deletion_vectors import Positions
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.scan import change_feed
from dbt.adapters.silt.engine.kernel.table.actions import Metadata
from dbt.adapters.silt.engine.sql.ast import MatchKind, RowVerb

_PLACE: Final = (FILE, ROW, IN_SOURCE, SOURCE_ROW)


@dataclass(frozen=True)
class Merged:
    """The file changes, and the row count of each clause by its number; `copied` rows took no clause.

    `numbered` is the table's metadata after identity columns assigned numbers. `equal` rows were skipped as equal.
    """

    changes: FileChanges
    counts: dict[int, int]
    copied: int = 0
    numbered: Metadata | None = None
    equal: int = 0

    def of(self, clauses: Clauses, verb: RowVerb, *kinds: MatchKind) -> int:
        """Returns the number of rows to which clauses with these kinds and that action applied."""
        return sum(self.counts.get(number, 0) for kind in kinds for number in clauses.numbers(kind, verb))


def stable(sides: Sides) -> Sides:
    """Returns the sides of the join, with a source that returns the same rows in every read."""
    if sides.source.rows is not None:
        return sides
    kept = source.stabilise(sides.source.frame, sides.plan, sides.target.snapshot.schema)
    return replace(sides, source=Source(kept.frame, kept.rows))


def mark(sides: Sides, opened: pa.Table, metadata: Metadata, limits: Limits) -> Merged:
    """Runs the MERGE.

    Args:
        sides: both sides, with a stable source.
        opened: the files whose rows are read.
        metadata: the table's new metadata.

    Raises:
        MultipleSourceRowsError: if clauses take more than one pair of some row of the target.
        As `files.write` and `marking.changes`.
    """
    sides = replace(sides, source=sides.source.numbered)
    pairs, rules = _pairs(sides)
    by_clause, equal = _rows_by_clause(sides, pairs)
    counts = {number: sum(map(len, to_delete.values())) for number, to_delete in by_clause.items()}
    plan = marking.plan(sides.target, sides.chosen, _together(by_clause.values()))
    changed = pairs.filter(f"{ACTION} not in ({', '.join(map(str, (*sides.clauses.deletions, COPY, EQUAL)))})")
    new, metadata = _inserted(sides, pairs, metadata)
    parts = [each for each in (new, _left(sides, plan)) if each is not None]
    if any(number not in sides.clauses.deletions for number in counts):
        parts.append(changed.drop(*_PLACE))
    written = None
    if parts:
        added = plan.num_deleted + (0 if new is None else sides.source.rows or 0)
        rows = marking.gathered(reduce(DataFrame.unionAll, parts), plan, added, limits)
        written = _write(sides, rows, metadata, rules)
        _check(sides, written, counts, plan.num_survivors)
        inserts = (c.number for c in sides.clauses.all if c.clause.kind is MatchKind.NOT_MATCHED)
        counts |= {number: int(written.metrics[str(number)]) for number in inserts}
    changes = marking.changes(sides.target, opened, plan, written)
    if change_data.is_recorded(sides.target.snapshot) and by_clause:
        changes = _recorded(sides, changes, metadata, by_clause, counts, (changed, new))
    return Merged(changes, counts, plan.num_survivors, metadata, equal)


def _pairs(sides: Sides) -> tuple[DataFrame, tuple[Check, ...]]:
    """Returns the new values of the target's matching or changed rows, each with its `_PLACE`; runs a job."""
    how = "left_outer" if sides.plan.of(MatchKind.NOT_MATCHED_BY_SOURCE) else "inner"
    joined = sides.target_rows(with_position=True).join(sides.source_rows(), F.expr(sides.on()), how)
    settings = merge_clauses.settings_by_clause(joined, sides.clauses, sides.target.name)
    joined = with_action(joined, sides.clauses, settings)
    rows, rules = _new_rows(sides, joined.filter(f"{ACTION} > {COPY} or {IN_SOURCE}"), _PLACE, settings)
    return marking.kept(_only_written_values(rows) if sides.plan.skips_equal_rows else rows), rules


def _only_written_values(rows: DataFrame) -> DataFrame:
    """Returns the pairs, of which most may be equal: these keep their places, and no values."""

    def value(name: str) -> Column:
        column = F.col(quote(name))
        return column if name in (*_PLACE, ACTION, IN_TARGET) else F.when(F.col(ACTION) > COPY, column).alias(name)

    return rows.select(*map(value, rows.columns))


def _rows_by_clause(sides: Sides, pairs: DataFrame) -> tuple[Mapping[int, Positions], int]:
    """Returns the positions of the target's changed rows, by their clause, and the number of equal rows; runs a job."""
    found = positions.collect(pairs, sides.target.log, sides.chosen, by=ACTION)
    by_clause: dict[int, dict[str, BitMap64]] = defaultdict(dict)
    for each in found:
        by_clause[each.value][each.path] = deletion_vectors.of_positions(each.positions)
    changes = {number: rows for number, rows in by_clause.items() if number > COPY}
    if not sides.plan.deletes_every_match and _taken_twice(found):
        raise join.multiple_matches(sides) or MultipleSourceRowsError(
            "a row of the table is matched by more than one row of the source", table=sides.target.name
        )
    return changes, sum(len(each.positions) for each in found if each.value == EQUAL)


def _taken_twice(found: Sequence[FoundRows]) -> bool:
    """Returns whether clauses take more than one pair of some row; pairs without a clause do not count."""
    taken = [each for each in found if each.value != COPY]
    rows = _together({each.path: deletion_vectors.of_positions(each.positions)} for each in taken)
    return sum(len(each.positions) for each in taken) > sum(map(len, rows.values()))


def _together(parts: Iterable[Positions]) -> Positions:
    """Returns the union of the positions."""
    together: dict[str, BitMap64] = {}
    for part in parts:
        for file, rows in part.items():
            together[file] = together[file] | rows if file in together else rows
    return together


def _inserted(sides: Sides, pairs: DataFrame, metadata: Metadata) -> tuple[DataFrame | None, Metadata]:
    """Returns the inserted rows, computed only once if they are also recorded, and the resulting metadata."""
    if not sides.plan.of(MatchKind.NOT_MATCHED):
        return None, metadata
    new = join.inserted(sides, pairs.filter(IN_SOURCE).select(SOURCE_ROW))
    rows, metadata = numbering.numbered(_new_rows(sides, new)[0], metadata, merge_clauses.unnumbered(sides.clauses))
    return (change_data.stable(rows) if change_data.is_recorded(sides.target.snapshot) else rows), metadata


def _left(sides: Sides, plan: marking.Plan) -> DataFrame | None:
    """Returns the remaining rows of removed files."""
    if not plan.files_to_rewrite.num_rows:
        return None
    target = sides.target
    left = scan.read_to_rewrite(sides.spark, target.log, target.snapshot, plan.files_to_rewrite, only=plan.survivors)
    left = left.withColumn(IN_TARGET, F.lit(True)).alias(sides.plan.target_alias)
    both = left.join(sides.source_rows().filter("false"), F.lit(False), "left_outer")
    return _new_rows(sides, both.withColumn(ACTION, F.lit(COPY)))[0]


def _recorded(
    sides: Sides,
    changes: FileChanges,
    metadata: Metadata,
    by_clause: Mapping[int, Positions],
    counts: Mapping[int, int],
    new: tuple[DataFrame, DataFrame | None],
) -> FileChanges:
    """Writes the change files and adds them to the changes.

    Args:
        counts: row counts by clause, including inserted rows.
        new: the updated rows, and the inserted rows.
    """
    target, deletions = sides.target, sides.clauses.deletions

    def before(deleted: bool) -> DataFrame:
        to_delete = _together(rows for number, rows in by_clause.items() if (number in deletions) is deleted)
        chosen = file_rows.at(sides.chosen, to_delete)
        return scan.read(sides.spark, target.log, target.snapshot, chosen, only=to_delete)

    def count(deleted: bool) -> int:
        return sum(counts[number] for number in by_clause if (number in deletions) is deleted)

    updated, inserted = new
    rows = {change_feed.DELETE: before(True), change_feed.UPDATE_PREIMAGE: before(False)}
    rows |= {change_feed.UPDATE_POSTIMAGE: updated}
    expected = {change_feed.DELETE: count(True)}
    expected |= dict.fromkeys((change_feed.UPDATE_PREIMAGE, change_feed.UPDATE_POSTIMAGE), count(False))
    if inserted is not None:
        rows[change_feed.INSERT] = inserted
        expected[change_feed.INSERT] = sum(count for number, count in counts.items() if number not in by_clause)
    present = {kind: frame for kind, frame in rows.items() if expected[kind]}
    return file_changes.record(target, changes, metadata, present, {kind: expected[kind] for kind in present})


def _new_rows(
    sides: Sides, joined: DataFrame, carried: Sequence[str] = (), settings: SettingsByClause | None = None
) -> tuple[DataFrame, tuple[Check, ...]]:
    target = sides.target
    return merge_clauses.new_rows(joined, sides.clauses, target.snapshot.properties, target.name, carried, settings)


def _write(sides: Sides, rows: DataFrame, metadata: Metadata, rules: Sequence[Check]) -> Written:
    numbers = [COPY, *(clause.number for clause in sides.clauses.all if not clause.deletes)]
    metrics = {str(number): f"count_if({ACTION} = {number})" for number in numbers}
    return files.write_to(sides.target, rows, metadata, rules, metrics)


def _check(sides: Sides, written: Written, counts: Mapping[int, int], left: int) -> None:
    """Checks that each row that a vector deletes, but the MERGE does not, was written once."""
    updates = {number: count for number, count in counts.items() if number not in sides.clauses.deletions}
    found = {number: int(written.metrics[str(number)]) for number in (*updates, COPY)}
    with discarded_on_error(sides.target.log, (written,)):
        if found != {**updates, COPY: left}:
            what = f"a MERGE wrote rows {found} of its clauses instead of {updates}"
            raise file_rows.miscounted(sides.target, sides.chosen, what)
