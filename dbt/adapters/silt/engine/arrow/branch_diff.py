"""Compares a branch with the tables, views and functions at its beginning, or two branches with each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dbt.adapters.silt.engine.arrow.table_diff import TableDiff, Version, diff_tables
from dbt.adapters.silt.engine.catalog.branches.branch import Branch
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.log_end import is_last
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationKind, RelationName
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


def diff_branches(
    before: Catalog,
    after: Catalog,
    names: Iterable[RelationName],
    key_of: Callable[[str, Snapshot], Sequence[str]],
    samples: int = 0,
) -> list[RelationDiff]:
    """Returns how relations and functions differ between two branches, sorted by name.

    Args:
        before, after: the relations of each branch.
        names: the relations and functions to compare.
        key_of, samples: as for `diff_branch`.

    Raises:
        SiltError: as for `diff_tables`.
    """
    pairs = {str(each): (each, each) for each in names}
    return diff_sides((Side(before), Side(after)), pairs, lambda both, table: key_of(str(both[-1]), table), samples)


@dataclass(frozen=True)
class Side:
    """The relations on a side of a comparison.

    Attributes:
        code: returns the text of a view or function in the form in which it is compared.
    """

    catalog: Catalog
    code: Callable[[str], str] = str


def diff_sides(
    sides: tuple[Side, Side],
    pairs: Mapping[str, tuple[RelationName | None, RelationName | None]],
    key_of: Callable[[Sequence[RelationName], Snapshot], Sequence[str]],
    samples: int = 0,
) -> list[RelationDiff]:
    """Returns how relations and functions differ between two sides, sorted by name.

    Args:
        pairs: the name of each relation or function on each side, by the name to show; None if a side has none.
        key_of: as for `diff_branch`, given the names on the sides that have it.
        samples: as for `diff_branch`.

    Raises:
        SiltError: as for `diff_tables`.
    """
    found = (_between(sides, each, pairs[each], key_of, samples) for each in sorted(pairs))
    return [each for each in found if each is not None]


def _between(
    sides: tuple[Side, Side],
    shown: str,
    names: tuple[RelationName | None, RelationName | None],
    key_of: Callable[[Sequence[RelationName], Snapshot], Sequence[str]],
    samples: int,
) -> RelationDiff | None:
    old, new = (_content(side, name) for side, name in zip(sides, names, strict=True))
    kind = next((each[0] for each in (new, old) if each is not None), None)
    if kind is None:
        return None
    if old is None or new is None or old[0] != new[0]:
        change = CREATED if old is None else DROPPED if new is None else REPLACED
        return RelationDiff(shown, kind, change)
    if isinstance(old[1], Version) and isinstance(new[1], Version):
        both = [each for each in names if each is not None]
        return _of_tables(shown, old[1], new[1], lambda _, table: key_of(both, table), samples)
    return RelationDiff(shown, kind, EQUAL if old[1] == new[1] else REPLACED)


def _content(side: Side, name: RelationName | None) -> tuple[str, Version | str | None] | None:
    """Returns the kind of a relation or function, and its version or its code; None if it does not exist."""
    if name is None:
        return None
    catalog = side.catalog
    entry = catalog.find(name)
    if entry is not None and entry.kind is RelationKind.TABLE:
        log = catalog.table(name)
        return Kind.TABLE.value, Version(log, log.snapshot())
    if entry is not None:
        return Kind.VIEW.value, side.code(catalog.view(name).text)
    if not catalog.has_function(name):
        return None
    body = catalog.function(name).body
    return Kind.FUNCTION.value, None if body is None else side.code(body)


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
    return _of_tables(name, Version(log, base), Version(log, now), key_of, samples)


def _of_tables(
    name: str,
    before: Version,
    after: Version,
    key_of: Callable[[str, Snapshot], Sequence[str]],
    samples: int,
) -> RelationDiff:
    """Compares two versions by their key, if both have its columns."""
    columns = [{each.lower() for each in side.snapshot.schema.names} for side in (before, after)]
    key = key_of(name, after.snapshot)
    usable = key if all(each.lower() in columns[0] & columns[1] for each in key) else ()
    found = diff_tables(before, after, usable, samples)
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
