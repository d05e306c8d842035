"""Compares a branch with the tables, views and functions at its beginning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from dbt.adapters.silt.engine.arrow.table_diff import TableDiff, Version, diff_tables
from dbt.adapters.silt.engine.catalog.branches.branch import Branch
from dbt.adapters.silt.engine.catalog.names.log_end import is_last
from dbt.adapters.silt.engine.kernel.files.stats_json import row_count
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.publication.documents import Kind, Meaning, NameChange
from dbt.adapters.silt.engine.kernel.transaction.branch_log import BranchLog

CREATED: Final = "created"
DROPPED: Final = "dropped"
REPLACED: Final = "replaced"
CHANGED: Final = "changed"
EQUAL: Final = "equal"


@dataclass(frozen=True)
class RelationDiff:
    """A table, view or function that a branch has changed.

    Attributes:
        name: its full name.
        kind: `table`, `view` or `function`; of a name that changed its kind, the new kind.
        change: how it differs: CREATED, DROPPED, REPLACED, CHANGED or EQUAL.
        table: the differences of a table that exists on both sides.
        rows: how many rows a new or dropped table has, if its log knows.
    """

    name: str
    kind: str
    change: str
    table: TableDiff | None = None
    rows: int | None = None


def diff_branch(
    branch: Branch,
    database: str,
    key_of: Callable[[str, Snapshot], Sequence[str]],
    samples: int = 0,
    only: str | None = None,
) -> list[RelationDiff]:
    """Returns the relations and functions that a branch has changed, sorted by name.

    Args:
        database: the name of its database.
        key_of: returns the columns that identify a row of a table, given its full name and its version on the branch;
            empty without such columns. A table that lacks a column of its key, before or after, is compared without a
            key.
        samples: how many rows of each kind of difference are samples at most.
        only: the full name of the only relation to compare.

    Raises:
        SiltError: as for `diff_tables`, or if the branch cannot be read.
    """
    names, tables = branch.name_changes(database), branch.tables()
    wanted = sorted({*names, *tables}) if only is None else sorted({only} & {*names, *tables})
    return [_diff(each, names.get(each), tables.get(each), key_of, samples) for each in wanted]


def _diff(
    name: str,
    change: NameChange | None,
    log: BranchLog | None,
    key_of: Callable[[str, Snapshot], Sequence[str]],
    samples: int,
) -> RelationDiff:
    if change is not None and log is None:
        return _named(name, change)
    assert log is not None
    base, now = log.base(), log.snapshot()
    is_view = change is not None and change.after is not None and change.after.kind is not Kind.TABLE
    if is_view:
        return RelationDiff(name, Kind.VIEW.value, REPLACED, rows=None)
    if is_last(now):
        return RelationDiff(name, Kind.TABLE.value, DROPPED, rows=None if base is None else row_count(base.files))
    if base is None:
        was_view = change is not None and change.before is not None
        return RelationDiff(name, Kind.TABLE.value, REPLACED if was_view else CREATED, rows=row_count(now.files))
    columns = {each.lower() for each in base.schema.names} & {each.lower() for each in now.schema.names}
    key = key_of(name, now)
    usable = key if all(each.lower() in columns for each in key) else ()
    found = diff_tables(Version(log.main, base), Version(log, now), usable, samples)
    return RelationDiff(name, Kind.TABLE.value, EQUAL if found.is_equal else CHANGED, found)


def _named(name: str, change: NameChange) -> RelationDiff:
    kind = _kind(change.after) or _kind(change.before) or ""
    if change.before is None:
        return RelationDiff(name, kind, CREATED)
    if change.after is None:
        return RelationDiff(name, kind, DROPPED)
    return RelationDiff(name, kind, EQUAL if change.before == change.after else REPLACED)


def _kind(meaning: Meaning | None) -> str | None:
    return None if meaning is None else meaning.kind.value
