"""Reads the page's data of a table from its log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dbt.adapters.silt.engine.kernel.files import row_counts
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.transaction import lineage
from dbt.adapters.silt.report import clustering, file_layout, log_reading
from dbt.adapters.silt.report.clustering import Overlap
from dbt.adapters.silt.report.file_layout import Dead, Files, Partition, Small
from dbt.adapters.silt.report.log_reading import History


@dataclass(frozen=True)
class TableContent:
    """The content of the newest version of a table.

    Attributes:
        rows: their number, if all files have counts.
        undone: the versions that a RESTORE has undone -> the version of the RESTORE.
        partition_count: number of all partitions; `partitions` contains the largest.
    """

    snapshot: Snapshot
    history: History
    rows: int | None
    undone: Mapping[int, int]
    sizes: Sequence[Files]
    partition_count: int
    partitions: Sequence[Partition]
    overlaps: Sequence[Overlap]
    small: Small
    dead: Dead


def content_of(log: DeltaLog, keys: Sequence[str]) -> TableContent:
    """Reads the content of a table.

    Raises:
        NotATableError, TableDamagedError, UnsupportedFeatureError, StorageError: if the log cannot be read.
    """
    snapshot = log.snapshot()
    history = log_reading.history(log, snapshot.version)
    count, largest = file_layout.partitions(snapshot)
    return TableContent(
        snapshot,
        history,
        row_counts.row_count(snapshot.files) if snapshot.num_files else 0,
        _undone(log, history),
        file_layout.size_groups(snapshot),
        count,
        largest,
        clustering.overlaps(snapshot, keys),
        file_layout.small_files(snapshot),
        file_layout.dead_files(history, snapshot, log.clock.now_ms()),
    )


def _undone(log: DeltaLog, history: History) -> dict[int, int]:
    steps = lineage.undoing(
        reversed(history.versions), lambda each: lineage.restored_version(log, each.version, each.info)
    )
    return {step.commit.version: step.undone_by.version for step in steps if step.undone_by is not None}
