"""A dbt command as a logical run: chooses its run id, enters it in the registry, and marks its end."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import timezone
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.events.event_manager_client import add_callback_to_manager
from dbt_common.exceptions import DbtRuntimeError
from dbt_common.invocation import get_invocation_id, get_invocation_started_at

from dbt.adapters.silt.dbt_seams import interruption
from dbt.adapters.silt.dbt_seams.command_state import flags, selected_nodes
from dbt.adapters.silt.dbt_seams.dbt_command import RETRY, CommandEnd, DbtCommand
from dbt.adapters.silt.engine.kernel.errors import SiltError
from dbt.adapters.silt.lazy import lazy_module
from dbt.adapters.silt.records.locations import locations
from dbt.adapters.silt.records.run_registry import HIDDEN, RUN_ID_VARIABLE, RunEntry, RunRegistry, variables_text
from dbt.adapters.silt.records.units import RunContext
from dbt.adapters.silt.runs.logical_run.announcement import Announcement
from dbt.adapters.silt.runs.logical_run.recorded_end import CommittedNodes, RecordedEnd, last_failures, with_upstream
from dbt.adapters.silt.runs.logical_run.resume import ResumeRule, resumable
from dbt.adapters.silt.runs.logical_run.retry import PreviousResults, Retry
from dbt.adapters.silt.runs.logical_run.run_id import LogicalRun, Origin, RunSources, choose_run

if TYPE_CHECKING:
    from dbt_common.events.base_types import EventMsg

    from dbt.adapters.silt.engine.sql import ast
else:
    ast = lazy_module("dbt.adapters.silt.engine.sql.ast")

logger = AdapterLogger("Silt")

OPERATION = "run-operation"
PUBLISHING_COMMANDS = frozenset(("run", "build", "seed", "snapshot", "clone"))
"""The commands whose changes can be published at their end, by dbt's `which`, which for a retry names the repeated
command.
"""

WRITING_COMMANDS = PUBLISHING_COMMANDS | {OPERATION}
"""The commands whose writes are units of work."""

QUERYING_COMMANDS = (WRITING_COMMANDS - {OPERATION}) | {"test", "show"}
"""The commands that query the warehouse."""

_ONLY_READING_COMMANDS = frozenset(("compile", "generate", "show", "test"))
_OF_SPARK = re.compile(
    r"\b(?:distinct|from\s+(?:range|values)|group|having|join|order|over|union|with)\b", re.IGNORECASE
)
"""Words of queries that only Spark answers. If such a word means something else, Spark merely starts too early."""

_UNCHANGED = "unchanged"
"""The profile's value of `reuse` with which nodes are reused."""


def _unchanged(end: CommandEnd) -> CommandEnd:
    """Returns the end of a command whose changes are visible at once."""
    return end


