"""Counts the rows that a commit changed, by the metrics in its `commitInfo`.

Source: the names of delta-spark's `operationMetrics`, which this engine uses too. A commit of an operation that changes
no rows (a change of properties, a clone, OPTIMIZE) has no such counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from dbt.adapters.silt.engine.kernel.table.actions import CommitInfo

# The output rows of these operations are not new rows, or have further metrics.
_REWRITING: Final = frozenset(("MERGE", "UPDATE", "DELETE", "OPTIMIZE"))

_MOST_DIGITS: Final = 19


@dataclass(frozen=True)
class RowsChanged:
    """Numbers of rows that commits inserted, updated and deleted; None if unknown or meaningless."""

    inserted: int | None = None
    updated: int | None = None
    deleted: int | None = None

    @classmethod
    def of(cls, info: CommitInfo) -> RowsChanged:
        """Returns the counts of a commit."""
        metrics: Mapping[str, object] = info.operation_metrics or {}
        return cls(
            inserted=_first(metrics, "numTargetRowsInserted") if info.operation in _REWRITING else _new(metrics),
            updated=_first(metrics, "numTargetRowsUpdated", "numUpdatedRows"),
            deleted=_first(metrics, "numTargetRowsDeleted", "numDeletedRows"),
        )

    @classmethod
    def total(cls, parts: Iterable[RowsChanged]) -> RowsChanged:
        """Returns the sum; a count that no part has is None."""
        known = list(parts)
        return cls(
            _sum(each.inserted for each in known),
            _sum(each.updated for each in known),
            _sum(each.deleted for each in known),
        )


def _new(metrics: Mapping[str, object]) -> int | None:
    """Returns the number of rows of a write, without the rows that it only copied."""
    written = _first(metrics, "numOutputRows")
    return None if written is None else written - (_first(metrics, "numCopiedRows") or 0)


def _first(metrics: Mapping[str, object], *names: str) -> int | None:
    """Returns the first of the metrics that is present as a number of at most 19 digits."""
    for name in names:
        text = str(metrics.get(name, ""))
        if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS:
            return int(text)
    return None


def _sum(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
