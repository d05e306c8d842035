"""Finds the part of a condition for which files are skipped, by partition values or by statistics."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.scan import skipping
from dbt.adapters.silt.engine.kernel.table.expressions import TRUE, And, Expression, columns


class SkippedBy(Enum):
    """The kind of information in the log that rules a file out."""

    PARTITION_VALUES = "partition values"
    STATISTICS = "statistics"


@dataclass(frozen=True)
class SkipReason:
    """Files in which no row fulfils a part of a condition.

    Attributes:
        part: the part of the condition; parts are applied in order.
        files: the files that it excludes and no earlier part excludes; rows of `Snapshot.files`.
    """

    part: Expression
    by: SkippedBy
    files: pa.Table


@dataclass(frozen=True)
class Skipped:
    """The files that must be read for a condition, and the reasons why other files are skipped."""

    reasons: tuple[SkipReason, ...]
    read: pa.Table


def skipped(snapshot: Snapshot, predicate: Expression) -> Skipped:
    """Returns the snapshot's files that `skipping.prune` keeps, and the reasons for the files that it drops."""
    left, reasons = snapshot.files, []
    for part in _parts(predicate):
        kept = skipping.prune(snapshot, part, left)
        if kept.num_rows < left.num_rows:
            is_kept = pc.is_in(left["path"], value_set=kept["path"].combine_chunks())
            reasons.append(SkipReason(part, _by(part, snapshot), left.filter(pc.invert(is_kept))))
        left = kept
    return Skipped(tuple(reasons), left)


def _parts(predicate: Expression) -> Iterator[Expression]:
    if isinstance(predicate, And):
        for part in predicate.parts:
            yield from _parts(part)
    elif predicate != TRUE:
        yield predicate


def _by(part: Expression, snapshot: Snapshot) -> SkippedBy:
    partitioning = {name.lower() for name in snapshot.partition_columns}
    named = {column.parts[0].lower() for column in columns(part)}
    return SkippedBy.PARTITION_VALUES if named <= partitioning else SkippedBy.STATISTICS
