"""What a piece of work has left in tables, and whether each can go back to what it was before.

Which commits are the work's is what the caller says: the engine does not know how work is named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names import RelationName
from dbt.adapters.silt.engine.kernel.errors import (
    NotATableError,
    RelationNotFoundError,
    SchemaNotFoundError,
    SiltError,
    VersionNotFoundError,
)
from dbt.adapters.silt.engine.kernel.files import row_counts
from dbt.adapters.silt.engine.kernel.log.history import Commit
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.transaction import lineage, restore
from dbt.adapters.silt.engine.kernel.transaction.restore import RestorePoint


@dataclass(frozen=True)
class RollbackScope:
    """A piece of work, as what it left in logs is told from all else.

    Attributes:
        is_commit: whether a commit is one of it.
        is_unit: whether a transaction identifier was recorded by it.
        undoes: whether a commit has undone it before.
    """

    is_commit: Callable[[Commit], bool]
    is_unit: Callable[[str], bool]
    undoes: Callable[[Commit], bool]


@dataclass(frozen=True)
class ChangedTable:
    """A table that holds changes of the work.

    Attributes:
        base: its newest version.
        first: the work's oldest commit that no RESTORE has undone.
        later: what others have changed since `first`, oldest first.
        rows: of the version before the work; None where its files do not say, or there is none.
    """

    name: RelationName
    log: DeltaLog = field(repr=False)
    base: Snapshot = field(repr=False)
    first: Commit = field(repr=False)
    later: tuple[Commit, ...] = field(default=(), repr=False)
    rows: int | None = None

    @property
    def is_created(self) -> bool:
        """Whether the work has made the table: there is no version before it."""
        return self.first.version == 0

    @property
    def point(self) -> RestorePoint:
        """The version before the work."""
        return RestorePoint(self.first.version - 1)


@dataclass(frozen=True)
class Problem:
    """Why a table cannot go back, or cannot be looked into."""

    name: RelationName
    error: SiltError


@dataclass(frozen=True)
class Findings:
    """What the work has left in the tables that were looked into.

    Attributes:
        known: whether anything shows that there ever was such work.
        changed: the tables that can go back.
        created: the tables that it made.
        problems: the tables that cannot go back.
    """

    known: bool = False
    changed: tuple[ChangedTable, ...] = ()
    created: tuple[ChangedTable, ...] = ()
    problems: tuple[Problem, ...] = ()


def find(catalog: Catalog, names: Iterable[RelationName], work: RollbackScope) -> Findings:
    """Looks for the work in tables; changes nothing. A table that goes away meanwhile holds none."""
    known = False
    changed, created, problems = [], [], []
    for name in names:
        try:
            traces = _traces(catalog, name, work)
            known = known or traces.known
            if traces.changed is None:
                continue
            if traces.changed.is_created:
                created.append(traces.changed)
            elif (tried := _tried_out(traces.changed, work)) is not None:
                changed.append(tried)
        except (RelationNotFoundError, SchemaNotFoundError, NotATableError):
            continue
        except SiltError as error:
            problems.append(Problem(name, error))
    return Findings(known, tuple(changed), tuple(created), tuple(problems))


@dataclass(frozen=True)
class _Traces:
    known: bool
    changed: ChangedTable | None = None


def _traces(catalog: Catalog, name: RelationName, work: RollbackScope) -> _Traces:
    log = catalog.table(name)
    base = log.snapshot()
    known = any(map(work.is_unit, base.transactions))
    found: ChangedTable | None = None
    others: list[Commit] = []
    for ancestor in lineage.ancestors(log, base.version, work.is_commit):
        commit = ancestor.commit
        is_own = work.is_commit(commit)
        known = known or is_own or work.undoes(commit)
        if ancestor.undone:
            continue
        if is_own and lineage.has_actions(commit):
            found = ChangedTable(name, log, base, commit, tuple(reversed(others)))
        elif not is_own and lineage.is_change(commit):
            others.append(commit)
    if found is None:
        _check_none_lost(base, base, work)
    return _Traces(known, found)


def _tried_out(changed: ChangedTable, work: RollbackScope) -> ChangedTable | None:
    """The table with the rows that come back; None where it is as it was before the work."""
    try:
        restoration = restore.prepare(changed.log, changed.base, changed.point)
    except VersionNotFoundError as error:
        raise _lost(changed.base, f"version {changed.point.version}, from before the work, was") from error
    _check_none_lost(restoration.back_to, changed.base, work)
    if not restoration.changes.actions():
        return None
    return replace(changed, rows=row_counts.row_count(restoration.back_to.files))


def _check_none_lost(snapshot: Snapshot, base: Snapshot, work: RollbackScope) -> None:
    """Passes where no unit of the work is known whose commit was not found: that commit's file is gone."""
    if any(each.version >= 0 and work.is_unit(each.app_id) for each in snapshot.transactions.values()):
        raise _lost(base, "commits of the work were")


def _lost(base: Snapshot, what: str) -> VersionNotFoundError:
    return VersionNotFoundError(
        f"{what} cleaned up from the log (`delta.logRetentionDuration`)",
        remedy="Leave the table out, and put its rows right by hand",
        table=base.table,
        version=base.version,
    )
