"""Compares two versions of a table, or two tables, without Spark: a file that both have is equal and is not read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import pyarrow as pa

from dbt.adapters.silt.engine.arrow import row_ids
from dbt.adapters.silt.engine.arrow.read import TableRead
from dbt.adapters.silt.engine.arrow.row_differences import RowDifferences, row_differences
from dbt.adapters.silt.engine.kernel.errors import ColumnNotFoundError
from dbt.adapters.silt.engine.kernel.files.stats_json import row_count
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.rows.scan import ArrowScan
from dbt.adapters.silt.engine.kernel.storage.store import joined
from dbt.adapters.silt.engine.kernel.table.actions import AddFile
from dbt.adapters.silt.engine.kernel.table.paths import decode_path, is_absolute
from dbt.adapters.silt.engine.kernel.table.schema import StructField

_FIELD_ID: Final = "delta.columnMapping.id"
_UNKNOWN: Final = (-1 << 62, -1 << 61)
"""The first numbers of rows without ids on both sides."""
_Side: TypeAlias = tuple["Version", Sequence[str], Sequence[AddFile]]
"""A version, the columns to compare, and the files that only this version has."""


@dataclass(frozen=True)
class Version:
    """A version of a table."""

    log: DeltaLog
    snapshot: Snapshot


@dataclass(frozen=True)
class Sample:
    """A row that differs.

    Attributes:
        kind: `removed`, `added` or `changed`.
        before, after: the row on each side, by the names of the columns; of a changed row its key and the columns that
            have changed, or the whole row if it has no key; None if the side does not have the row.
    """

    kind: str
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None


@dataclass(frozen=True)
class TableDiff:
    """The differences between two versions of a table, or two tables.

    Attributes:
        added_columns, removed_columns: names of columns that only the second or only the first version has.
        retyped: name, type before and type after of columns with another type.
        renamed: name before and after of columns that were renamed, as their ids show.
        key: the columns that identify a row; empty if rows are compared by their ids, or as multisets.
        by_row_ids: whether rows are compared by the ids that row tracking gives them.
        rows_before, rows_after: how many rows each version has, if the log knows.
        removed, added, changed: how many rows differ.
        columns: how many changed rows have another value, by the names of the columns in the second version.
        samples: some of the rows that differ.
        files_read: how many files were read on both sides.
    """

    added_columns: Sequence[str]
    removed_columns: Sequence[str]
    retyped: Sequence[tuple[str, str, str]]
    renamed: Sequence[tuple[str, str]]
    key: Sequence[str]
    by_row_ids: bool
    rows_before: int | None
    rows_after: int | None
    removed: int
    added: int
    changed: int
    columns: Mapping[str, int]
    samples: Sequence[Sample]
    files_read: int

    @property
    def is_equal(self) -> bool:
        """Whether the versions have the same columns and rows."""
        of_columns = (*self.added_columns, *self.removed_columns, *self.retyped, *self.renamed)
        return not of_columns and not (self.removed or self.added or self.changed)


def diff_tables(before: Version, after: Version, key: Sequence[str] = (), samples: int = 0) -> TableDiff:
    """Compares two versions. Rows are compared by the columns that both have.

    Args:
        key: names of columns that identify a row, as in the second version; without columns, rows are compared by the
            ids that row tracking gives them, or else as multisets.
        samples: how many rows of each kind are samples at most.

    Raises:
        ColumnNotFoundError: if a version does not have a column of the key.
        UnsupportedFeatureError: if Arrow cannot read a column.
        DataFileMissingError: if a file is missing.
        SiltError: as for `read`.
    """
    pairs = _common(before.snapshot, after.snapshot)
    names = [new.name for _, new in pairs]
    given = [after.snapshot.schema.require(each, after.snapshot.table).name for each in key]
    missing = next((each for each in given if each not in names), None)
    if missing is not None:
        raise ColumnNotFoundError(
            f"only one of the versions has the column `{missing}` of the key", table=after.log.name
        )
    only_before, only_after = _differing(before, after)
    sides = (before, [each.name for each, _ in pairs], only_before), (after, names, only_after)
    ids = None if given or not pairs else _ids(*sides)
    (old, new), of_rows = ([_rows(*each) for each in sides], None) if ids is None else ids
    old = old.rename_columns(names)
    found = row_differences(old, new, given, of_rows) if pairs else RowDifferences()
    return TableDiff(
        *_columns(before.snapshot, after.snapshot, pairs),
        given,
        of_rows is not None,
        row_count(before.snapshot.files),
        row_count(after.snapshot.files),
        len(found.removed),
        len(found.added),
        len(found.changed),
        found.columns,
        list(_samples(found, old, new, given, samples)),
        len(only_before) + len(only_after),
    )


def _common(before: Snapshot, after: Snapshot) -> list[tuple[StructField, StructField]]:
    """Returns the columns that both versions have: of one table by their ids, if it has any, else by their names."""
    by_id = before.metadata.id == after.metadata.id
    known = {_identity(each, by_id): each for each in before.schema}
    both = ((known.get(_identity(each, by_id)), each) for each in after.schema)
    return [(old, new) for old, new in both if old is not None]


def _identity(column: StructField, by_id: bool) -> object:
    found = column.metadata.get(_FIELD_ID) if by_id else None
    return column.name.lower() if found is None else found


def _columns(
    before: Snapshot, after: Snapshot, pairs: Sequence[tuple[StructField, StructField]]
) -> tuple[list[str], list[str], list[tuple[str, str, str]], list[tuple[str, str]]]:
    olds, news = {old.name for old, _ in pairs}, {new.name for _, new in pairs}
    types = [(new.name, old.type.sql_name, new.type.sql_name) for old, new in pairs]
    return (
        [each.name for each in after.schema if each.name not in news],
        [each.name for each in before.schema if each.name not in olds],
        [each for each in types if each[1] != each[2]],
        [(old.name, new.name) for old, new in pairs if old.name.lower() != new.name.lower()],
    )


def _differing(before: Version, after: Version) -> tuple[list[AddFile], list[AddFile]]:
    """Returns the files of a single version."""
    old, new = ({_key(each.log, file): file for file in each.snapshot.add_files()} for each in (before, after))
    return [old[key] for key in old if key not in new], [new[key] for key in new if key not in old]


def _key(log: DeltaLog, file: AddFile) -> tuple[str, str | None]:
    """Returns the key of a file with its deletion vector, equal for a file and a clone's reference to it."""
    path = decode_path(file.path)
    where = path.removeprefix("file://").removeprefix("file:") if is_absolute(path) else joined(log.store.root, path)
    return where, None if file.deletion_vector is None else file.deletion_vector.unique_id


