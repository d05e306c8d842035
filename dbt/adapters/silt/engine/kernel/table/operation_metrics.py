"""How many rows a commit changed, by the metrics in its commitInfo.

Source: the reference's names of `operationMetrics`, which ours are too. They count rows where the operation did; a
commit that tells nothing of rows (a change of properties, a clone, OPTIMIZE) has none to tell of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from dbt.adapters.silt.engine.kernel.table.actions import CommitInfo

# The rows that these put out are no new ones, or are counted by other names as well.
_REWRITING: Final = frozenset(("MERGE", "UPDATE", "DELETE", "OPTIMIZE"))


@dataclass(frozen=True)
class RowsChanged:
    """Rows that a commit, or several, inserted, updated and deleted; None where not known or of no meaning."""

    inserted: int | None = None
    updated: int | None = None
    deleted: int | None = None

    @classmethod
    def of(cls, info: CommitInfo) -> RowsChanged:
        """What a commit says."""
        metrics: Mapping[str, object] = info.operation_metrics or {}
        return cls(
            inserted=_first(metrics, "numTargetRowsInserted") if info.operation in _REWRITING else _new(metrics),
            updated=_first(metrics, "numTargetRowsUpdated", "numUpdatedRows"),
            deleted=_first(metrics, "numTargetRowsDeleted", "numDeletedRows"),
        )

    @classmethod
    def total(cls, parts: Iterable[RowsChanged]) -> RowsChanged:
        """The sum; a kind of change of which no part knows is not known."""
        known = list(parts)
        return cls(
            _sum(each.inserted for each in known),
            _sum(each.updated for each in known),
            _sum(each.deleted for each in known),
        )


def _new(metrics: Mapping[str, object]) -> int | None:
    """The rows of a write without those that it only copied."""
    written = _first(metrics, "numOutputRows")
    return None if written is None else written - (_first(metrics, "numCopiedRows") or 0)


def _first(metrics: Mapping[str, object], *names: str) -> int | None:
    """The first of the metrics that is there as a number."""
    for name in names:
        text = str(metrics.get(name, ""))
        if text.isascii() and text.isdigit():
            return int(text)
    return None


def _sum(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
