"""Summarises the files of a table: their sizes, its partitions, small files, and files that are no longer needed."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.silt.engine.commands.maintenance import bins
from dbt.adapters.silt.engine.kernel.files import stats_json
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.maintenance.vacuum import END
from dbt.adapters.silt.report.log_reading import History, Removed, Version

BOUNDS: Final = (1_000_000, 4_000_000, 16_000_000, 64_000_000, 256_000_000, 1_000_000_000)
"""The upper bounds, in bytes, of the groups of files by size; the last group has no upper bound."""

_MOST_PARTITIONS: Final = 100


@dataclass(frozen=True)
class Partition:
    """The files of a partition.

    Attributes:
        values: values of the partition columns, as in the log.
        rows: including rows deleted by deletion vectors, if all files have counts.
    """

    values: tuple[str | None, ...]
    files: int
    bytes: int
    rows: int | None


@dataclass(frozen=True)
class Files:
    """A number of files, and their bytes."""

    files: int = 0
    bytes: int = 0


@dataclass(frozen=True)
class Small:
    """The effect of OPTIMIZE: it would pack `files` into `packed` files."""

    files: int = 0
    packed: int = 0
    bytes: int = 0


@dataclass(frozen=True)
class Dead:
    """The files that the newest version does not need, as far as the log shows which of them still exist.

    Attributes:
        all: all of these files.
        due: the files that VACUUM deletes now, because they are older than the table's retention.
    """

    all: Files
    due: Files


def size_groups(snapshot: Snapshot) -> list[Files]:
    """Returns the number and bytes of the files by size, in the groups of `BOUNDS`."""
    counts, totals = [0] * (len(BOUNDS) + 1), [0] * (len(BOUNDS) + 1)
    for size in snapshot.files["size"].to_pylist():
        group = bisect.bisect_right(BOUNDS, size)
        counts[group] += 1
        totals[group] += size
    return [Files(count, total) for count, total in zip(counts, totals, strict=True)]


def partitions(snapshot: Snapshot) -> tuple[int, list[Partition]]:
    """Returns the number of partitions, and the largest partitions."""
    if not snapshot.partition_columns:
        return 0, []
    names = [snapshot.schema.require(name).physical_name for name in snapshot.partition_columns]
    values = snapshot.files["partition_values"].to_pylist()
    rows = stats_json.num_records(snapshot.files).to_pylist()
    sums: dict[tuple[str | None, ...], list[Any]] = {}
    for each, size, count in zip(values, snapshot.files["size"].to_pylist(), rows, strict=True):
        known = dict(each or ())
        entry = sums.setdefault(tuple(known.get(name) for name in names), [0, 0, 0])
        entry[0], entry[1] = entry[0] + 1, entry[1] + size
        entry[2] = None if count is None or entry[2] is None else entry[2] + count
    found = [Partition(key, *entry) for key, entry in sums.items()]
    return len(found), sorted(found, key=lambda each: -each.bytes)[:_MOST_PARTITIONS]


def small_files(snapshot: Snapshot) -> Small:
    """Returns the files that OPTIMIZE would pack, by its own rule."""
    if snapshot.num_files < 2 and not _has_vectors(snapshot):
        return Small()
    target = snapshot.properties.target_file_size or bins.TARGET_FILE_SIZE
    chosen = [one for group in bins.by_partition(snapshot, snapshot.files) for one in bins.packed(group, target)]
    return Small(sum(one.num_rows for one in chosen), len(chosen), sum(_size(one) for one in chosen))


def dead_files(history: History, snapshot: Snapshot, now_ms: int) -> Dead:
    """Returns the removed files that no VACUUM has deleted since, as far as the log shows."""
    retention = snapshot.properties.deleted_file_retention_ms
    vacuumed = max((_reached(version, retention) for version in history.versions), default=0)
    left = [each for each in history.removed if each.removed_ms > vacuumed]
    return Dead(_sum(left), _sum(each for each in left if each.removed_ms <= now_ms - retention))


def _reached(version: Version, retention_ms: int) -> int:
    """Returns the time before which a VACUUM has deleted removed files; 0 if the commit is not a VACUUM's."""
    return version.timestamp_ms - retention_ms if version.info.operation == END else 0


def _sum(removed: Iterable[Removed]) -> Files:
    sizes: Sequence[int] = [each.size or 0 for each in removed]
    return Files(len(sizes), sum(sizes))


def _size(files: pa.Table) -> int:
    return int(pc.sum(files["size"]).as_py() or 0)


def _has_vectors(snapshot: Snapshot) -> bool:
    return bool(snapshot.files["deletion_vector"].null_count < snapshot.num_files)
