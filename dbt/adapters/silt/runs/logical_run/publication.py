"""Publishes the changes of a dbt command at its end, if the profile's `publish` says so.

The command works on a branch, which no other program sees. dbt's process can be killed at any step: the branch is found
by the run's id, so the same run continues on it, and it is published once.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Container, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Final, Protocol

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.silt.dbt_seams.dbt_command import CommandEnd
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName, full_name, normalize
from dbt.adapters.silt.engine.kernel.errors import (
    ConcurrentModificationError,
    RunInProgressError,
    SiltError,
    UnsupportedStatementError,
)
from dbt.adapters.silt.engine.kernel.printable import short_id
from dbt.adapters.silt.lazy import lazy_module
from dbt.adapters.silt.records.command_result import (
    RESULTS_FILE,
    Ending,
    is_failed,
    is_on_run_hook,
    replace_results,
    results_of_command,
)
from dbt.adapters.silt.records.journal import CommitJournal, JournalEntry
from dbt.adapters.silt.records.run_registry import HELD, PUBLISHED
from dbt.adapters.silt.runs.logical_run.command_of_run import CommandOfRun
from dbt.adapters.silt.runs.logical_run.invocation import PUBLISHING_COMMANDS, Invocation
from dbt.adapters.silt.runs.logical_run.publish_mode import PublishMode, publish_mode

if TYPE_CHECKING:
    from dbt.adapters.silt.dbt_seams import run_again
    from dbt.adapters.silt.dbt_seams.run_again import RanNodes
    from dbt.adapters.silt.engine.catalog.branches import later_statements, run_branches, run_nodes
    from dbt.adapters.silt.engine.catalog.branches.branch import Branch
    from dbt.adapters.silt.engine.catalog.branches.conflicts import Relation
    from dbt.adapters.silt.engine.catalog.branches.later_statements import LaterStatement, LaterStatements
    from dbt.adapters.silt.engine.catalog.branches.run_commands import Standing
    from dbt.adapters.silt.engine.catalog.branches.run_nodes import RunNodes
    from dbt.adapters.silt.engine.catalog.catalog import Catalog
    from dbt.adapters.silt.runs.logical_run import affected
    from dbt.adapters.silt.runs.logical_run.affected import BranchWork
else:
    run_again = lazy_module("dbt.adapters.silt.dbt_seams.run_again")
    affected = lazy_module("dbt.adapters.silt.runs.logical_run.affected")
    run_nodes = lazy_module("dbt.adapters.silt.engine.catalog.branches.run_nodes")
    later_statements = lazy_module("dbt.adapters.silt.engine.catalog.branches.later_statements")
    run_branches = lazy_module("dbt.adapters.silt.engine.catalog.branches.run_branches")

logger = AdapterLogger("Silt")

_OPERATION: Final = "PUBLISH"
_DECISIONS: Final = 5
"""How often a command decides again because another command of the run has begun meanwhile."""


class Outside(Protocol):
    """The warehouse outside of the branch of a run, as a dbt command opens it."""

    @property
    def catalog(self) -> Catalog:
        """The relations of the warehouse, without the changes of the run."""

    @property
    def published(self) -> Catalog:
        """The relations of the warehouse, even if the profile has a branch."""

    @property
    def listed_files(self) -> Container[str]:
        """The files that this process lists if a log names them."""

    def dbt_errors(self) -> AbstractContextManager[None]:
        """Turns errors of the engine and of Spark into dbt's."""

    def begin_again(self) -> None:
        """Counts the statements of nodes that run again from the beginning, as for a command."""

    def run_later(self, statement: LaterStatement) -> None:
        """Runs a statement of the run after its publication."""

    def forget_branch(self) -> None:
        """Finds the profile's branch again when it is next used."""

    def register(self, published: Collection[RelationName]) -> None:
        """Registers published tables in other catalogs."""

    def keep_up(self) -> str | None:
        """Keeps up the tables of the warehouse, if the profile says so; returns a line about it."""

    def write_duckdb_file(self) -> None:
        """Shows the visible tables in the profile's file of DuckDB, if any."""


