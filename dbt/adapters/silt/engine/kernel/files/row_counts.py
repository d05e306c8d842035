"""Counts the rows of files by their statistics and deletion vectors.

Source: the Delta specification, sections "Per-file Statistics" and "Deletion Vector Descriptor Schema".
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.silt.engine.kernel.files import stats_json


def row_count(files: pa.Table) -> int | None:
    """Counts the rows of all files without deleted rows.

    Returns None if a file's count is missing or smaller than the number of its deleted rows.

    Args:
        files: rows of `Snapshot.files`.
    """
    left = pc.subtract(num_records(files), pc.fill_null(_cardinalities(files), 0))
    if left.null_count or pc.any(pc.less(left, 0)).as_py():
        return None
    return pc.sum(left).as_py() or 0


def num_records(files: pa.Table) -> pa.Array:
    """Returns the row count of each file, including rows deleted by its deletion vector; null if unknown."""
    stats = files["stats"].combine_chunks() if files.num_rows else pa.array([], pa.string())
    return stats_json.read(stats, {stats_json.NUM_RECORDS: None})[stats_json.NUM_RECORDS]


def deleted_rows(files: pa.Table) -> int:
    """Counts the rows deleted by the deletion vectors of all files."""
    return pc.sum(_cardinalities(files)).as_py() or 0


def _cardinalities(files: pa.Table) -> pa.Array:
    return pc.struct_field(files["deletion_vector"].combine_chunks(), "cardinality")
