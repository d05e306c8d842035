"""Reads the changes of each version from the log: the files that contain them, and the changed rows in these files.

Source: the Delta specification, sections "Add CDC File" and "Change Data Files". The changes of a version with `cdc`
actions are only these; the changes of another version are the files that it added and removed with `dataChange`. If a
version only replaces a file's deletion vector, its changes are the rows by which the old and new vectors differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TypeVar

from pyroaring import BitMap64

from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.files import data_files, deletion_vectors
from dbt.adapters.silt.engine.kernel.log.history import Commit
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.table.actions import Action, AddCDCFile, AddFile, CommitInfo, Metadata, RemoveFile
from dbt.adapters.silt.engine.kernel.table.paths import decode_path
from dbt.adapters.silt.engine.kernel.table.properties import TableProperties
from dbt.adapters.silt.engine.kernel.table.schema import (
    CHANGE_TYPE,
    COMMIT_TIMESTAMP,
    COMMIT_VERSION,
    ArrayType,
    DataType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)

T = TypeVar("T")

FEED_COLUMNS: Final = StructType(
    (
        StructField(CHANGE_TYPE, PrimitiveType("string")),
        StructField(COMMIT_VERSION, PrimitiveType("long")),
        StructField(COMMIT_TIMESTAMP, PrimitiveType("timestamp")),
    )
)
"""The columns of a change in addition to the table's columns."""

_TYPE_CHANGES = "delta.typeChanges"
_UNCHANGED_MERGE = ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted")

INSERT: Final = "insert"
DELETE: Final = "delete"
UPDATE_PREIMAGE: Final = "update_preimage"
UPDATE_POSTIMAGE: Final = "update_postimage"


@dataclass(frozen=True)
class RevisedFile:
    """A data file that remains in the table with another deletion vector; `before` and `after` have its path."""

    before: RemoveFile
    after: AddFile

    @property
    def restores(self) -> bool:
        """Whether it may have rows that its old vector deletes: its new vector does not only delete more."""
        old, new = (
            0 if each is None else each.cardinality
            for each in (self.before.deletion_vector, self.after.deletion_vector)
        )
        return new <= old


@dataclass(frozen=True)
class VersionChanges:
    """The files with the changes of a version.

    Attributes:
        timestamp_ms: the time of the commit, in milliseconds since 1970-01-01 UTC.
        change_files: files of rows with their `_change_type`; if it is not empty, the other fields are.
        inserted, deleted: files whose rows were all added or removed.
        revised: files some of whose rows were deleted or restored.
    """

    version: int
    timestamp_ms: int
    change_files: tuple[AddCDCFile, ...] = ()
    inserted: tuple[AddFile, ...] = ()
    deleted: tuple[RemoveFile, ...] = ()
    revised: tuple[RevisedFile, ...] = ()

    @property
    def adds_rows(self) -> bool:
        """Whether it may have added rows."""
        return bool(self.inserted) or any(each.restores for each in self.revised)

    @property
    def removes_rows(self) -> bool:
        """Whether it may have removed rows."""
        return bool(self.deleted or self.revised)

    @property
    def removed_bytes(self) -> int:
        """The size in bytes of the files with rows that it may have removed."""
        removed = (*self.deleted, *(each.before for each in self.revised))
        return sum(each.size for each in self.change_files) + sum(each.size or 0 for each in removed)


@dataclass(frozen=True)
class ChangedVersions:
    """The changes of a range of versions, whether or not the table recorded them.

    Attributes:
        end: the last version; the changes are read in its schema.
        versions: the changes of each version, oldest first. Without change files, a version that removed some files and
            added other files may have rows that are the same in both.
        described: the metadata of the version before the range, and each metadata in the range, oldest first.
    """

    end: Snapshot
    versions: tuple[VersionChanges, ...] = ()
    described: tuple[Metadata, ...] = ()


def changes_between(log: DeltaLog, start: int, end: Snapshot) -> tuple[VersionChanges, ...]:
    """Returns the changes of the versions from `start` to the version of `end`, both included; oldest first.

    Args:
        end: the last version; the changes are read in its schema.

    Raises:
        InvalidStatementError: if `end` is before `start`.
        VersionNotFoundError: if a version is not, or no longer, in the log.
        ChangeDataNotRecordedError: if the table did not record its changes in some version.
        UnsupportedStatementError: if a version's columns cannot be read in the schema of `end`.
    """
    _check_order(log.name, start, end)
    first = log.snapshot_at(start).metadata
    _check_recorded(first, start, log.name)
    _check_columns(StructType.from_json(first.schema_string), end, start)
    found = _commits(log, start, end)
    for commit in found[1:]:
        for metadata in _of_kind(commit.actions, Metadata):
            _check_recorded(metadata, commit.version, log.name)
            _check_columns(StructType.from_json(metadata.schema_string), end, commit.version)
    return tuple(changes_of(commit) for commit in found)


