"""Finds the commits of a scope, such as a dbt run, in tables, and whether each table can be restored.

The caller defines the commits in scope: the engine does not know how runs are named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.files import stats_json
from dbt.adapters.silt.engine.kernel.log.history import Commit
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.transaction import lineage, restore
from dbt.adapters.silt.engine.kernel.transaction.restore import RestorePoint


@dataclass(frozen=True)
class RollbackScope:
    """The commits that a rollback undoes.

    Attributes:
        is_commit: whether a commit is in scope.
        is_unit: whether a transaction identifier belongs to a unit of work in scope.
        undoes: whether a commit is an earlier rollback of the scope.
    """

    is_commit: Callable[[Commit], bool]
    is_unit: Callable[[str], bool]
    undoes: Callable[[Commit], bool]


@dataclass(frozen=True)
class ChangedTable:
    """A table that a commit in scope has changed.

    Attributes:
        base: its newest version.
        first: the oldest commit in scope that no RESTORE has undone.
        later: other writers' commits since `first`, oldest first.
        rows: the rows of the version before `first`, if it exists and its files have counts.
    """

    name: RelationName
    log: DeltaLog = field(repr=False)
    base: Snapshot = field(repr=False)
    first: Commit = field(repr=False)
    later: tuple[Commit, ...] = field(default=(), repr=False)
    rows: int | None = None

    @property
    def is_created(self) -> bool:
        """Whether `first` has created the table: no version precedes it."""
        return self.first.version == 0

    @property
    def point(self) -> RestorePoint:
        """The version before `first`."""
        return RestorePoint(self.first.version - 1)


@dataclass(frozen=True)
class Problem:
    """The error that prevents the table from being restored or read."""

    name: RelationName
    error: errors.SiltError


@dataclass(frozen=True)
class Findings:
    """The result of the search in the tables.

    Attributes:
        known: whether the scope has left any trace.
        changed: the tables that can be restored.
        created: the tables that a commit in scope created.
        problems: the tables that cannot be restored.
    """

    known: bool = False
    changed: tuple[ChangedTable, ...] = ()
    created: tuple[ChangedTable, ...] = ()
    problems: tuple[Problem, ...] = ()


def find(catalog: Catalog, names: Iterable[RelationName], scope: RollbackScope) -> Findings:
    """Searches for commits in scope, without a change; a table that is dropped meanwhile has no commits."""
    known = False
    changed, created, problems = [], [], []
    for name in names:
        try:
            traces = _traces(catalog, name, scope)
            known = known or traces.known
            if traces.changed is None:
                continue
            if traces.changed.is_created:
                created.append(traces.changed)
            elif (restorable := _prepared(traces.changed, scope)) is not None:
                changed.append(restorable)
        except (errors.RelationNotFoundError, errors.SchemaNotFoundError, errors.NotATableError):
            continue
        except errors.SiltError as error:
            problems.append(Problem(name, error))
    return Findings(known, tuple(changed), tuple(created), tuple(problems))


@dataclass(frozen=True)
class _Traces:
    known: bool
    changed: ChangedTable | None = None


def _traces(catalog: Catalog, name: RelationName, scope: RollbackScope) -> _Traces:
    log = catalog.table(name)
    base = log.snapshot()
    known = any(map(scope.is_unit, base.transactions))
    found: ChangedTable | None = None
    others: list[Commit] = []
    for ancestor in lineage.ancestors(log, base.version, scope.is_commit):
        commit = ancestor.commit
        is_own = scope.is_commit(commit)
        known = known or is_own or scope.undoes(commit)
        if ancestor.undone:
            continue
        if is_own and lineage.has_actions(commit):
            found = ChangedTable(name, log, base, commit, tuple(reversed(others)))
        elif not is_own and lineage.is_change(commit):
            others.append(commit)
    if found is None:
        _check_none_lost(base, base, scope)
    return _Traces(known, found)


def _prepared(changed: ChangedTable, scope: RollbackScope) -> ChangedTable | None:
    """Returns the table with the number of rows that are restored, or None if a RESTORE would change nothing."""
    try:
        restoration = restore.prepare(changed.log, changed.base, changed.point)
    except errors.VersionNotFoundError as error:
        raise _lost(changed.base, f"version {changed.point.version}, from before the run, was") from error
    _check_none_lost(restoration.back_to, changed.base, scope)
    if not restoration.changes.actions():
        return None
    return replace(changed, rows=stats_json.row_count(restoration.back_to.files))


def _check_none_lost(snapshot: Snapshot, base: Snapshot, scope: RollbackScope) -> None:
    """Checks that each recorded unit of work in scope has its commit: otherwise the commit's file was cleaned up."""
    if any(each.version >= 0 and scope.is_unit(each.app_id) for each in snapshot.transactions.values()):
        raise _lost(base, "commits of the run were")


def _lost(base: Snapshot, what: str) -> errors.VersionNotFoundError:
    return errors.VersionNotFoundError(
        f"{what} cleaned up from the log (`delta.logRetentionDuration`)",
        remedy="Leave the table out, and correct its rows by hand",
        table=base.table,
        version=base.version,
    )
