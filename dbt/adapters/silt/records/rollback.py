"""Undoes a logical run: finds its commits and restores each table.

Nothing here needs dbt or Spark.
"""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from dbt.adapters.silt.engine.catalog import rollback, rollback_plan
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.catalog.rollback import Rollback, RollbackSettings
from dbt.adapters.silt.engine.catalog.rollback_plan import RollbackScope
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.log.history import Commit
from dbt.adapters.silt.records.commit_facts import CommitFacts
from dbt.adapters.silt.records.journal import JournalEntry
from dbt.adapters.silt.records.known_runs import KnownRun, find_run, known_runs, similar_run
from dbt.adapters.silt.records.project_records import ProjectRecords
from dbt.adapters.silt.records.run_history import TableHistory, histories, runs
from dbt.adapters.silt.records.run_registry import RunEntry, RunRegistry, last_build
from dbt.adapters.silt.records.units import run_id_of

_TEMPORARY = "__dbt_"


@dataclass(frozen=True)
class RollbackRequest:
    """The run to undo, and the options.

    Attributes:
        run_id: the logical run.
        dry_run: whether to change nothing.
        discard_later_commits: whether to undo later changes by other writers, too.
        drop_created: whether to drop the tables that the run created.
        exclude: the tables that are not rolled back.
        invocation_id, target: id and target of the dbt command that rolls back, if any.
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


@dataclass(frozen=True)
class RunRollback:
    """The completed or planned rollback of a run.

    Attributes:
        done: the change of each table.
        not_found: the tables that the run wrote according to the project's records, but that have no such name now:
            they were dropped or renamed, or were written by their path.
        command: the command line that runs it again, if the project's records have it.
    """

    done: Rollback
    not_found: tuple[str, ...] = ()
    command: str | None = None


def roll_back_run(catalog: Catalog, request: RollbackRequest, records: ProjectRecords) -> RunRollback:
    """Restores all tables that a run changed to their previous versions; with `dry_run` returns the planned changes.

    Raises:
        RunNotFoundError: if the warehouse has no trace of such a run.
        RelationNotFoundError: if an excluded table does not exist.
        ConcurrentModificationError: if the run is still running; or as in `rollback.roll_back`.
        RollbackRefusedError: if a table cannot be restored, or has later changes by other writers; nothing was changed.
    """
    run_id = request.run_id
    _check_not_running(request, records.commands)
    _check_excluded(catalog, request.exclude)
    found = histories(catalog)
    searched = [each.table for each in found if each.table not in request.exclude and _may_hold(each, run_id)]
    scope, settings = scope_of(run_id), request.settings()
    findings = rollback_plan.find(catalog, searched, scope)
    if not (findings.known or findings.problems or any(each.of_run(run_id) for each in found)):
        raise _not_found_error(catalog, run_id, known_runs(runs(found), records))
    if request.dry_run:
        rollback.check(findings, settings)
        done = rollback.planned(findings, settings)
    else:
        done = rollback.roll_back(catalog, findings, scope, settings)
    return RunRollback(done, _not_found(found, run_id, records.journal), _command(records.commands, run_id))


def note_rolled_back(target_path: Path | None, request: RollbackRequest, found: RunRollback) -> None:
    """Records in a project's registry that a run is undone completely, so that a later command does not continue it.

    Args:
        target_path: dbt's target path, if there is a project.
    """
    if target_path is None or request.dry_run or request.exclude or found.done.kept:
        return
    with contextlib.suppress(errors.NotWrittenError):  # then a later command warns about the undone run
        RunRegistry(target_path).mark_rolled_back(request.run_id)


def with_full_id(catalog: Catalog, request: RollbackRequest, records: ProjectRecords) -> RollbackRequest:
    """Returns the request with the full id of its run; a request may contain only the beginning of an id.

    Raises:
        RunNotFoundError: if the ids of several runs begin like this, or the beginning is too short.
    """
    if any(each.run_id == request.run_id for each in records.commands):
        return request
    chosen = find_run(request.run_id, known_runs(runs(histories(catalog)), records))
    # Tables may have units of work of a run whose commits their logs no longer contain.
    return request if chosen is None else replace(request, run_id=chosen.run_id)


def scope_of(run_id: str) -> RollbackScope:
    """Returns the commits and units of work that belong to a logical run."""
    return RollbackScope(
        is_commit=lambda commit: _run_id(CommitFacts.of(commit)) == run_id,
        is_unit=lambda app_id: run_id_of(app_id) == run_id,
        undoes=lambda commit: (CommitFacts.of(commit) or CommitFacts()).rolled_back_run_id == run_id,
    )


def author(commit: Commit) -> str:
    """Returns the author of a commit, for messages."""
    facts, engine = CommitFacts.of(commit), commit.info.engine_info or "another writer"
    if facts is None:
        return engine
    run_id = _run_id(facts)
    node = f" ({facts.node_id})" if facts.node_id else ""
    return f"run {run_id}{node}" if run_id else f"{engine}{node}"


def _not_found_error(catalog: Catalog, run_id: str, known: Sequence[KnownRun]) -> errors.RunNotFoundError:
    """Returns the error for a run that has changed no table; a run that is not published is dropped otherwise."""
    unpublished = (each for database in catalog.databases() for each in catalog.run_branches(database).all())
    if any(each.run_id == run_id for each in unpublished):
        return errors.RunNotFoundError(
            f"no change of the run `{run_id}` is published, so there is nothing to roll back",
            remedy="To correct the run, correct the source or the code and run the same command again; to drop its "
            f"changes: silt drop-run {shlex.quote(run_id)}",
        )
    others = [each for each in known if each.run_id != run_id]
    return errors.RunNotFoundError(
        f"no table of this warehouse has a commit of a run `{run_id}`", remedy=similar_run(run_id, others)
    )


def _not_found(found: Sequence[TableHistory], run_id: str, journal: Iterable[JournalEntry]) -> tuple[str, ...]:
    """Returns the tables that a run wrote and that no longer exist by that name, except dbt's temporary tables."""
    there = {str(each.table) for each in found}
    written = {each.table for each in journal if each.run_id == run_id and not each.skipped}
    return tuple(sorted(name for name in written - there if _TEMPORARY not in name))


