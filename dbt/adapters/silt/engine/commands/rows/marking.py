"""Deletes rows by deletion vectors: finds their positions and decides for each file what to do.

A verb finds the rows that go, in one pass (`kept`, `positions`). A file that would be left without rows is
removed; one that would be left with few is rewritten, because every later scan would pay for the rows that are gone;
all others stay, with a vector that deletes the rows (`plan`, `changes`).
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
from dbt.adapters.silt.engine.commands.rows.selection import Limits
from dbt.adapters.silt.engine.commands.spark import errors
from dbt.adapters.silt.engine.commands.spark.computed_once import computed_once
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

# Rewriting what is left is paid for by the second scan that need not read what is gone.
_REWRITE_ABOVE = 0.8
_USUAL_ROW_BYTES = 800
"""Of a row of which nothing is known: a generous guess."""


@dataclass(frozen=True)
class Plan:
    """The files that lose rows, by what is to be done with each.

    Args:
        deleted: the rows to delete, by file.
        files_emptied: the files that keep no row.
        files_to_rewrite: the files that keep too few rows to be worth a vector.
        files_to_mark: the files that get a vector.
        survivors: the rows that the files to rewrite keep, by file.
        vectors: all rows that are not in the table any more, of the files that stay.
        num_records: how many rows the touched files hold.
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
        """The files that leave the table."""
        return pa.concat_tables([self.files_emptied, self.files_to_rewrite])

    @property
    def num_deleted(self) -> int:
        return sum(map(len, self.deleted.values()))

    @property
    def num_survivors(self) -> int:
        return sum(map(len, self.survivors.values()))


def writes_deletion_vectors(snapshot: Snapshot) -> bool:
    """Whether rows of the table are deleted by deletion vectors, rather than by rewriting their files."""
    return snapshot.properties.enable_deletion_vectors and has_feature(snapshot.protocol, FEATURE)


def finds_rows_by_position(snapshot: Snapshot) -> bool:
    """Whether rows that go are found by their positions first: to be deleted by a vector, or recorded as changes.

    What was found once can be read again: change files hold exactly the rows that go from the data files.
    """
    return writes_deletion_vectors(snapshot) or change_data.is_recorded(snapshot)


def all_positions(target: Target, chosen: pa.Table) -> dict[str, BitMap64]:
    """The positions of all rows of files."""
    marked = deletion_vectors.read_all(target.log.store, chosen, target.name)
    sizes = zip(chosen["path"].to_pylist(), file_rows.records(target, chosen), strict=True)
    return {path: marked.get(path, BitMap64()).flip(0, size) for path, size in sizes}


def kept(found: DataFrame) -> DataFrame:
    """Rows that go, with their positions, each found once and the same whenever it is read; runs a job.

    What is marked is then what is written or recorded, even where a condition's answer differs from time to time
    (`rand()`), and the files are not read a second time for it.
    """
    with errors.mapped():
        return computed_once(found)


def positions(target: Target, rows: DataFrame, chosen: pa.Table) -> dict[str, BitMap64]:
    """The positions of rows in their files, which are among `chosen`; runs a job."""
    found = row_positions.collect(rows, target.log, chosen)
    return {each.path: deletion_vectors.of_positions(each.positions) for each in found}


def plan(target: Target, candidates: pa.Table, deleted: Positions, may_stay: bool = True) -> Plan:
    """Decides for each file that loses rows what to do with it; none of the rows is one that a vector deletes already.

    Where the table does not ask for deletion vectors, no file stays.

    Args:
        candidates: files that hold them, and others; rows of the snapshot's files.
        may_stay: whether a file may stay without some of its rows.
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
    """Few rows, such that they do not become as many small files as there were tasks to find them.

    Args:
        rows: the survivors of `planned`, and new rows.
        new: how many new rows there are at most; they are computed already, or little work.
    """
    known = planned.num_records
    row_bytes = active_files.size(planned.touched) / known if known else _USUAL_ROW_BYTES
    size = active_files.size(planned.files_to_rewrite) + new * row_bytes
    return rows.coalesce(1) if size <= limits.at_once else rows.hint("rebalance")


def changes(target: Target, opened: pa.Table, planned: Plan, written: Written | None) -> FileChanges:
    """The changes of the files; writes the vectors of those that stay.

    Args:
        opened: the files whose rows were looked at.
        written: the rows that the rewritten files keep, and new ones; deleted where the vectors cannot be written.

    Raises:
        ConcurrentDropError: the table is not there any more.
        StorageError: the storage failed.
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
    """The files' statistics, as a file that has a vector must have them."""
    texts = pa.array([add.stats for add in adds], pa.string())
    counts = stats_json.read(texts, {stats_json.NUM_RECORDS: None})[stats_json.NUM_RECORDS].to_pylist()
    lacking = [decode_path(add.path) for add, count in zip(adds, counts, strict=True) if count is None]
    snapshot = target.snapshot
    found = from_footers(target.log.store, lacking, snapshot.schema, snapshot.properties, snapshot.partition_columns)
    read = {name: of_file.json for name, of_file in found.items()}
    return [stats_json.widened(read.get(decode_path(add.path), str(add.stats))) for add in adds]
