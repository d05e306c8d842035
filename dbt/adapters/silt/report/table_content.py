"""Reads the page's data of a table from its log, and summarises the table's files."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.silt.engine.commands.maintenance import bins
from dbt.adapters.silt.engine.kernel.files import stats_json
from dbt.adapters.silt.engine.kernel.files.bounds import Bounds, column_bounds
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.maintenance.bins import TARGET_FILE_SIZE
from dbt.adapters.silt.engine.kernel.maintenance.vacuum import END
from dbt.adapters.silt.engine.kernel.table.clustering import clustering_columns, logical_paths
from dbt.adapters.silt.engine.kernel.table.expressions import Column
from dbt.adapters.silt.engine.kernel.table.keys import table_keys
from dbt.adapters.silt.engine.kernel.table.schema import StructType
from dbt.adapters.silt.engine.kernel.transaction import lineage
from dbt.adapters.silt.report import log_reading
from dbt.adapters.silt.report.log_reading import History, Removed, Version

_MOST_COLUMNS: Final = 3
_MOST_RANGES: Final = 48

BOUNDS: Final = (1_000_000, 4_000_000, 16_000_000, 64_000_000, 256_000_000, 1_000_000_000)
"""The upper bounds, in bytes, of the groups of files by size; the last group has no upper bound."""

_MOST_PARTITIONS: Final = 100


@dataclass(frozen=True)
class Overlap:
    """The ranges of a column in the files.

    Attributes:
        column: its name, with dots between a struct and its member.
        files: the number of files with a known range.
        mean: the mean number of files that the range of a file overlaps, including the file itself; 1 is perfect.
        most: the largest number of files that may contain the same value.
        ranges: the ends of the ranges of some files by their ranks among all ends, from 0 to 1.
    """

    column: str
    files: int
    mean: float
    most: int
    ranges: tuple[tuple[float, float], ...]


def overlaps(snapshot: Snapshot, keys: Sequence[str]) -> list[Overlap]:
    """Measures the columns that the table is clustered by and its keys, or its first column if it has neither.

    Args:
        keys: the columns that a project declares unique.

    Raises:
        CorruptLogError: if the table's clustering columns cannot be read.
    """
    if snapshot.num_files < 2:
        return []
    paths = _chosen(snapshot, keys)
    files = snapshot.files.combine_chunks()
    bounds = column_bounds(files, snapshot.metadata, [Column(path) for path in paths])
    found = ((path, bounds.get(Column(path))) for path in paths)
    measured = [_overlap(".".join(path), each) for path, each in found if each is not None and each.order is not None]
    return [each for each in measured if each is not None]


def _chosen(snapshot: Snapshot, keys: Sequence[str]) -> list[tuple[str, ...]]:
    """Returns the columns to measure, by their names; a partition column has its own view."""
    schema = snapshot.schema
    clustered = logical_paths(schema, clustering_columns(snapshot.domains))
    declared = [(name,) for key in table_keys(snapshot.metadata.configuration).values() for name in key.columns]
    named = [*clustered, *declared, *((key,) for key in keys)]
    parted = {name.lower() for name in snapshot.partition_columns}
    known = [path for path in named if path[0] in schema and path[0].lower() not in parted]
    first = [(name,) for name in schema.names if name.lower() not in parted and not _is_nested(schema, name)][:1]
    return list(dict.fromkeys(known or first))[:_MOST_COLUMNS]


def _is_nested(schema: StructType, name: str) -> bool:
    field = schema.field(name)
    return field is None or isinstance(field.type, StructType)


def _overlap(column: str, bounds: Bounds) -> Overlap | None:
    known = pc.and_(pc.is_valid(bounds.minimum), pc.is_valid(bounds.maximum))
    low, high = (_ranks(bounds, known)) if pc.sum(known).as_py() else ([], [])
    if len(low) < 2:
        return None
    starts, ends = sorted(low), sorted(high)
    met = [
        bisect.bisect_right(starts, end) - bisect.bisect_left(ends, start) for start, end in zip(low, high, strict=True)
    ]
    top = max(ends) or 1
    step = max(1, -(-len(low) // _MOST_RANGES))
    shown = sorted(zip(low, high, strict=True))[::step]
    ranges = tuple((round(start / top, 4), round(end / top, 4)) for start, end in shown)
    return Overlap(column, len(low), round(sum(met) / len(met), 2), _deepest(starts, ends), ranges)


def _ranks(bounds: Bounds, known: pa.Array) -> tuple[list[int], list[int]]:
    """Returns the ends of each range by their ranks among all ends."""
    low, high = bounds.minimum.filter(known).to_pylist(), bounds.maximum.filter(known).to_pylist()
    rank = {value: position for position, value in enumerate(sorted({*low, *high}))}
    return [rank[value] for value in low], [rank[value] for value in high]


def _deepest(starts: Sequence[int], ends: Sequence[int]) -> int:
    """Returns the largest number of ranges that overlap at the same point; ranges include their ends."""
    steps = sorted([*((start, -1) for start in starts), *((end, 1) for end in ends)])
    return max(itertools.accumulate(-change for _, change in steps))


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
    count, largest = partitions(snapshot)
    return TableContent(
        snapshot,
        history,
        stats_json.row_count(snapshot.files) if snapshot.num_files else 0,
        _undone(log, history),
        _size_groups(snapshot),
        count,
        largest,
        overlaps(snapshot, keys),
        _small_files(snapshot),
        _dead_files(history, snapshot, log.clock.now_ms()),
    )


def _undone(log: DeltaLog, history: History) -> dict[int, int]:
    steps = lineage.undoing(
        reversed(history.versions), lambda each: lineage.restored_version(log, each.version, each.info)
    )
    return {step.commit.version: step.undone_by.version for step in steps if step.undone_by is not None}


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


def _size_groups(snapshot: Snapshot) -> list[Files]:
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


def _small_files(snapshot: Snapshot) -> Small:
    """Returns the files that OPTIMIZE would pack, by its own rule."""
    if snapshot.num_files < 2 and not _has_vectors(snapshot):
        return Small()
    target = snapshot.properties.target_file_size or TARGET_FILE_SIZE
    chosen = [one for group in bins.by_partition(snapshot, snapshot.files) for one in bins.packed(group, target)]
    return Small(sum(one.num_rows for one in chosen), len(chosen), sum(_size(one) for one in chosen))


def _dead_files(history: History, snapshot: Snapshot, now_ms: int) -> Dead:
    """Returns the removed files that no VACUUM has deleted since, as far as the log shows."""
    retention = snapshot.properties.deleted_file_retention_ms
    vacuumed = max((_vacuumed_before(version, retention) for version in history.versions), default=0)
    left = [each for each in history.removed if each.removed_ms > vacuumed]
    return Dead(_sum(left), _sum(each for each in left if each.removed_ms <= now_ms - retention))


def _vacuumed_before(version: Version, retention_ms: int) -> int:
    """Returns the time before which a VACUUM has deleted removed files; 0 if the commit is not a VACUUM's."""
    return version.timestamp_ms - retention_ms if version.info.operation == END else 0


def _sum(removed: Iterable[Removed]) -> Files:
    sizes: Sequence[int] = [each.size or 0 for each in removed]
    return Files(len(sizes), sum(sizes))


def _size(files: pa.Table) -> int:
    return int(pc.sum(files["size"]).as_py() or 0)


def _has_vectors(snapshot: Snapshot) -> bool:
    return bool(snapshot.files["deletion_vector"].null_count < snapshot.num_files)
