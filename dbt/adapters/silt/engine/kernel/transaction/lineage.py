"""Finds the commits that a table's newest version still contains because no later RESTORE has undone them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, Protocol, TypeVar

from dbt.adapters.silt.engine.kernel.errors import TableDamagedError, UnsupportedFeatureError, VersionNotFoundError
from dbt.adapters.silt.engine.kernel.log.history import Commit
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.table.actions import CommitInfo, DomainMetadata, Metadata
from dbt.adapters.silt.engine.kernel.table.clustering import CLUSTERING_DOMAIN
from dbt.adapters.silt.engine.kernel.transaction.changes import ENGINE_INFO, RESTORE_OPERATION, RESTORED_VERSION

_ENGINE = ENGINE_INFO.partition("/")[0]


class _Versioned(Protocol):
    @property
    def version(self) -> int: ...


C = TypeVar("C", bound=_Versioned)


@dataclass(frozen=True)
class Ancestor:
    """A commit up to the newest version.

    Attributes:
        undone: whether a later RESTORE undid it; also true for that RESTORE itself, which only brings back the result
            of earlier commits.
    """

    commit: Commit
    undone: bool


def ancestors(log: DeltaLog, version: int, in_scope: Callable[[Commit], bool]) -> Iterator[Ancestor]:
    """Yields the commits up to a version, as far back as the log goes, newest first.

    Args:
        in_scope: whether a commit itself will be undone; a RESTORE in scope counts as an ordinary change.
    """

    def back_to(commit: Commit) -> int | None:
        return None if in_scope(commit) else restored_version(log, commit.version, commit.info)

    commits = (commit for commit in log.newest_commits() if commit.version <= version)
    for step in undoing(commits, back_to):
        yield Ancestor(step.commit, step.undone_by is not None or step.back_to is not None)


@dataclass(frozen=True)
class Undoing(Generic[C]):
    """A commit of a table, and whether a RESTORE undid it.

    Attributes:
        undone_by: the RESTORE that undid it, or None if it is still in effect.
        back_to: the version that it restored, if it is a RESTORE that is still in effect.
    """

    commit: C
    undone_by: C | None
    back_to: int | None


def undoing(commits: Iterable[C], back_to: Callable[[C], int | None]) -> Iterator[Undoing[C]]:
    """Yields each commit with the RESTORE that undid it. Every reader of a history uses this meaning of RESTORE.

    Args:
        commits: the commits, newest first.
        back_to: returns the version that a commit restored, or None if it is not a RESTORE. Only called for commits
            that were not undone.
    """
    restore: C | None = None
    left: int | None = None
    for commit in commits:
        if left is not None and commit.version > left:
            yield Undoing(commit, restore, None)
            continue
        to = back_to(commit)
        yield Undoing(commit, None, to)
        if to is not None:
            restore, left = commit, to


def restored_version(log: DeltaLog, version: int, info: CommitInfo) -> int | None:
    """Returns the version that a RESTORE restored, with its units of work, or None for any other commit.

    Another engine's RESTORE keeps the transaction identifiers of the commits that it undoes, so it counts as an
    ordinary change.

    Args:
        log: the table's log; it resolves a time to a version if the commit names only a time.
        version: the commit's version.
        info: the commit's `commitInfo`.
    """
    if info.operation != RESTORE_OPERATION or not (info.engine_info or "").startswith(f"{_ENGINE}/"):
        return None
    names = ("version", RESTORED_VERSION, "timestamp")
    named, resolved, timestamp = (info.operation_parameters.get(name) for name in names)
    found = next((each for each in (named, resolved) if isinstance(each, int)), None)
    if found is None:
        found = _version_at(log, timestamp)
    return None if found is None else min(found, version - 1)


def is_change(commit: Commit) -> bool:
    """Returns whether a commit changes rows, schema, properties or clustering columns.

    OPTIMIZE and VACUUM do not, nor does a statement that found nothing to change.
    """
    return commit.changes_rows or any(
        isinstance(action, Metadata) or (isinstance(action, DomainMetadata) and action.domain == CLUSTERING_DOMAIN)
        for action in commit.actions
    )


def has_actions(commit: Commit) -> bool:
    """Returns whether the commit has an action other than its commitInfo."""
    return any(not isinstance(action, CommitInfo) for action in commit.actions)


def _version_at(log: DeltaLog, timestamp: object) -> int | None:
    """Returns the newest version at a time, as RESTORE writes it, or None if the log cannot resolve the time."""
    try:
        moment = datetime.fromisoformat(str(timestamp))
        return log.version_at(round(moment.timestamp() * 1000), or_newest=True)
    except (ValueError, VersionNotFoundError, TableDamagedError, UnsupportedFeatureError):
        return None
