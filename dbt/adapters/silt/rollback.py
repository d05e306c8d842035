"""The way back from a logical run: which commits and units of work are its, and all that it changed undone.

Nothing here needs dbt or Spark.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field

from dbt.adapters.silt.commit_facts import CommitFacts
from dbt.adapters.silt.engine.catalog import rollback, traces
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names import RelationName
from dbt.adapters.silt.engine.catalog.rollback import Rollback, RollbackSettings
from dbt.adapters.silt.engine.catalog.traces import Work
from dbt.adapters.silt.engine.kernel.errors import ConcurrentModificationError, RelationNotFoundError, RunNotFoundError
from dbt.adapters.silt.engine.kernel.history import Commit
from dbt.adapters.silt.engine.kernel.lineage import commit_info
from dbt.adapters.silt.run_history import TableHistory, histories
from dbt.adapters.silt.run_registry import RunEntry
from dbt.adapters.silt.units import run_id_of


@dataclass(frozen=True)
class RollbackRequest:
    """What to undo, and how.

    Attributes:
        run_id: the logical run.
        dry_run: whether only to look.
        discard_later_commits: whether what others have changed since is undone, too.
        drop_created: whether the tables that the run made are dropped.
        exclude: tables that are left as they are.
        invocation_id, target: of the dbt command that asks, if one does.
    """

    run_id: str
    dry_run: bool = False
    discard_later_commits: bool = False
    drop_created: bool = False
    exclude: frozenset[RelationName] = field(default_factory=frozenset)
    invocation_id: str | None = None
    target: str | None = None

    def settings(self) -> RollbackSettings:
        facts = CommitFacts(self.invocation_id, self.target, rolled_back_run_id=self.run_id)
        return RollbackSettings(
            f"run {self.run_id}", author, self.discard_later_commits, self.drop_created, facts.commit_info()
        )


def roll_back_run(catalog: Catalog, request: RollbackRequest, entries: Iterable[RunEntry]) -> Rollback:
    """Puts all tables that a run changed back to the version before it, or with `dry_run` says what that would do.

    Args:
        entries: the project's runs, as far as they are known.

    Raises:
        RunNotFoundError: nothing shows that there ever was such a run.
        RelationNotFoundError: a table that is to be left out is not there.
        ConcurrentModificationError: the run is still running; or as `rollback.roll_back`.
        RollbackRefusedError: a table cannot go back, or others have changed one since; nothing was changed.
    """
    _check_not_running(request.run_id, entries)
    _check_excluded(catalog, request.exclude)
    found = histories(catalog)
    searched = [each.table for each in found if each.table not in request.exclude and _may_hold(each, request.run_id)]
    work, settings = work_of(request.run_id), request.settings()
    findings = traces.find(catalog, searched, work)
    if not (findings.known or findings.problems or any(each.of_run(request.run_id) for each in found)):
        raise RunNotFoundError(f"no commit of a run `{request.run_id}` is in a table of this warehouse")
    rollback.check(findings, settings)
    if request.dry_run:
        return rollback.planned(findings, settings)
    return rollback.roll_back(catalog, findings, work, settings)


def work_of(run_id: str) -> Work:
    """What the logs show of a logical run."""
    return Work(
        is_commit=lambda commit: _run_id(CommitFacts.of(commit)) == run_id,
        is_unit=lambda app_id: run_id_of(app_id) == run_id,
        undoes=lambda commit: (CommitFacts.of(commit) or CommitFacts()).rolled_back_run_id == run_id,
    )


def author(commit: Commit) -> str:
    """Who made a commit, in words."""
    facts, engine = CommitFacts.of(commit), commit_info(commit).engine_info or "another writer"
    if facts is None:
        return engine
    run_id = _run_id(facts)
    node = f" ({facts.node_id})" if facts.node_id else ""
    return f"run {run_id}{node}" if run_id else f"{engine}{node}"


def _may_hold(history: TableHistory, run_id: str) -> bool:
    """Whether a table may hold work of the run: where the first lines of its commits do not rule it out.

    They do not where they cannot be read, nor where the log no longer goes back to its beginning.
    """
    if history.problem is not None or not history.commits:
        return True
    return history.commits[0].version > 0 or bool(history.of_run(run_id))


def _run_id(facts: CommitFacts | None) -> str | None:
    """The run that a commit belongs to; what undoes a run's work belongs to none."""
    if facts is None or facts.rolled_back_run_id is not None:
        return None
    return facts.run_id or facts.invocation_id


def _check_excluded(catalog: Catalog, names: Iterable[RelationName]) -> None:
    """A name that was mistyped would leave its table to be changed."""
    for name in names:
        if catalog.find(name) is None:
            raise RelationNotFoundError("there is no such table to leave out", table=str(name))


def _check_not_running(run_id: str, entries: Iterable[RunEntry]) -> None:
    for entry in entries:
        if entry.run_id == run_id and entry.running and entry.process != os.getpid():
            raise ConcurrentModificationError(
                f"run {run_id} is still running, in process {entry.process} since {entry.started_at}",
                remedy="Nothing was changed: wait until it has ended, or end it first",
            )
