"""Finds the files that contain the changes of a version, and the changed rows in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pyroaring import BitMap64

from dbt.adapters.silt.engine.kernel.errors import CorruptLogError
from dbt.adapters.silt.engine.kernel.files import deletion_vectors
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.scan.change_feed import VersionChanges
from dbt.adapters.silt.engine.kernel.table.actions import AddCDCFile, AddFile, RemoveFile

INSERT: Final = "insert"
DELETE: Final = "delete"
UPDATE_PREIMAGE: Final = "update_preimage"
UPDATE_POSTIMAGE: Final = "update_postimage"


@dataclass(frozen=True)
class ChangedFile:
    """A file with changed rows of a version.

    Attributes:
        change_type: the change type of all rows, unless the file itself contains the type of each row.
        timestamp_ms: the time of the version's commit.
        rows: the positions of the changed rows; by default all rows that its deletion vector does not delete.
    """

    file: AddFile
    change_type: str | None
    version: int
    timestamp_ms: int
    rows: BitMap64 | None = None

    @property
    def kind(self) -> tuple[bool, bool]:
        """The kind of file; files of the same kind can be read together."""
        return self.change_type is None, self.rows is None

    @property
    def facts(self) -> tuple[str | None, int, int]:
        """The values of the columns that its rows have besides the table's columns."""
        return self.change_type, self.version, self.timestamp_ms


def changed_files(log: DeltaLog, changes: VersionChanges, end: Snapshot) -> Iterator[ChangedFile]:
    """Yields the files with the changes of a version.

    Args:
        end: the version whose columns the changes have.

    Raises:
        CorruptLogError: if the version removed files of a partitioned table without recording their partitions.
        CorruptDeletionVectorError: if a deletion vector cannot be read.
    """
    yield from _files(changes, end)
    yield from _revised_files(log, changes, end)


def _files(changes: VersionChanges, end: Snapshot) -> Iterator[ChangedFile]:
    version, at = changes.version, changes.timestamp_ms
    for change_file in changes.change_files:
        yield ChangedFile(_of_change_file(change_file), None, version, at)
    for add in changes.inserted:
        yield ChangedFile(add, INSERT, version, at)
    for remove in changes.deleted:
        yield ChangedFile(_of_remove(remove, end, version), DELETE, version, at)


def _revised_files(log: DeltaLog, changes: VersionChanges, end: Snapshot) -> Iterator[ChangedFile]:
    """Yields files whose changes are only the rows by which their old and new deletion vectors differ."""
    pairs = [(each.after, each.before.deletion_vector, each.after.deletion_vector) for each in changes.revised]
    vectors = [vector for _, *both in pairs for vector in both if vector is not None]
    bitmaps = deletion_vectors.read(log.store, vectors, end.table) if vectors else {}
    for file, before, after in pairs:
        old = BitMap64() if before is None else bitmaps[before.unique_id]
        new = BitMap64() if after is None else bitmaps[after.unique_id]
        for change_type, rows in ((DELETE, new - old), (INSERT, old - new)):
            if rows:
                yield ChangedFile(file, change_type, changes.version, changes.timestamp_ms, rows)


def _of_change_file(file: AddCDCFile) -> AddFile:
    return AddFile(file.path, file.partition_values, file.size, 0, data_change=False, tags=file.tags)


def _of_remove(remove: RemoveFile, end: Snapshot, version: int) -> AddFile:
    """Returns the file as it was in the table."""
    if remove.partition_values is None and end.partition_columns:
        raise CorruptLogError(
            f"the log removes {remove.path} without its partition values: the deleted rows cannot be read",
            table=end.table,
            version=version,
        )
    values = remove.partition_values or {}
    return AddFile(
        remove.path,
        values,
        remove.size or 0,
        0,
        tags=remove.tags,
        deletion_vector=remove.deletion_vector,
        base_row_id=remove.base_row_id,
        default_row_commit_version=remove.default_row_commit_version,
    )
