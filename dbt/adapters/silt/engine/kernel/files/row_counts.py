"""Counts the rows of files by their statistics and deletion vectors.

Source: the Delta specification, sections "Per-file Statistics" and "Deletion Vector Descriptor Schema".
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.silt.engine.kernel.files import stats_json


def row_count(files: pa.Table) -> int | None:
    """The rows of all files together, without deleted ones; None where a file has no count.

    Args:
        files: rows of `Snapshot.files`.
    """
    counts = num_records(files)
    return None if counts.null_count else (pc.sum(counts).as_py() or 0) - deleted_rows(files)


def num_records(files: pa.Table) -> pa.Array:
    """The rows of each file, with those deleted by its deletion vector; null where it has no count."""
    stats = files["stats"].combine_chunks() if files.num_rows else pa.array([], pa.string())
    return stats_json.read(stats, {stats_json.NUM_RECORDS: None})[stats_json.NUM_RECORDS]


def deleted_rows(files: pa.Table) -> int:
    """The rows deleted by deletion vectors, of all files together."""
    cardinality = pc.struct_field(files["deletion_vector"].combine_chunks(), "cardinality")
    return pc.sum(cardinality).as_py() or 0