def _ids(*sides: _Side) -> tuple[list[pa.Table], tuple[pa.Array, pa.Array]] | None:
    """Returns the rows of both sides with their ids; None if their ids are not those of the same rows."""
    (before, _, _), (after, _, _) = sides
    if not row_ids.share_ids(before.log, after.log, (before.snapshot, after.snapshot)):
        return None
    found = [
        row_ids.rows_with_ids(side.log, side.snapshot, names, files, first_unknown)
        for (side, names, files), first_unknown in zip(sides, _UNKNOWN, strict=True)
    ]
    return [rows for rows, _ in found], (found[0][1], found[1][1])


def _rows(version: Version, names: Sequence[str], files: Sequence[AddFile]) -> pa.Table:
    if not names:
        return pa.table({})
    scan = replace(ArrowScan.of(version.snapshot, names), files=tuple(files))
    return TableRead(version.log, version.snapshot, scan).whole()


def _samples(found: RowDifferences, old: pa.Table, new: pa.Table, key: Sequence[str], most: int) -> Iterator[Sample]:
    for before, after in found.changed[:most]:
        sides = old.slice(before, 1), new.slice(after, 1)
        others = [name for name in new.column_names if name not in key]
        changed = [name for name in others if row_differences(*(each.select([name]) for each in sides)).added]
        shown = [*key, *changed] if key else new.column_names
        yield Sample("changed", *(each.select(shown).to_pylist()[0] for each in sides))
    for each in found.removed[:most]:
        yield Sample("removed", old.slice(each, 1).to_pylist()[0], None)
    for each in found.added[:most]:
        yield Sample("added", None, new.slice(each, 1).to_pylist()[0])
