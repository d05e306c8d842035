"""The number of rows that a commit changed, by its metrics."""

from __future__ import annotations

import pytest

from dbt.adapters.silt.engine.kernel.log.commit_file import RowsChanged
from dbt.adapters.silt.engine.kernel.table.actions import CommitInfo

MERGE = {
    "numTargetRowsInserted": "1",
    "numTargetRowsUpdated": "2",
    "numTargetRowsDeleted": "0",
    "numTargetRowsCopied": "7",
    "numOutputRows": "10",
}


@pytest.mark.parametrize(
    ("operation", "metrics", "expected"),
    [
        ("CREATE TABLE AS SELECT", {"numFiles": "1", "numOutputRows": "3"}, RowsChanged(3)),
        ("STREAMING UPDATE", {"numOutputRows": "3"}, RowsChanged(3)),
        ("WRITE", {"numOutputRows": "9", "numCopiedRows": "4", "numDeletedRows": "2"}, RowsChanged(5, None, 2)),
        ("MERGE", MERGE, RowsChanged(1, 2, 0)),
        ("UPDATE", {"numUpdatedRows": "6", "numCopiedRows": "4"}, RowsChanged(None, 6)),
        ("DELETE", {"numDeletedRows": "6", "numCopiedRows": "4"}, RowsChanged(None, None, 6)),
        ("OPTIMIZE", {"numOutputRows": "9", "numAddedFiles": "1"}, RowsChanged()),
        ("SET TBLPROPERTIES", {}, RowsChanged()),
        ("WRITE", {"numOutputRows": "many"}, RowsChanged()),
        ("WRITE", None, RowsChanged()),
    ],
)
def test_rows_are_counted_by_the_metrics_of_the_operation(
    operation: str, metrics: dict[str, str] | None, expected: RowsChanged
) -> None:
    assert RowsChanged.of(CommitInfo(operation=operation, operation_metrics=metrics)) == expected


def test_numeric_and_string_metrics_count_the_same() -> None:
    info = CommitInfo(operation="WRITE", operation_metrics={"numOutputRows": 3})  # type: ignore[dict-item]
    assert RowsChanged.of(info) == RowsChanged(3)


def test_a_total_includes_every_metric_that_any_part_has() -> None:
    parts = [RowsChanged(1, None, None), RowsChanged(2, 5, None)]
    assert RowsChanged.total(parts) == RowsChanged(3, 5, None)
    assert RowsChanged.total([]) == RowsChanged()