def changes_after(
    log: DeltaLog, after: int, end: Snapshot, is_known: Callable[[Snapshot], bool] = lambda _: True
) -> ChangedVersions:
    """Returns the changes of the versions after `after`, up to the version of `end`.

    Args:
        is_known: whether `after` is still the version of that number whose rows the caller has.

    Raises:
        InvalidStatementError: if `end` is before `after`.
        VersionNotFoundError: if a version is not, or no longer, in the log, or `after` is another version.
        UnsupportedStatementError: if a version's columns cannot be read in the schema of `end`.
    """
    _check_order(log.name, after, end)
    start = end if after == end.version else log.snapshot_at(after)
    if not is_known(start):
        raise errors.VersionNotFoundError(
            f"the table was restored from a copy: its version {after} is not the version {after} that was read",
            table=log.name,
        )
    if start is end:
        return ChangedVersions(end)
    first = start.metadata
    _check_columns(StructType.from_json(first.schema_string), end, after)
    described = [first]
    found = _commits(log, after + 1, end)
    for commit in found:
        for metadata in _of_kind(commit.actions, Metadata):
            _check_columns(StructType.from_json(metadata.schema_string), end, commit.version)
            described.append(metadata)
    return ChangedVersions(end, tuple(changes_of(commit) for commit in found), tuple(described))


def missing_files(log: DeltaLog, changed: ChangedVersions) -> list[str]:
    """Returns the missing files among the files that the changes need, of versions from which VACUUM may delete files.

    Raises:
        StorageError: if the storage failed.
    """
    limit = log.clock.now_ms() - changed.end.properties.deleted_file_retention_ms
    old = (each for each in changed.versions if each.timestamp_ms < limit)
    return data_files.missing(log.store, [*dict.fromkeys(name for each in old for name in _file_names(each))])


def _file_names(changes: VersionChanges) -> Iterator[str]:
    revised = [file for each in changes.revised for file in (each.before, each.after)]
    rows = [*changes.inserted, *changes.deleted, *revised]
    yield from (decode_path(each.path) for each in (*changes.change_files, *rows))
    vectors = (deletion_vectors.file_name(each.deletion_vector) for each in rows if each.deletion_vector is not None)
    yield from (name for name in vectors if name is not None)


def _check_order(table: str, first: int, end: Snapshot) -> None:
    if end.version < first:
        raise errors.InvalidStatementError(
            f"the changes end with version {end.version}, which is before their first version {first}", table=table
        )


def _commits(log: DeltaLog, start: int, end: Snapshot) -> tuple[Commit, ...]:
    found = tuple(log.commits(start, end.version))
    there = {commit.version for commit in found}
    for version in range(start, end.version + 1):
        if version not in there:
            raise errors.VersionNotFoundError(
                f"the commit of version {version} is no longer in the log", table=log.name
            )
    return found


def changes_of(commit: Commit) -> VersionChanges:
    """Returns the changes of a commit."""
    version, at = commit.version, commit.timestamp_ms
    change_files = tuple(_of_kind(commit.actions, AddCDCFile))
    if change_files:
        return VersionChanges(version, at, change_files)
    if _changed_nothing(commit.actions):
        return VersionChanges(version, at)
    adds = {decode_path(add.path): add for add in _of_kind(commit.actions, AddFile) if add.data_change}
    removes = {decode_path(each.path): each for each in _of_kind(commit.actions, RemoveFile) if each.data_change}
    return VersionChanges(
        version,
        at,
        inserted=tuple(add for path, add in adds.items() if path not in removes),
        deleted=tuple(remove for path, remove in removes.items() if path not in adds),
        revised=tuple(RevisedFile(removes[path], add) for path, add in adds.items() if path in removes),
    )


def _of_kind(actions: Iterable[Action], kind: type[T]) -> Iterator[T]:
    return (action for action in actions if isinstance(action, kind))


def _changed_nothing(actions: Iterable[Action]) -> bool:
    """Returns whether it is a MERGE that rewrote files but, by its metrics, changed no row: delta-spark skips it."""
    for info in _of_kind(actions, CommitInfo):
        metrics = info.operation_metrics or {}
        if info.operation == "MERGE" and all(metrics.get(name) == "0" for name in _UNCHANGED_MERGE):
            return True
    return False


def _check_recorded(metadata: Metadata, version: int, table: str) -> None:
    if not TableProperties(metadata.configuration).enable_change_data_feed:
        raise errors.ChangeDataNotRecordedError(
            f"the table did not record its changes in version {version}", table=table, version=version
        )


def _check_columns(schema: StructType, end: Snapshot, version: int) -> None:
    """Checks that a version can be read in the last version's schema: columns may be added or dropped."""
    for member in end.schema:
        old = schema.field(member.name)
        if old is not None and (old.physical_name != member.physical_name or not _reads(old, member)):
            raise errors.UnsupportedStatementError(
                f"the column `{member.name}` of version {end.version} is another column in version {version}: "
                "the changes of both versions cannot be read with one schema",
                remedy="Read the changes before the version that changed the column separately from the later changes:"
                " `describe history` shows that version",
                table=end.table,
                version=version,
            )


def _reads(old: StructField, new: StructField) -> bool:
    return _TYPE_CHANGES in new.metadata or _same(old.type, new.type)


def _same(old: DataType, new: DataType) -> bool:
    """Returns whether values of the old type can be read as the new type: struct members may be added or dropped."""
    if isinstance(old, StructType) and isinstance(new, StructType):
        pairs = ((old.field(member.name), member) for member in new)
        return all(before is None or _reads(before, member) for before, member in pairs)
    if isinstance(old, ArrayType) and isinstance(new, ArrayType):
        return _same(old.element_type, new.element_type)
    if isinstance(old, MapType) and isinstance(new, MapType):
        return _same(old.key_type, new.key_type) and _same(old.value_type, new.value_type)
    return old == new


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
        raise errors.CorruptLogError(
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
