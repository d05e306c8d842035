"""Reads rows with the ids by which row tracking knows them: in its files, or else in the log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.silt.engine.arrow.read import TableRead
from dbt.adapters.silt.engine.kernel.files import deletion_vectors
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.rows.scan import ArrowScan
from dbt.adapters.silt.engine.kernel.table.actions import AddFile
from dbt.adapters.silt.engine.kernel.table.column_mapping import COLUMN_ID
from dbt.adapters.silt.engine.kernel.table.properties import TableProperties
from dbt.adapters.silt.engine.kernel.table.schema import PHYSICAL_NAME, PrimitiveType, StructField, StructType
from dbt.adapters.silt.engine.kernel.transaction.branch_log import BranchLog
from dbt.adapters.silt.engine.kernel.transaction.row_tracking import keeps_row_ids, materialized_columns

_NO_ID: Final = 0
_MOST_ROWS: Final = 1 << 33
"""More rows than a data file has."""


def share_ids(before: DeltaLog, after: DeltaLog, snapshots: Sequence[Snapshot]) -> bool:
    """Returns whether a row has the same id in two versions of a table: of one line, or of a branch and its table."""
    is_branch = isinstance(after, BranchLog) and after.main.line == before.line
    is_one_line = is_branch or after.line == before.line
    is_one_table = len({each.metadata.id for each in snapshots}) == 1
    return is_one_line and is_one_table and all(map(_has_ids, snapshots))


def _has_ids(snapshot: Snapshot) -> bool:
    # Columns that are found by ids in files have none for the ids of rows.
    is_by_name = TableProperties(snapshot.metadata.configuration).column_mapping_mode != "id"
    return is_by_name and keeps_row_ids(snapshot)


def rows_with_ids(
    log: DeltaLog, snapshot: Snapshot, names: Sequence[str], files: Sequence[AddFile], first_unknown: int
) -> tuple[pa.Table, pa.Array]:
    """Returns the rows of files of a version, and their ids.

    Args:
        first_unknown: the first of the numbers that stand for the ids of new rows on a branch, which have no ids yet.

    Raises:
        SiltError: as for `read`.
    """
    scan = _with_stored_ids(ArrowScan.of(snapshot, names), snapshot)
    tables, ids = [scan.schema.empty_table()], [pa.array([], pa.int64())]
    for file in files:
        table, of_file = _of_file(log, snapshot, scan, file, first_unknown)
        tables.append(table)
        ids.append(of_file)
        first_unknown += _MOST_ROWS
    return pa.concat_tables(tables).select(list(names)), pa.concat_arrays(ids)


def _with_stored_ids(scan: ArrowScan, snapshot: Snapshot) -> ArrowScan:
    """Returns a scan that also reads the column of row ids, which is not in the table's schema."""
    columns = materialized_columns(snapshot.metadata)
    assert columns is not None
    field = StructField(columns[0], PrimitiveType("long"), metadata={PHYSICAL_NAME: columns[0], COLUMN_ID: _NO_ID})
    schema = StructType((*snapshot.schema, field))
    metadata = replace(snapshot.metadata, schema_string=schema.to_json())
    return replace(scan, metadata=metadata, names=(*scan.names, columns[0]))


def _of_file(
    log: DeltaLog, snapshot: Snapshot, scan: ArrowScan, file: AddFile, first_unknown: int
) -> tuple[pa.Table, pa.Array]:
    # The id of a row is its place in the file, with the rows that a deletion vector deletes.
    whole = TableRead(log, snapshot, replace(scan, files=(replace(file, deletion_vector=None),))).whole()
    places = pa.array(range(whole.num_rows), pa.int64())
    first = first_unknown if file.base_row_id is None else file.base_row_id
    ids = pc.coalesce(whole.column(whole.num_columns - 1).combine_chunks(), pc.add(places, first))
    if file.deletion_vector is None:
        return whole, ids
    deleted = deletion_vectors.read(log.store, [file.deletion_vector], log.name)[file.deletion_vector.unique_id]
    kept = pc.invert(pc.is_in(places, value_set=pa.array(list(deleted), pa.int64())))
    return whole.filter(kept), ids.filter(kept)
