"""Publishes the changes of a session at its end, if its setting `silt.publish` says so.

The session works on a branch, which no other program sees. The branch is found by the run's id: a session of the same
run continues what a lost session has left, and it is published once.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

from dbt.adapters.silt.endpoint.core.exactly_once import RUN_ID, checked_run_id
from dbt.adapters.silt.engine.catalog.branches.branch import Branch
from dbt.adapters.silt.engine.catalog.branches.command_documents import CommandDocuments
from dbt.adapters.silt.engine.catalog.branches.run_branches import BranchedRun
from dbt.adapters.silt.engine.catalog.branches.run_commands import CommandResults, RunCommand
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName, full_name
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.warehouse import Warehouse
from dbt.adapters.silt.records.units import ENDPOINT
from dbt.adapters.silt.runs.logical_run.publish_mode import PublishMode

PUBLISH: Final = "silt.publish"
"""The session's setting: when its changes become visible."""

_WORK: Final = frozenset({"session.endpoint.statements"})
"""The work of a session among the nodes of a run: a later session of the run must do it if this one has not."""

_ELSEWHERE: Final = (
    "Run `silt publish` or `silt drop-run` with that id, or the session again with the same `silt.run_id`"
)


@dataclass
class _Begun:
    """The branch on which a session works."""

    run: BranchedRun
    branch: Branch
    documents: CommandDocuments


@dataclass
class SessionPublication:
    """The publication of a session.

    Args:
        catalog: the relations outside of the branch.
        database: the database whose tables are on the branch.
        target: the target of the profile.
        whose: the session, for messages.
        mode: when the changes become visible.
    """

    catalog: Catalog
    database: str
    target: str
    whose: str
    mode: PublishMode = PublishMode.AT_ONCE
    _begun: _Begun | None = None
    _failed: set[str] = field(default_factory=set)
    _last_failed: bool = False

    @property
    def run_id(self) -> str | None:
        """The run whose branch the session works on, if it does."""
        return None if self._begun is None else self._begun.run.run_id

    @property
    def is_pending(self) -> bool:
        """Whether the next statement begins the work on a branch."""
        return self.mode is not PublishMode.AT_ONCE and self._begun is None

    def begin(self, house: Warehouse) -> None:
        """Opens the branch of the run that the session names, or of a new run, and lets the session work on it.

        Raises:
            InvalidSettingError: if the run id cannot be recorded.
            InvalidStatementError: if a transaction is open, or the session works on another branch.
            SiltError: as `RunBranches.open`.
        """
        if house.catalog is not self.catalog:
            raise errors.InvalidStatementError(
                "a transaction is open, or the session works on a branch, so it cannot be part of another run",
                remedy="Run `commit`, `rollback` or `reset silt.branch` first",
            )
        new_id = house.settings.clock.new_id
        run_id = checked_run_id(house.spark.conf.get(RUN_ID, None) or new_id())
        runs = self.catalog.run_branches(self.database)
        entered: list[CommandDocuments] = []

        def enter(documents: CommandDocuments) -> None:
            entered.append(documents)
            documents.begin(self._command(new_id()))

        run, branch = runs.open(BranchedRun(ENDPOINT, self.target, run_id), enter)
        self._begun = _Begun(run, branch, entered[-1])
        house.join(self.database, branch)
        house.spark.conf.set(RUN_ID, run_id)

    def _command(self, name: str) -> RunCommand:
        return RunCommand(name, self.whose, socket.gethostname(), os.getpid(), selected=_WORK, tests_count=False)

    def on_setting(self, statement: ast.SetSetting | ast.ResetSetting, house: Warehouse) -> Collection[RelationName]:
        """Notes a setting that the session is about to make; returns the names that it has published.

        Raises:
            InvalidSettingError: if it is not a value of the setting.
            InvalidStatementError: if the session cannot leave its run.
            SiltError: as `published`.
        """
        if isinstance(statement, ast.SetSetting) and statement.value is None:
            return ()
        value = (statement.value or "").strip("'\"") if isinstance(statement, ast.SetSetting) else None
        if statement.key == RUN_ID and self.run_id not in (None, value):
            raise errors.InvalidStatementError(
                f"the session works on the run {self.run_id}, so `{RUN_ID}` cannot change",
                remedy=f"Run `reset {PUBLISH}` first, which publishes it",
            )
        if statement.key not in (None, PUBLISH):
            return ()
        mode = PublishMode.AT_ONCE if value is None else PublishMode.of(value, f"`{PUBLISH}`")
        if mode is PublishMode.AFTER_TESTS:
            raise errors.InvalidSettingError(
                f"`{PUBLISH}` cannot be `{value}`: a session has no tests", remedy="Use `after_run` or `on_request`"
            )
        if mode is not PublishMode.AT_ONCE or self._begun is None:
            self.mode = mode
            return ()
        return self._published_now(house)

    def _published_now(self, house: Warehouse) -> Collection[RelationName]:
        """Publishes the run before the session ends; raises an error if it is held."""
        run_id, (held, names) = self.run_id, self.end()
        house.join(self.database, None)
        self.mode = PublishMode.AT_ONCE
        if held:
            raise errors.InvalidStatementError(f"the run {run_id} is not published: {held}", remedy=_ELSEWHERE)
        return names

    def note(self, failed: bool) -> None:
        """Notes whether the last statement of the session has failed."""
        self._last_failed = failed

    def note_change(self, what: str, failed: bool) -> None:
        """Notes whether a change has failed; a later success of the same change replaces the failure."""
        (self._failed.add if failed else self._failed.discard)(what)

    def end(self, problem: str = "") -> tuple[str, Collection[RelationName]]:
        """Ends the work of the session on its branch, if any, and publishes the run if nothing prevents that.

        Args:
            problem: why the session has not done its work, as the end of a sentence; empty if its client has ended it.

        Returns:
            why the run is held, or an empty text; and the names that were published.

        Raises:
            ConcurrentModificationError: if other programs have changed the same rows, and the run is dropped; or
                another process has published or dropped the run.
            SiltError: as `RunBranches.publish`; the run is held.
        """
        begun, self._begun = self._begun, None
        if begun is None:
            return "", ()
        problem = problem or self._failure()
        results = CommandResults(missing=_WORK, problem=problem) if problem else CommandResults(passed=_WORK)
        begun.documents.end(results)
        runs = self.catalog.run_branches(self.database)
        standing = begun.documents.standing()
        if standing.has_failed:
            runs.hold(begun.run, standing.reason)
        if standing or self.mode is PublishMode.ON_REQUEST:
            return standing.reason or f"`{PUBLISH}` is on_request", ()
        return "", self._published(begun)

    def _failure(self) -> str:
        if self._failed:
            return f"a statement failed: {min(self._failed)[:80]}"
        return "its last statement failed" if self._last_failed else ""

    def _published(self, begun: _Begun) -> Collection[RelationName]:
        runs = self.catalog.run_branches(self.database)
        try:
            runs.read_others(begun.run, begun.branch, begun.documents)
            names = begun.branch.changed_names(self.database)
            versions = runs.publish(begun.run, begun.branch, begun.documents)
        except errors.RunInProgressError:
            return ()  # the other process publishes the run
        except errors.ConcurrentModificationError:
            if runs.end_of(begun.run) is None:
                runs.drop(begun.run, begun.branch)  # continued, it would only meet the conflict again
            raise
        except errors.SiltError as error:
            runs.hold(begun.run, str(error))
            raise
        return {*names, *map(full_name, versions)}
