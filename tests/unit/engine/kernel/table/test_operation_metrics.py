"""The number of rows that a commit changed, by its metrics."""

from __future__ import annotations

import pytest

from dbt.adapters.silt.engine.kernel.log.commit_file import counts_of
from dbt.adapters.silt.engine.kernel.table.actions import CommitInfo
from dbt.adapters.silt.engine.kernel.write_counts import WriteCounts

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
        ("CREATE TABLE AS SELECT", {"numFiles": "1", "numOutputRows": "3"}, (3, None, None)),
        ("STREAMING UPDATE", {"numOutputRows": "3"}, (3, None, None)),
        ("WRITE", {"numOutputRows": "9", "numCopiedRows": "4", "numDeletedRows": "2"}, (5, None, 2)),
        ("MERGE", MERGE, (1, 2, 0)),
        ("UPDATE", {"numUpdatedRows": "6", "numCopiedRows": "4"}, (None, 6, None)),
        ("DELETE", {"numDeletedRows": "6", "numCopiedRows": "4"}, (None, None, 6)),
        ("OPTIMIZE", {"numOutputRows": "9", "numAddedFiles": "1"}, (None, None, None)),
        ("SET TBLPROPERTIES", {}, (None, None, None)),
        ("WRITE", {"numOutputRows": "many"}, (None, None, None)),
        ("WRITE", None, (None, None, None)),
    ],
)
def test_rows_are_counted_by_the_metrics_of_the_operation(
    operation: str, metrics: dict[str, str] | None, expected: tuple[int | None, ...]
) -> None:
    assert counts_of(CommitInfo(operation=operation, operation_metrics=metrics)).rows == expected


def test_numeric_and_string_metrics_count_the_same() -> None:
    info = CommitInfo(operation="WRITE", operation_metrics={"numOutputRows": 3})  # type: ignore[dict-item]
    assert counts_of(info).rows == (3, None, None)


def test_attempts_are_counted_if_the_commit_records_them() -> None:
    assert counts_of(CommitInfo(commit_attempts=2, statement_attempts=3)) == WriteCounts(
        attempts=2, statement_attempts=3
    )


def test_a_total_includes_every_metric_that_any_part_has() -> None:
    parts = [WriteCounts(rows_inserted=1, attempts=1), WriteCounts(rows_inserted=2, rows_updated=5)]
    assert WriteCounts.total_rows(parts) == WriteCounts(rows_inserted=3, rows_updated=5)
    assert WriteCounts.total_rows([]) == WriteCounts()
