"""Describes the active files of a table for upkeep and OPTIMIZE, from its log alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.silt.engine.kernel.files import stats_json
from dbt.adapters.silt.engine.kernel.files.bounds import column_bounds
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.maintenance.bins import FileState
from dbt.adapters.silt.engine.kernel.table import active_files
from dbt.adapters.silt.engine.kernel.table.clustering import (
    CUBE_ID,
    PROVIDER,
    Path,
    clustered_by,
    clustering_columns,
    is_clustered_by,
    logical_paths,
)
from dbt.adapters.silt.engine.kernel.table.expressions import Column
from dbt.adapters.silt.engine.kernel.table.paths import is_absolute


def files_of(snapshot: Snapshot, *, of_others: bool = False) -> list[FileState]:
    """Returns the active files of a table.

    Of a table that is not clustered, only the statistics of files with a deletion vector are read.

    Args:
        of_others: also the files of another table that it is a shallow clone of.

    Raises:
        CorruptCheckpointError: if these statistics cannot be read.
        CorruptLogError: if the clustering columns cannot be read.
    """
    by = clustering_columns(snapshot.domains)
    files = snapshot.files if by else snapshot.files_without_statistics
    keys = active_files.keys_of(files).to_pylist()
    marked = _marked_shares(snapshot, files, keys)
    spans = _spans(snapshot, files, logical_paths(snapshot.schema, by[:1]))
    columns = clustered_by(snapshot.schema, snapshot.domains)
    names = ("size", "partition_values", "tags", "clustering_provider")
    rows = zip(keys, *(files[name].to_pylist() for name in names), spans, strict=True)
    return [
        FileState(
            key,
            size,
            marked.get(key, 0.0),
            tuple(sorted(values or ())),
            *_ownership(provider, dict(tags or ()), columns),
            span,
        )
        for key, size, values, tags, provider, span in rows
        if of_others or not is_absolute(key)
    ]


def _ownership(provider: str | None, tags: Mapping[str, str | None], columns: Sequence[str]) -> tuple[str, bool, bool]:
    """Returns the cube of a file, and whether it is foreign or stale; without a provider, tags mean nothing."""
    if provider not in (None, PROVIDER):
        return "", True, False
    is_cube = provider is not None and tags.get(CUBE_ID) is not None
    if is_cube and is_clustered_by(tags, columns):
        return str(tags[CUBE_ID]), False, False
    return "", False, is_cube


def _spans(snapshot: Snapshot, files: pa.Table, columns: Iterable[Path]) -> list[tuple[int, int] | None]:
    """Returns for each file the ends of its values of the first column, by their ranks; None if they are unknown."""
    column = next(map(Column, columns), None)
    bounds = None if column is None else column_bounds(files, snapshot.metadata, [column]).get(column)
    if bounds is None or bounds.order is None:
        return [None] * files.num_rows
    low, high = bounds.minimum.to_pylist(), bounds.maximum.to_pylist()
    rank = {value: place for place, value in enumerate(sorted({each for each in (*low, *high) if each is not None}))}
    ends = zip(low, high, strict=True)
    return [None if first is None or last is None else (rank[first], rank[last]) for first, last in ends]


def _marked_shares(snapshot: Snapshot, files: pa.Table, keys: Sequence[str]) -> dict[str, float]:
    """Returns the share of deleted rows of each file with a deletion vector; 0 if the log does not say how many rows
    the file has.
    """
    vectors = pc.is_valid(files["deletion_vector"]).to_pylist()
    if not any(vectors):
        return {}
    chosen = snapshot.active.with_keys([key for key, has_vector in zip(keys, vectors, strict=True) if has_vector])
    rows, deleted = stats_json.num_records(chosen).to_pylist(), chosen["deletion_vector"].to_pylist()
    shares = (vector["cardinality"] / number if number else 0.0 for number, vector in zip(rows, deleted, strict=True))
    return dict(zip(active_files.keys_of(chosen).to_pylist(), shares, strict=True))