class Invocation:
    """This dbt command. Create it on dbt's main thread: only that thread sees dbt's command line.

    Args:
        config: dbt's configuration, of a project or of a profile alone (`dbt debug`).
        of_commits: finds the run id of a retried run in the commits that it left.

    Raises:
        DbtRuntimeError: if this is `dbt retry`, and it would repeat less than the last run, or an older run.
    """

    def __init__(self, config: Any, of_commits: Callable[[PreviousResults], str | None]) -> None:
        self._config = config
        self._of_commits = of_commits
        self._lock = threading.RLock()
        self._run: LogicalRun | None = None
        self._parents: Callable[[str], Iterable[str]] = lambda _: ()
        self._upstream: frozenset[str] | None = None
        self._entered: str | None = None
        self._ended = False
        self._is_over = False
        self._is_hidden = False
        self._needs_spark = False
        self._may_have_written = False
        self._around = sys.exc_info()[1]
        # `dbt debug` knows the project only by its flag.
        given = getattr(config, "project_root", None) or getattr(flags(), "PROJECT_DIR", None)
        self.project_root = Path(given or os.getcwd())
        self.target_path = Path(getattr(config, "project_target_path", None) or self.project_root / "target")
        self._registry = RunRegistry(self.target_path)
        interruption.handle_signals()
        self._typed = DbtCommand.current(self.which)
        if self._typed.announces_end:
            add_callback_to_manager(self._on_event)
        self._committed = CommittedNodes(self.target_path)
        self._state = None if self._typed.state is None else self.project_root / self._typed.state
        self._retry = self._find_retry() if self.writes and self._typed.name == RETRY else None

    @property
    def id(self) -> str:
        """dbt's id of the command."""
        return str(get_invocation_id())

    @property
    def which(self) -> str:
        """dbt's name of the command; a retry has the name of the repeated command."""
        return str(self._flag("which"))

    @property
    def line(self) -> str:
        """The command line, without `--vars`."""
        return self._typed.line

    @property
    def variables(self) -> Mapping[str, Any]:
        """The command's `--vars`."""
        return getattr(self._config, "cli_vars", None) or {}

    @property
    def writes(self) -> bool:
        """Whether writes of this command are units of work."""
        return self._flag("which") in WRITING_COMMANDS

    @property
    def is_operation(self) -> bool:
        """Whether this is `dbt run-operation`, which may also be read-only."""
        return self.which == OPERATION

    @property
    def operation(self) -> str | None:
        """The macro that `dbt run-operation` runs, as named on the command line; None for any other command."""
        return str(self._flag("macro")) if self.is_operation else None

    @property
    def queries(self) -> bool:
        """Whether this command queries the warehouse."""
        return self._flag("which") in QUERYING_COMMANDS

    @property
    def may_need_no_spark(self) -> bool:
        """Whether this command only reads, so that all its queries may be answered without Spark."""
        return self._flag("which") in _ONLY_READING_COMMANDS

    @property
    def starts_spark_early(self) -> bool:
        """Whether Spark starts while dbt reads the project: this command surely needs it, or the last command of this
        kind in the project needed it. The first that may reuse every node starts it.
        """
        if not self.may_need_no_spark:
            return not (self._reuses and self._spark_mark.exists())
        return _OF_SPARK.search(str(self._flag("inline") or "")) is not None or self._spark_mark.exists()

    @property
    def _reuses(self) -> bool:
        """Whether this command may write nothing, because the profile has unchanged nodes reused."""
        return (
            self.which in PUBLISHING_COMMANDS and self._config.credentials.reuse == _UNCHANGED and not self.full_refresh
        )

    @property
    def full_refresh(self) -> bool:
        return bool(self._flag("full_refresh"))

    @property
    def context(self) -> RunContext:
        """The part of a unit's name that all units of work of this command share.

        Raises:
            InvalidSettingError: as for `run`.
        """
        return RunContext(
            project=str(getattr(self._config, "project_name", "")),
            target=str(getattr(self._config, "target_name", "")),
            run_id=self.run.run_id,
            empty=bool(self._flag("empty")),
            sample=bool(self._flag("sample")),
        )

    @property
    def run(self) -> LogicalRun:
        """The logical run, chosen at the first call.

        Raises:
            InvalidSettingError: if the given run id is invalid, or that of the run that `dbt retry` repeats is missing.
        """
        with self._lock:
            if self._run is None:
                self._run = choose_run(self._sources())
            return self._run

    @property
    def has_started(self) -> bool:
        """Whether this command is a run by now: an operation that has only read is not."""
        return self.writes and self._run is not None

    @property
    def run_id(self) -> str | None:
        """The run id of current writes; unset before the run starts, and for a command that is not a run."""
        return self.run.run_id if self.has_started else None

    @property
    def is_new_run(self) -> bool:
        """Whether this run id is new, so that no earlier command can have used it."""
        return self.run.origin is Origin.INVOCATION

    @property
    def failures(self) -> tuple[str, ...]:
        """The unique ids of the uncorrected failures of earlier commands of this run.

        Raises:
            InvalidSettingError, StorageError: if the registry cannot be read.
        """
        return last_failures((each for each in self._begun() if each.invocation_id != self.id), self.run.run_id)

    def parents(self, unique_id: str) -> Iterable[str]:
        """Returns the nodes from which a node or test is built."""
        return self._parents(unique_id)

    def forget_failures(self) -> None:
        """Notes that everything which earlier failures concern is built again from the beginning."""
        with self._lock:
            self._upstream = frozenset()

    @property
    def continuing_command(self) -> str:
        """The shell command that continues this run."""
        return self._entry(self.run.run_id).continuing_command(self._typed.directory)

    @property
    def upstream_of_failures(self) -> frozenset[str]:
        """The uncorrected failures of this run, and all nodes that they are built from.

        Raises:
            InvalidSettingError, StorageError: if the registry cannot be read.
        """
        with self._lock:
            if self._upstream is None:
                self._upstream = with_upstream(self.failures, self._parents)
            return self._upstream

    def on_session(self) -> None:
        """Notes that a statement of this command needs Spark."""
        self._needs_spark = True

    def on_manifest(self, parents: Callable[[str], Iterable[str]]) -> None:
        """Sets the function that gives a node's or test's parents in dbt's manifest, by their unique ids."""
        self._parents = parents

    def on_connection(self, is_hidden: bool = False) -> None:
        """Starts the run when dbt asks for a connection, unless it is an operation, which may be read-only.

        Args:
            is_hidden: whether its changes are hidden until its end.
        """
        self._is_hidden = is_hidden
        if not self.is_operation:
            self.start()

    def on_statement(self, statement: ast.Statement) -> None:
        """Notes a statement that changes data or metadata; starts the run of an operation before the first."""
        if not statement.changes_something:
            return
        self._may_have_written = self._may_have_written or not isinstance(statement, ast.CreateSchema)
        if self.is_operation and not self._entered:
            self.start()

    def start(self) -> None:
        """Enters the run in the registry and logs its id, once, if this command writes.

        Raises:
            InvalidSettingError: as for `run`.
            NotWrittenError: if the target folder cannot be written.
        """
        with self._lock:
            if self._entered or self._ended or not self.writes:
                return
            entry = self._entry(self.run.run_id)
            self._registry.enter(entry)
            self._entered = entry.invocation_id
        # Read after the run is entered: of two runs that start at the same time, at least the later sees the other.
        announcement = self._announcement(entry)
        for warning in announcement.warnings():
            logger.warning(warning)
        for line in announcement.lines():
            logger.info(line)

    def finish(self, publish: Callable[[CommandEnd], CommandEnd] = _unchanged) -> None:
        """Marks the run as finished when the connections are closed, unless an error or Ctrl-C ends it.

        dbt closes them before it writes its results, and again when the command is over. A run that is killed between
        the two must not look finished: it would not be continued.

        Args:
            publish: publishes or holds the run's changes, and returns the end of the command.
        """
        with self._lock:
            self._ended = True
            if self._typed.announces_end and not self._is_over:
                return
            entered, self._entered = self._entered, None
        self._mark_need_of_spark()
        error = sys.exc_info()[1]
        interruption.set_exit_code(error)
        command_end = CommandEnd.of(error, self._around)
        end = self._recorded(command_end if entered is None else publish(command_end))
        if entered is None and end.end.finished and self._flag("which") == "test":
            entered = self._enter_test()
        if entered is not None:
            self._name_overlaps(entered)
            retried = None if self._retry is None else self._retry.previous.unfinished
            end.record(entered, selected_nodes() if retried is None else retried)
            if not self.is_new_run:
                end.name_next_step(entered, self.run.run_id, self._parents)
        elif end.end.problem is not None and self.writes and not self.is_operation:
            with contextlib.suppress(SiltError):  # this error ends the command anyway
                end.record_failure_to_begin(self._entry(self.run.run_id))

    def _name_overlaps(self, entered: str) -> None:
        """Logs the runs that began while this command ran on the same tables."""
        try:
            own = self._registry.find(entered)
            if own is not None and own.running and own.builds:
                self._committed = CommittedNodes(self.target_path)  # with the commits since the start
                for line in self._announcement(own).overlaps():
                    logger.info(line)
        except SiltError as error:
            logger.debug(f"The runs that overlapped with this run are not named: {error}")

    @property
    def _spark_mark(self) -> Path:
        return self.target_path / f"silt_{'spark' if self.may_need_no_spark else 'no_spark'}_{self._flag('which')}"

    def _mark_need_of_spark(self) -> None:
        """Marks whether the next command of this kind starts Spark early; without the mark, it only starts later."""
        if not self.may_need_no_spark and not self._reuses:
            return
        try:
            if self._needs_spark == self.may_need_no_spark:
                self._spark_mark.touch()
            else:
                self._spark_mark.unlink(missing_ok=True)
        except OSError as error:
            logger.debug(f"The next command may start Spark later than it could: {error}")

    def _enter_test(self) -> str | None:
        """Enters `dbt test` under a given run id: a rerun of that run corrects the failures that it found.

        It is entered when it is over, because it writes nothing: a killed test leaves nothing to continue.
        """
        try:
            if self.is_new_run:
                return None
            self._registry.enter(self._entry(self.run.run_id))
        except SiltError as error:
            logger.warning(f"The result of this command could not be recorded: {error}")
            return None
        return self.id

    def _recorded(self, end: CommandEnd) -> RecordedEnd:
        return RecordedEnd(
            self._registry,
            self.target_path,
            self.which,
            self._typed.directory,
            end,
            may_have_written=self._may_have_written or self._is_hidden,
        )

    def _on_event(self, event: EventMsg) -> None:
        self._is_over = self._is_over or event.info.name == "CommandCompleted"

    def _sources(self) -> RunSources:
        credentials = self._config.credentials
        retried, unfinished = None, None
        if self._retry is not None:
            retried = partial(self._retry.run_id, self._known_entries(), self._of_commits)
        elif self.writes:
            rule = ResumeRule.of(credentials.resume, self._typed.by_a_person)
            unfinished = resumable(self._relevant_commands(), self._entry(""), rule)
        known = [each.run_id for each in self._registry.entries()] if RUN_ID_VARIABLE in self.variables else ()
        return RunSources(self.id, self.variables, retried, credentials.run_id, unfinished, known)

    def _begun(self) -> tuple[RunEntry, ...]:
        """Returns the project's commands that reached their nodes: no other can be continued, repeated or warned of."""
        return tuple(each for each in self._registry.entries() if each.began)

    def _relevant_commands(self) -> tuple[RunEntry, ...]:
        """Returns the commands that may have committed changes, are running, or have completed."""
        return tuple(filter(self._committed.may_matter, self._begun()))

    def _known_entries(self) -> tuple[RunEntry, ...]:
        """Returns the entries next to the results that are retried, followed by this project's."""
        of_state = () if self._state is None else RunRegistry(self._state).entries()
        return (*of_state, *self._begun())

    def _announcement(self, entry: RunEntry) -> Announcement:
        credentials = self._config.credentials
        return Announcement(
            self.run,
            entry,
            self._relevant_commands(),
            self._committed.of,
            entry.selected or frozenset(),
            profile_run_id=credentials.run_id,
            resume=credentials.resume,
        )

    def _entry(self, run_id: str) -> RunEntry:
        """Returns the registry's entry of this command: a retry has the command line of the run that it retries."""
        own = self._own(run_id)
        if self._retry is None:
            return own
        own = replace(own, repeats=self._retry.previous.invocation_id)
        repeated = None if self._retry.from_state else self._registry.find(self._retry.previous.invocation_id)
        return own if repeated is None else replace(own, command=repeated.command, directory=repeated.directory)

    def _own(self, run_id: str) -> RunEntry:
        return RunEntry(
            invocation_id=self.id,
            run_id=run_id,
            command=self._typed.line,
            which=self.which,
            directory=self._typed.directory,
            started_at=get_invocation_started_at().replace(tzinfo=timezone.utc).isoformat(),
            variables=variables_text(self.variables),
            target=str(getattr(self._config, "target_name", "")),
            warehouse=self._warehouse,
            schema=str(self._config.credentials.schema or ""),
            publication=HIDDEN if self._is_hidden else "",
            selected=selected_nodes() if self.operation is None else frozenset((self.operation,)),
        )

    @property
    def _warehouse(self) -> str:
        """The location of the profile's warehouse; empty if it is invalid, which the first statement reports."""
        given = self._config.credentials
        try:
            return locations(given.database, given.warehouse, given.databases, self.project_root)[given.database]
        except SiltError:
            return ""

    def _find_retry(self) -> Retry | None:
        """Returns this command's retry, checked unless the user has chosen the results to repeat."""
        previous = PreviousResults.read(self.target_path if self._state is None else self._state)
        if previous is None:
            return None
        from_state = self._state is not None and self._state.resolve() != self.target_path.resolve()
        suggested = self._config.credentials.run_id or previous.invocation_id
        retry = Retry(previous, self._own(suggested), from_state)
        if self._state is None:
            try:
                retry.check(self._begun(), str(self.target_path))
            except SiltError as error:
                raise DbtRuntimeError(str(error)) from error
        return retry

    @property
    def profiles_dir(self) -> str | None:
        """The folder of profiles.yml, if dbt knows it."""
        found = self._flag("profiles_dir")
        return None if found is None else str(found)

    def _flag(self, name: str) -> Any:
        """Returns a flag of the command, or None if dbt passes no such flag."""
        return getattr(getattr(self._config, "args", None), name, None)
