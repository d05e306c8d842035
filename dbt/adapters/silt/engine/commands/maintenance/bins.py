"""Packs files into bins, each to be rewritten as a single file; without Spark.

A bin contains files of the same partition, in order of their size, up to the target size. Files near the target size
are not rewritten, and neither is a file that would be alone in its bin, unless a vector deletes rows of it. Packing
packed files changes nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.silt.engine.commands.reading import partition_match
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.maintenance.bins import SMALL


def by_partition(snapshot: Snapshot, files: pa.Table) -> list[pa.Table]:
    """Groups the files by partition; partition values are compared as values, not as strings."""
    if not snapshot.partition_columns:
        return [files] if files.num_rows else []
    fields = [snapshot.schema.require(name, snapshot.table) for name in snapshot.partition_columns]
    rows: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for row, key in enumerate(partition_match.keys(files, fields)):
        rows[key].append(row)
    return [files.take(pa.array(group, pa.int64())) for group in rows.values()]


def packed(files: pa.Table, target_size: int) -> list[pa.Table]:
    """Returns bins of a partition's files; each bin is to be rewritten as a single file."""
    has_vector = pc.is_valid(files["deletion_vector"])
    chosen = files.filter(pc.or_(pc.less(files["size"], target_size * SMALL), has_vector)).sort_by("size")
    sizes, vectors = chosen["size"].to_pylist(), pc.is_valid(chosen["deletion_vector"]).to_pylist()
    bins = list(_ranges(sizes, target_size))
    return [chosen.slice(first, last - first) for first, last in bins if last - first > 1 or vectors[first]]


def _ranges(sizes: Sequence[int], target_size: int) -> Iterator[tuple[int, int]]:
    """Yields runs of the ascending sizes, each with a sum up to the target size; a larger file is its own run."""
    first, total = 0, 0
    for position, size in enumerate(sizes):
        if position > first and total + size > target_size:
            yield first, position
            first, total = position, 0
        total += size
    if first < len(sizes):
        yield first, len(sizes)
