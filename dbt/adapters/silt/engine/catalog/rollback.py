"""Undoes the commits of a scope, such as a dbt run, in all tables that they changed: each by a RESTORE of its own.

All tables are checked before the first change. A restored table is recognised by its log alone, so that an interrupted
rollback is completed by running it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeAlias

from dbt.adapters.silt.engine.catalog import rollback_plan
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName, names_text
from dbt.adapters.silt.engine.catalog.rollback_plan import ChangedTable, Findings, Problem, RollbackScope
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.clock import utc_text
from dbt.adapters.silt.engine.kernel.log.history import Commit
from dbt.adapters.silt.engine.kernel.printable import number_of
from dbt.adapters.silt.engine.kernel.table.actions import Json
from dbt.adapters.silt.engine.kernel.transaction import restore
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings

_Change: TypeAlias = Callable[[], "PutBack | RelationName"]
_CONVERT = "CONVERT"
_DISCARD = (
    "Roll back the later commits first, or discard them, too: `--discard-later-commits` "
    "(for an operation `discard_later_commits: true`)"
)
_EXCLUDE = "Leave out the tables that cannot be restored: `--exclude` (for an operation `exclude: [...]`)"
_AGAIN = "Run it again to continue with the remaining tables, or to see the reason"


@dataclass(frozen=True)
class RollbackSettings:
    """The settings of a rollback.

    Attributes:
        title: the scope's name in messages.
        author: returns the author of a commit, for messages.
        discard_later_commits: whether later changes by other writers are undone, too.
        drop_created: whether the tables that the scope created are dropped.
        commit_info: fields of `commitInfo` of each RESTORE, by which `RollbackScope.undoes` recognises it.
    """

    title: str
    author: Callable[[Commit], str]
    discard_later_commits: bool = False
    drop_created: bool = False
    commit_info: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True)
class PutBack:
    """A table that was restored.

    Attributes:
        from_version: the newest version before the RESTORE.
        to_version: the version whose rows, schema and properties were restored.
        version: the version of the RESTORE, unless it is only planned.
        rows: the rows of `to_version`, if its files have counts.
        discarded: other writers' commits that were undone, too.
    """

    name: RelationName
    from_version: int
    to_version: int
    version: int | None
    rows: int | None
    discarded: tuple[Commit, ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class Rollback:
    """The result of a rollback.

    Attributes:
        put_back: the tables that were restored.
        dropped: the tables that the scope had created, and that were dropped.
        kept: the tables that the scope had created, and that were left unchanged.
    """

    put_back: tuple[PutBack, ...] = ()
    dropped: tuple[RelationName, ...] = ()
    kept: tuple[RelationName, ...] = ()


def check(findings: Findings, settings: RollbackSettings) -> None:
    """Checks that all tables can be restored.

    Raises:
        RollbackRefusedError: if a table cannot be restored or has later commits; it names all such tables.
    """
    to_drop = findings.created if settings.drop_created else ()
    problems = [*findings.problems, *(problem for each in to_drop for problem in _why_not_dropped(each))]
    contested = [] if settings.discard_later_commits else [each for each in (*findings.changed, *to_drop) if each.later]
    if problems or contested:
        raise _refused(problems, contested, settings)


def planned(findings: Findings, settings: RollbackSettings) -> Rollback:
    """Returns the result that `roll_back` would have."""
    names = tuple(each.name for each in findings.created)
    return Rollback(
        tuple(_put_back(each, None) for each in findings.changed),
        dropped=names if settings.drop_created else (),
        kept=() if settings.drop_created else names,
    )


def roll_back(catalog: Catalog, findings: Findings, scope: RollbackScope, settings: RollbackSettings) -> Rollback:
    """Restores the tables that were found, in turn.

    Raises:
        RollbackRefusedError: as for `check`; nothing was changed.
        ConcurrentModificationError: if another writer changed a table since the check, or the scope committed
            meanwhile; the tables before it are restored, and another call continues.
        SiltError: as above, for any other reason.
    """
    check(findings, settings)
    done: list[PutBack | RelationName] = []

    def drop(table: ChangedTable) -> RelationName:
        catalog.drop_table(table.name, version=table.base.version)
        return table.name

    restored = (partial(_restored, each, settings) for each in findings.changed)
    dropped = (partial(drop, each) for each in (findings.created if settings.drop_created else ()))
    try:
        for result in _children_or_parents_first([*restored, *dropped]):
            done.append(result)
    except errors.SiltError as error:
        raise _stopped(error, planned(findings, settings), done, settings) from error
    put_back = tuple(each for each in done if isinstance(each, PutBack))
    _check_ended(catalog, put_back, scope, settings)
    return replace(planned(findings, settings), put_back=put_back)


def _children_or_parents_first(
    changes: Sequence[Callable[[], PutBack | RelationName]],
) -> Iterator[PutBack | RelationName]:
    """Makes the changes of tables; a change that an enforced foreign key refuses is made after the changes of others.

    Raises:
        ForeignKeyViolationError: if it refuses all changes that are left.
    """
    while changes:
        refused: list[_Change] = []
        for change in changes:
            try:
                yield change()
            except errors.ForeignKeyViolationError:
                if len(refused) + 1 == len(changes):
                    raise
                refused.append(change)
        changes = refused


def _restored(changed: ChangedTable, settings: RollbackSettings) -> PutBack:
    """Prepares again, from the version that was checked, and commits: deleted files are not restored."""
    prepared = restore.prepare(changed.log, changed.base, changed.point)
    committed = restore.commit(changed.log, prepared, CommitSettings(commit_info=settings.commit_info))
    return _put_back(changed, committed.version)


def _put_back(changed: ChangedTable, version: int | None) -> PutBack:
    base, point = changed.base.version, changed.point.version
    return PutBack(changed.name, base, point, version, changed.rows, changed.later)


def _check_ended(
    catalog: Catalog, put_back: Iterable[PutBack], scope: RollbackScope, settings: RollbackSettings
) -> None:
    """Checks that the scope has no new commit in the restored tables."""
    again = rollback_plan.find(catalog, (each.name for each in put_back), scope).changed
    if again:
        raise errors.ConcurrentModificationError(
            f"{settings.title} continued while it was rolled back, and has changed {_listed(again)} again",
            remedy="Wait until it has finished, and roll it back again",
            table=str(again[0].name),
            version=again[0].base.version,
        )


def _why_not_dropped(created: ChangedTable) -> Iterator[Problem]:
    if created.first.info.operation == _CONVERT:
        problem = "it was created from files that existed before it (CONVERT TO DELTA), which a drop would delete"
        yield Problem(created.name, errors.UnsupportedStatementError(problem, table=str(created.name)))


def _stopped(
    error: errors.SiltError, plan: Rollback, done: Sequence[PutBack | RelationName], settings: RollbackSettings
) -> errors.SiltError:
    """Returns the error, with the tables already rolled back and the remaining tables."""
    names = [*(each.name for each in plan.put_back), *plan.dropped]
    before = (
        f"of {settings.title}, {names_text(names[: len(done)])} had been rolled back" if done else "nothing was changed"
    )
    left = names_text(names[len(done) :])
    return type(error)(
        f"{error.problem}; {before}, and {left} not yet",
        remedy=_AGAIN,
        table=error.table,
        version=error.version,
        details={
            **error.details,
            "done": tuple(map(str, names[: len(done)])),
            "left": tuple(map(str, names[len(done) :])),
        },
    )


def _refused(
    problems: Sequence[Problem], contested: Sequence[ChangedTable], settings: RollbackSettings
) -> errors.RollbackRefusedError:
    commits = [(each.name, commit) for each in contested for commit in each.later]
    reasons, remedies = [], []
    if contested:
        reasons.append(f"other writers have changed {number_of(len(contested), 'table')} after it")
        remedies.append(_DISCARD)
    if problems:
        reasons.append(f"{number_of(len(problems), 'table')} cannot be restored")
        remedies.append(_EXCLUDE)
    lines = [
        *(f"{name}@v{commit.version}: {_described(commit, settings)}" for name, commit in commits),
        *(f"{each.name}: {each.error.problem}" for each in problems),
    ]
    return errors.RollbackRefusedError(
        f"{settings.title} was not rolled back, and nothing was changed: {', and '.join(reasons)}",
        remedy=f"{'. '.join(remedies)}:\n" + "\n".join(f"  {line}" for line in lines),
        details={
            "later_commits": tuple(_facts(name, commit, settings) for name, commit in commits),
            "problems": tuple(
                {"table": str(each.name), "code": each.error.code, "problem": each.error.problem} for each in problems
            ),
        },
    )


def _described(commit: Commit, settings: RollbackSettings) -> str:
    operation = commit.info.operation or "a change"
    return f"{operation} by {settings.author(commit)}, {_utc(commit.timestamp_ms)}"


def _facts(name: RelationName, commit: Commit, settings: RollbackSettings) -> dict[str, Json]:
    return {
        "table": str(name),
        "version": commit.version,
        "timestamp_ms": commit.timestamp_ms,
        "operation": commit.info.operation,
        "author": settings.author(commit),
    }


def _utc(timestamp_ms: int) -> str:
    return utc_text(timestamp_ms)


def _listed(tables: Iterable[ChangedTable]) -> str:
    return names_text(each.name for each in tables)
