"""Deletes rows by deletion vectors: finds their positions and decides how to treat each file.

A command finds the rows to delete in a single pass (`kept`, `positions`). A file that would keep no rows is removed. A
file that would keep few rows is rewritten, because every later scan would read the deleted rows too. Any other file is
kept, with a vector that deletes the rows (`plan`, `changes`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
from pyroaring import BitMap64
from pyspark.sql import DataFrame

from dbt.adapters.silt.engine.commands.commit import discarded_on_error
from dbt.adapters.silt.engine.commands.reading import positions as row_positions
from dbt.adapters.silt.engine.commands.rows import file_rows
from dbt.adapters.silt.engine.commands.rows.file_changes import FileChanges, Marked
from dbt.adapters.silt.engine.commands.rows.file_rows import Limits
from dbt.adapters.silt.engine.commands.spark import errors
from dbt.adapters.silt.engine.commands.spark.frames import computed_once
from dbt.adapters.silt.engine.commands.target import Target
from dbt.adapters.silt.engine.commands.writing import change_data
from dbt.adapters.silt.engine.commands.writing.files import Written
from dbt.adapters.silt.engine.kernel.errors import ConcurrentDropError
from dbt.adapters.silt.engine.kernel.files import deletion_vectors, stats_json
from dbt.adapters.silt.engine.kernel.files.deletion_vectors import Positions
from dbt.adapters.silt.engine.kernel.files.statistics import from_footers
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.storage.store import ObjectMissing
from dbt.adapters.silt.engine.kernel.table import active_files
from dbt.adapters.silt.engine.kernel.table.actions import AddFile
from dbt.adapters.silt.engine.kernel.table.features import has_feature
from dbt.adapters.silt.engine.kernel.table.paths import decode_path

FEATURE = "deletionVectors"

# Rewriting the remaining rows pays off at the second scan that need not read the deleted rows.
_REWRITE_ABOVE = 0.8
_USUAL_ROW_BYTES = 800
"""The assumed size of an unknown row: a generous guess."""


@dataclass(frozen=True)
class Plan:
    """The files that lose rows, grouped by the way in which they are changed.

    Args:
        deleted: the rows to delete, by file.
        files_emptied: the files that keep no row.
        files_to_rewrite: the files that keep too few rows to be worth a vector.
        files_to_mark: the files that get a vector.
        survivors: the rows that the files to rewrite keep, by file.
        vectors: all deleted rows of the files that get a vector.
        num_records: the row count of the touched files.
    """

    deleted: Positions
    files_emptied: pa.Table
    files_to_rewrite: pa.Table
    files_to_mark: pa.Table
    survivors: Positions = field(default_factory=dict)
    vectors: Positions = field(default_factory=dict)
    num_records: int = 0

    @property
    def touched(self) -> pa.Table:
        """All files that lose rows."""
        return pa.concat_tables([self.files_emptied, self.files_to_rewrite, self.files_to_mark])

    @property
    def removed(self) -> pa.Table:
        """The files to remove from the table."""
        return pa.concat_tables([self.files_emptied, self.files_to_rewrite])

    @property
    def num_deleted(self) -> int:
        return sum(map(len, self.deleted.values()))

    @property
    def num_survivors(self) -> int:
        return sum(map(len, self.survivors.values()))


def writes_deletion_vectors(snapshot: Snapshot) -> bool:
    """Returns whether rows of the table are deleted by deletion vectors instead of rewriting their files."""
    return snapshot.properties.enable_deletion_vectors and has_feature(snapshot.protocol, FEATURE)


def finds_rows_by_position(snapshot: Snapshot) -> bool:
    """Returns whether positions of deleted rows are found first, for a deletion vector or for recorded changes.

    The found rows can be read again: change files hold exactly the rows that are deleted from the data files.
    """
    return writes_deletion_vectors(snapshot) or change_data.is_recorded(snapshot)


def kept(found: DataFrame) -> DataFrame:
    """Keeps the rows to delete, with their positions, so that every read returns the same rows; runs a job.

    The deleted rows are then the rows that are written or recorded, even with a nondeterministic condition (`rand()`),
    and the files are not read a second time for them.
    """
    with errors.mapped():
        return computed_once(found)


def positions(target: Target, rows: DataFrame, chosen: pa.Table) -> dict[str, BitMap64]:
    """Returns the positions of rows in their files, all of them in `chosen`; runs a job."""
    found = row_positions.collect(rows, target.log, chosen)
    return {each.path: deletion_vectors.of_positions(each.positions) for each in found}


def plan(target: Target, candidates: pa.Table, deleted: Positions, may_stay: bool = True) -> Plan:
    """Decides how to treat each file that loses rows; no vector may already delete any of the rows.

    If the table does not use deletion vectors, no file is kept.

    Args:
        candidates: files that include the files with these rows; rows of the snapshot's files.
        may_stay: whether a file may be kept without some of its rows.
    """
    touched = file_rows.at(candidates, deleted)
    before = deletion_vectors.read_all(target.log.store, touched, target.name)
    paths = touched["path"].to_pylist()
    sizes = dict(zip(paths, file_rows.records(target, touched), strict=True))
    after = {path: before[path] | deleted[path] if path in before else deleted[path] for path in paths}
    shares = [len(after[path]) / sizes[path] for path in paths]
    most = _REWRITE_ABOVE if may_stay and writes_deletion_vectors(target.snapshot) else 0.0
    emptied = touched.filter(pa.array([share >= 1 for share in shares], pa.bool_()))
    rewritten = touched.filter(pa.array([most < share < 1 for share in shares], pa.bool_()))
    marked = touched.filter(pa.array([share <= most for share in shares], pa.bool_()))
    survivors = {path: after[path].flip(0, sizes[path]) for path in rewritten["path"].to_pylist()}
    vectors = {path: after[path] for path in marked["path"].to_pylist()}
    return Plan(deleted, emptied, rewritten, marked, survivors, vectors, sum(sizes.values()))


def gathered(rows: DataFrame, planned: Plan, new: int, limits: Limits) -> DataFrame:
    """Gathers few rows in one task, so that each task that found some does not write a small file of its own.

    Args:
        rows: the survivors of `planned`, and new rows.
        new: the maximum number of new rows; they are already computed, or cheap to compute.
    """
    known = planned.num_records
    row_bytes = active_files.size(planned.touched) / known if known else _USUAL_ROW_BYTES
    size = active_files.size(planned.files_to_rewrite) + new * row_bytes
    return rows.coalesce(1) if size <= limits.at_once else rows.hint("rebalance")


def changes(target: Target, opened: pa.Table, planned: Plan, written: Written | None) -> FileChanges:
    """Returns the changes of the files; writes the vectors of the kept files.

    Args:
        opened: the files whose rows were read.
        written: the kept rows of rewritten files, and new rows; deleted if the vectors cannot be written.

    Raises:
        ConcurrentDropError: if the table no longer exists.
        StorageError: if the storage failed.
    """
    with discarded_on_error(target.log, () if written is None else (written,)):
        return FileChanges(opened, planned.removed, written, _marked(target, planned))


def _marked(target: Target, planned: Plan) -> Marked | None:
    adds = target.snapshot.add_files(planned.files_to_mark)
    if not adds:
        return None
    texts = _wide_statistics(target, adds)
    try:
        vectors = deletion_vectors.write(
            target.log.store, target.log.clock, [planned.vectors[add.path] for add in adds]
        )
    except ObjectMissing as error:
        raise ConcurrentDropError("the table was dropped", table=target.name) from error
    marked = (
        replace(add, stats=text, deletion_vector=vector, data_change=True)
        for add, text, vector in zip(adds, texts, vectors, strict=True)
    )
    return Marked(planned.files_to_mark, tuple(marked))


def _wide_statistics(target: Target, adds: Sequence[AddFile]) -> list[str]:
    """Returns the files' statistics with a row count and wide bounds, as a file with a deletion vector requires."""
    texts = pa.array([add.stats for add in adds], pa.string())
    counts = stats_json.read(texts, {stats_json.NUM_RECORDS: None})[stats_json.NUM_RECORDS].to_pylist()
    lacking = [decode_path(add.path) for add, count in zip(adds, counts, strict=True) if count is None]
    snapshot = target.snapshot
    found = from_footers(target.log.store, lacking, snapshot.schema, snapshot.properties, snapshot.partition_columns)
    read = {name: of_file.json for name, of_file in found.items()}
    return [stats_json.widened(read.get(decode_path(add.path), str(add.stats))) for add in adds]