class RunPublication:
    """The branch of a dbt command, and its publication.

    Args:
        invocation: the command.
        credentials: the profile: when the changes become visible, and how. Only relations of its database are on the
            branch.
        outside: the warehouse outside of the branch.

    Attributes:
        is_on: whether this command works on a branch.
        branch, later: its branch, and the statements that run after the publication; None if it works on no branch.

    Raises:
        DbtRuntimeError: if the variable `silt_publish` is invalid.
    """

    def __init__(self, invocation: Invocation, credentials: Any, outside: Outside) -> None:
        with outside.dbt_errors():
            self._mode = publish_mode(invocation.variables, credentials.publish)
        self._invocation = invocation
        self._credentials = credentials
        self._database: str = credentials.database
        self._outside = outside
        self._own = CommandOfRun(invocation, tests_count=self._mode is not PublishMode.AFTER_RUN)
        self._attempts_left: int = credentials.publish_attempts
        self._left: frozenset[str] = frozenset()
        self._run: run_branches.BranchedRun | None = None
        self._on_branch: Catalog | None = None
        self._failure: Exception | None = None
        self.is_on = self._mode is not PublishMode.AT_ONCE and invocation.which in PUBLISHING_COMMANDS
        self.branch: Branch | None = None
        self.later: LaterStatements | None = None
        if self.is_on:
            run_again.ask_adapters()

    @property
    def catalog(self) -> Catalog:
        """The relations of the warehouse, as this command sees them."""
        return self._on_branch or self._base

    @property
    def _base(self) -> Catalog:
        """The relations outside of the branch on which the statements of this command work."""
        return self._outside.published if self.is_on else self._outside.catalog

    def begin(self) -> None:
        """Starts the run and opens its branch, once. If an earlier process has published the run, and was killed before
        all of its later statements had run, these run first.

        Raises:
            DbtRuntimeError: if it cannot be opened, or such a statement fails.
        """
        with self._outside.dbt_errors():
            self._invocation.on_connection(self.is_on)
            self._enter_named()
            if self.is_on and self.branch is None:
                self._open_branch(self._base)

    def _open_branch(self, catalog: Catalog) -> None:
        context = self._invocation.context
        catalog.open_schema(self._database, self._credentials.schema)
        onto = normalize(self._credentials.branch)
        run = run_branches.BranchedRun(context.project, context.target, context.run_id, onto=onto)
        runs = catalog.run_branches(self._database)
        published = runs.waiting(run)
        if published is not None:
            logger.info(f"The run {short_id(run.run_id)} was published; its statements after that follow")
            runs.run_later(published, self._outside.run_later)
        self._run, self.branch = runs.open(run, self._own.enter)
        self.later = runs.later(self._run)
        self._on_branch = catalog.on_branch(self._database, self.branch)

    def _enter_named(self) -> None:
        """Records that this command works on a named branch, once, so that the branch is not merged meanwhile."""
        named = "" if self.is_on else self._credentials.branch
        if named and not self._own.has_entered and self._invocation.which in PUBLISHING_COMMANDS:
            branches = self._base.named_branches(self._database)
            self._own.enter(branches.commands(branches.find(named)))

    def first(self, ran: RanNodes) -> frozenset[str]:
        """Opens the branch of this run; if an earlier command of the run was held, drops the changes that a correction
        makes invalid. Returns the nodes that have to run whole in this command, selected or not.

        Raises:
            DbtRuntimeError: as `begin`; or if that would drop a change that a session has made on the branch, or
                another process has published, continued or dropped the run.
        """
        self.begin()
        with self._outside.dbt_errors():
            try:
                return self._first(replace(ran, files=self._outside.listed_files))
            except SiltError as error:
                raise self.explained(error) from None

    def _first(self, ran: RanNodes) -> frozenset[str]:
        if self._run is None or self.branch is None:
            return frozenset()
        runs = self._base.run_branches(self._database)
        known = run_nodes.RunNodes() if self._invocation.is_new_run else runs.nodes(self._run)
        is_alone = bool(self._run.held) and not self._own.documents.at_work()
        nodes = self._corrected(ran, known, self.branch) if is_alone else known
        definitions = _definitions(ran)
        hooks = {each for each in definitions if is_on_run_hook(each)}
        nodes = nodes.with_new({each: definitions[each] for each in (ran.selected | hooks) & definitions.keys()})
        if nodes != known:
            runs.note_nodes(self._run, nodes)
        owed = nodes.again & ran.of_project - hooks
        self._left = owed - ran.selected - ran.others
        return owed - self._left

    def _corrected(self, ran: RanNodes, known: RunNodes, branch: Branch) -> RunNodes:
        """Drops the changes of a held run that a correction makes invalid; returns the nodes of the run."""
        assert self._run is not None and self.later is not None
        work = affected.BranchWork(branch.changes(self._database), ran, known)
        changed = self._changed(work, branch) if self._credentials.held_inputs == "newest" else {}
        failed = {*self._own.standing().failed, *self._invocation.failures}
        failures = sorted(failed & ran.selected)
        keeps = affected.keeps_changes_by_hand(self._invocation.variables)
        found = work.affected_by_corrections(changed, failures, self._invocation.parents, keeps)
        nodes = found.nodes & ran.of_project
        missing = work.impossible(nodes)
        if missing:
            names = ", ".join(sorted(each.split(".")[2] for each in missing))
            logger.warning(
                f"Nothing is corrected: this command cannot build {names} again. Type the command that has built it, "
                f"with the run id {self._run.run_id}"
            )
            return known
        self._invocation.forget_failures()
        for reason in found.reasons:
            logger.info(f"Corrected: {reason}")
        known = known.begun_again(found.nodes, _definitions(ran))
        if found.relations:
            self._continue(found.relations, branch, known)
            logger.info(f"Built again: {found}")
        return known

    def _changed(self, work: BranchWork, branch: Branch) -> Mapping[Relation, str]:
        """Returns the inputs of the run that other programs have changed since it read them."""
        return {**work.changed_inputs(self._outside.catalog, self._database), **branch.outdated()}

    def _continue(self, lost: frozenset[Relation], branch: Branch, nodes: RunNodes) -> None:
        """Continues the run on another branch, without the changes of some relations."""
        assert self._run is not None and self.later is not None
        catalog = self._base
        runs = catalog.run_branches(self._database)
        self._run, self.branch, self.later = runs.begin_again(self._run, branch, lost, self.later, nodes)
        self._own.documents.move_to(self._run.branch)
        self._on_branch = catalog.on_branch(self._database, self.branch)

    def again(self, ran: RanNodes) -> frozenset[str]:
        """Returns the nodes that are to run again because their changes conflict with other programs'; empty if the
        command is to end. The changes of these nodes are dropped.
        """
        chosen = self._chosen(replace(ran, files=self._outside.listed_files))
        if chosen:
            self._outside.begin_again()
        return chosen

    def _chosen(self, ran: RanNodes) -> frozenset[str]:
        self._attempts_left -= 1
        self._own.on_ran(ran)
        self._forget_removed(ran)
        if self.branch is None or self._attempts_left < 1:
            return frozenset()
        try:
            return frozenset() if self._own.prevents(ran.results) else self._again(ran, self.branch)
        except SiltError as error:
            logger.debug(f"No node runs again: {error}")  # the publication meets the same error, and reports it
            return frozenset()

    def _forget_removed(self, ran: RanNodes) -> None:
        """Drops the statements that an earlier command of the run has left for a node or hook which the project no
        longer has, or for an on-run hook that has run and has not stated them again.
        """
        if self.later is None:
            return
        try:
            self.later.forget_others(ran.of_project)
            for each in ran.results:
                if is_on_run_hook(str(each["unique_id"])):
                    self.later.begin(str(each["unique_id"]))
        except SiltError as error:
            logger.warning(f"Statements that the project no longer has may run after the publication: {error}")

    def _again(self, ran: RanNodes, branch: Branch) -> frozenset[str]:
        assert self._run is not None and self.later is not None
        conflicts = branch.conflicts(self._database)
        if not conflicts:
            return frozenset()
        known = self._base.run_branches(self._database).nodes(self._run)
        work = affected.BranchWork(branch.changes(self._database), ran, known)
        found = work.affected_by_conflicts(conflicts, lambda: self._changed(work, branch))
        if found is None:
            return frozenset()
        self._continue(found.relations, branch, known.begun_again(found.nodes, _definitions(ran)))
        for reason in found.reasons:
            logger.info(f"Conflict: {reason}")
        logger.info(f"Only these nodes run again, {len(found.nodes)} of {len(ran.selected)}: {found}")
        return found.nodes

    def end(self, end: CommandEnd) -> CommandEnd:
        """Publishes the changes, or holds them if the command or a node of it has failed; returns the command's end.

        A program that uses the adapter after the command sees the published tables.
        """
        try:
            if self.branch is None and self._own.has_entered:
                self._own.end(end, self._results())
            decided = end if self.branch is None else self._ended(end, self.branch)
        finally:
            self.is_on, self.branch, self.later, self._on_branch = False, None, None, None
            self._outside.forget_branch()
        if self._credentials.upkeep and self._has_succeeded(decided):
            decided = replace(decided, upkeep=self._outside.keep_up())
        if not end.interrupted:
            self._outside.write_duckdb_file()
        return decided

    def _has_succeeded(self, end: CommandEnd) -> bool:
        is_visible = end.ending is Ending.SUCCESS and end.publication != HELD
        return is_visible and not any(map(is_failed, self._results()))

    def _ended(self, end: CommandEnd, branch: Branch) -> CommandEnd:
        results = self._results()
        try:
            lost = self._lost(branch)
            self._own.end(end, results)
            decided = self._lost_end(lost) if lost is not None else self._decided(end, results)
        except SiltError as error:
            self._hold(str(error), error)
            self._failure, decided = error, CommandEnd(True, Ending.FAILED, str(error), HELD)
        return decided if end.finished else replace(end, publication=None if end.interrupted else decided.publication)

    def _decided(self, end: CommandEnd, results: Sequence[Mapping[str, Any]]) -> CommandEnd:
        """Publishes the run if nothing of its commands prevents it, and holds it otherwise."""
        for _ in range(_DECISIONS):
            standing = self._own.standing()
            if standing:
                self._hold_for(standing)
            elif self._left:
                return self._left_end()
            elif self._mode is PublishMode.ON_REQUEST:
                self._wait_for_request()
            if standing or self._mode is PublishMode.ON_REQUEST:
                return replace(end, publication=HELD)
            self._failure = self._publish(results)
            if not isinstance(self._failure, RunInProgressError):
                break
        return self._published_end(end)

    def _left_end(self) -> CommandEnd:
        """Holds a run with nodes that must be built again, and that this command cannot build."""
        names = ", ".join(sorted(each.split(".")[2] for each in self._left))
        problem = f"the run must build {names} again, and this command cannot"
        self._failure = UnsupportedStatementError(problem, remedy="Type the command that has built it")
        self._hold(problem, self._failure)
        return CommandEnd(True, Ending.FAILED, str(self._failure), HELD)

    def _published_end(self, end: CommandEnd) -> CommandEnd:
        if self._failure is None:
            self._failure = self._run_later()
            failed = end if self._failure is None else CommandEnd(True, Ending.FAILED, str(self._failure))
            return replace(failed, publication=PUBLISHED)
        is_held = not isinstance(self._failure, ConcurrentModificationError)
        return CommandEnd(True, Ending.FAILED, str(self._failure), HELD if is_held else None)

    def explained(self, error: Exception) -> Exception:
        """Returns the error of a statement, or the error that another process has ended the run meanwhile."""
        if self.branch is None:
            return error
        try:
            return self._lost(self.branch, f" ({error})") or error
        except SiltError:
            return error

    def _lost(self, branch: Branch, cause: str = "") -> ConcurrentModificationError | None:
        """Returns the error that another process has ended the run while this command worked, if it has."""
        assert self._run is not None
        how = self._base.run_branches(self._database).end_of(self._run)
        if how is None:
            return None
        run_id = self._run.run_id
        seen = f"; visible are its changes up to then: {_shown(branch.attempts.published_versions() or {})}"
        return ConcurrentModificationError(
            f"another process has {how} the run {run_id} while this command worked on it"
            f"{seen if how == 'published' else ''}{cause}",
            remedy=f"Run the same command again with the run id {run_id}: it does the rest",
        )

    def _lost_end(self, error: ConcurrentModificationError) -> CommandEnd:
        logger.error(f"Not published by this command: {error}")
        self._failure = error
        return CommandEnd(True, Ending.FAILED, str(error))

    def raise_failure(self) -> None:
        """Ends dbt with its exit code of an error, if the changes could not be published."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise run_again.aborting_error(failure) from failure

    def _results(self) -> Sequence[Mapping[str, Any]]:
        try:
            return results_of_command(self._invocation.target_path, self._invocation.id)
        except (OSError, ValueError) as error:
            logger.debug(f"The results of this command cannot be read: {error}")
            return ()

    def _publish(self, results: Sequence[Mapping[str, Any]]) -> SiltError | None:
        """Publishes the changes; returns the error if they could not be published."""
        assert self._run is not None and self.branch is not None
        try:
            runs = self._base.run_branches(self._database)
            runs.read_others(self._run, self.branch, self._own.documents)
            changed = self.branch.changed_names(self._database)
            versions = runs.publish(self._run, self.branch, self._own.documents)
        except RunInProgressError as error:
            return error
        except ConcurrentModificationError as error:
            return self._after_conflict(error, self.branch)
        except SiltError as error:
            self._hold(str(error), error)
            return error
        logger.info(_published(versions, results, self._credentials.branch))
        self._note(versions)
        self._enter(versions, results)
        self._outside.register({*changed, *map(full_name, versions)})
        return None

    def _after_conflict(self, error: ConcurrentModificationError, branch: Branch) -> SiltError | None:
        """Drops the run, unless another process has ended it; returns the error, unless the other has published it:
        this command had recorded its results before.
        """
        assert self._run is not None
        how = self._base.run_branches(self._database).end_of(self._run)
        if how is None:
            self._drop(error)
        elif how == "published":
            logger.info(
                f"Published by another command of the run: {_shown(branch.attempts.published_versions() or {})}"
            )
            return None
        else:
            logger.error(f"Not published: another process has {how} the run {short_id(self._run.run_id)}")
        return error

    def _run_later(self) -> Exception | None:
        """Runs the statements that wait for the publication; returns the error of a statement that fails."""
        assert self._run is not None
        run_id = short_id(self._run.run_id)
        try:
            if self.later is not None:
                self.later.read_others()
            self._base.run_branches(self._database).run_later(self._run, self._outside.run_later, self.later)
        except (SiltError, DbtRuntimeError) as error:
            logger.error(f"The run {run_id} is published, but a statement after the publication failed: {error}")
            logger.error(f"  {later_statements.advice_on_rest(run_id)}")
            return error
        return None

    def _note(self, versions: Mapping[str, int]) -> None:
        """Appends the commits to the project's journal; a failure is only a warning, because they have happened."""
        context, time = self._invocation.context, datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        journal = CommitJournal(self._invocation.target_path)
        try:
            for table, version in sorted(versions.items()):
                journal.append(
                    JournalEntry(
                        time,
                        table,
                        self._invocation.id,
                        context.target,
                        context.run_id,
                        table_version=version,
                        operation=_OPERATION,
                    )
                )
        except OSError as error:
            logger.warning(f"{journal.path} cannot be written ({error}); the commits are in the logs of the tables")

    def _drop(self, conflict: ConcurrentModificationError) -> None:
        """Drops the changes after a conflict, which a continued run would only meet again."""
        assert self._run is not None and self.branch is not None
        logger.error(
            f"Not published: no change of the run {short_id(self._run.run_id)} is visible, "
            f"and it is dropped: {conflict}"
        )
        try:
            self._base.run_branches(self._database).drop(self._run, self.branch)
        except SiltError as error:
            logger.warning(f"The dropped changes could not be deleted: {error}")

    def _hold_for(self, standing: Standing) -> None:
        """Holds the run for failures and unfinished commands; leaves it to the commands that still work."""
        assert self._run is not None
        run_id = short_id(self._run.run_id)
        if standing.has_failed:
            self._hold(standing.reason, lines=standing.lines(self._invocation.id))
            return
        logger.warning(f"Held: {standing.reason}, so no change of the run {run_id} is visible yet")
        logger.warning("  the last command of the run publishes it, unless a node or test has failed")
        logger.warning(f"  if it was killed: silt publish {run_id} --if-passed shows it, or publishes the run")

    def _wait_for_request(self) -> None:
        assert self._run is not None
        run_id = short_id(self._run.run_id)
        logger.info(f"Held: nothing has failed, and no change of the run {run_id} is visible until its last task types")
        logger.info(f"  silt publish {run_id} --if-passed")

    def _hold(self, reason: str, failure: SiltError | None = None, lines: Sequence[str] = ()) -> None:
        assert self._run is not None
        run_id = short_id(self._run.run_id)
        try:
            self._base.run_branches(self._database).hold(self._run, reason)
        except SiltError as error:
            logger.warning(f"The reason why this run is held could not be recorded: {error}")
        if failure is not None:
            logger.error(f"The run {run_id} could not be published: {failure}")
        else:
            logger.error(f"Held: {reason}, so no change of the run {run_id} is visible")
        for line in lines:
            logger.error(f"  to be corrected in another command of the run: {line}")
        same = self._invocation.continuing_command
        logger.error(f"  correct the source or the code, and run the same command again: {same}")
        logger.error(f"  look at it: silt sql --run {run_id}")
        logger.error(f"  publish it anyway: silt publish {run_id}, or drop it: silt drop-run {run_id}")

    def _enter(self, versions: Mapping[str, int], results: Sequence[Mapping[str, Any]]) -> None:
        """Enters the versions of the tables into dbt's results: they have no versions before the publication."""
        for each in results:
            response = each.get("adapter_response") or {}
            if response.get("table") in versions:
                response["table_version"] = versions[response["table"]]
        folder = self._invocation.target_path
        try:
            if results:
                document = json.loads((folder / RESULTS_FILE).read_text(encoding="utf-8"))
                replace_results(folder, {**document, "results": list(results)})
        except (OSError, ValueError) as error:
            logger.warning(f"The published versions are not in {RESULTS_FILE}: {error}")


def _definitions(ran: RanNodes) -> dict[str, str]:
    """Returns the definition of each node, test and on-run hook of the project; the definition of a test is empty."""
    return {**dict.fromkeys(ran.of_project, ""), **ran.definitions()}


def _published(versions: Mapping[str, int], results: Sequence[Mapping[str, Any]], named: str) -> str:
    if versions:
        return f"Published {f'into the branch {named} ' if named else ''}at one moment: {_shown(versions)}"
    responses = [each.get("adapter_response") or {} for each in results]
    earlier = {
        str(each["table"]): int(each["table_version"])
        for each in responses
        if each.get("skipped") and each.get("table") and each.get("table_version") is not None
    }
    if earlier:
        return f"Published before, and this command has changed no table: {_shown(earlier)}"
    return "Published: no table has changed"


def _shown(versions: Mapping[str, int]) -> str:
    return ", ".join(f"{name}@v{version}" for name, version in sorted(versions.items())) or "no table"