def _command(entries: Iterable[RunEntry], run_id: str) -> str | None:
    """Returns the command line that continues the run's newest build."""
    build = last_build(entries, run_id)
    return None if build is None else build.continuing_command(os.getcwd())


def _may_hold(history: TableHistory, run_id: str) -> bool:
    """Returns whether a table may have commits of the run: False only if the first lines of its commits exclude that.

    They cannot exclude it if they are unreadable, or if their first commits are no longer in the log.
    """
    if history.problem is not None or not history.commits:
        return True
    return history.commits[0].version > 0 or bool(history.of_run(run_id))


def _run_id(facts: CommitFacts | None) -> str | None:
    """Returns the run that a commit belongs to; a rollback belongs to no run."""
    if facts is None or facts.rolled_back_run_id is not None:
        return None
    return facts.run_id or facts.invocation_id


def _check_excluded(catalog: Catalog, names: Iterable[RelationName]) -> None:
    """Checks that all names exist: after a typing error, the table would be changed."""
    for name in names:
        if catalog.find(name) is None:
            raise errors.RelationNotFoundError("the table to leave out does not exist", table=str(name))


def _check_not_running(request: RollbackRequest, entries: Iterable[RunEntry]) -> None:
    for entry in entries:
        if entry.run_id == request.run_id and entry.running and entry.invocation_id != request.invocation_id:
            raise errors.ConcurrentModificationError(
                f"run {entry.run_id} is still running: `{entry.command}`, since {entry.started_at} on {entry.host}, "
                f"in process {entry.process}",
                remedy="Nothing was changed: wait for the run to end, or stop it first",
            )
