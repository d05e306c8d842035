"""One dbt command as a logical run: what `runs` needs, gathered from dbt's flags, arguments and configuration."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import click
from dbt.adapters.events.logging import AdapterLogger
from dbt.flags import get_flags
from dbt_common.exceptions import DbtRuntimeError
from dbt_common.invocation import get_invocation_id, get_invocation_started_at

from dbt.adapters.silt.credentials import SiltCredentials, parse_duration
from dbt.adapters.silt.engine.kernel.errors import SiltError
from dbt.adapters.silt.runs import (
    LogicalRun,
    Origin,
    PreviousResults,
    RunEntry,
    RunRegistry,
    RunSources,
    check_retry,
    choose_run,
    command_line,
    read_results,
)
from dbt.adapters.silt.units import RunContext

logger = AdapterLogger("Silt")

WRITING_COMMANDS = frozenset(("run", "build", "seed", "snapshot", "clone"))
"""The commands whose writes are units of work, as dbt's `which` names them; a retry has the name of what it repeats."""

QUERYING_COMMANDS = WRITING_COMMANDS | {"test", "show"}
"""The commands that surely need Spark."""


class Invocation:
    """This dbt command. It is made on dbt's main thread, where dbt's command line can be seen.

    Args:
        config: dbt's configuration: of a project, or of a profile alone (`dbt debug`).
        of_commits: finds the run id of a retried run in the commits that it left.

    Raises:
        DbtRuntimeError: this is `dbt retry`, and it would repeat an older run than the last one.
    """

    def __init__(self, config: Any, of_commits: Callable[[PreviousResults], str | None]) -> None:
        self._config = config
        self._of_commits = of_commits
        self._lock = threading.Lock()
        self._run: LogicalRun | None = None
        self._entered: str | None = None
        # `dbt debug` knows the project by its flag alone.
        given = getattr(config, "project_root", None) or getattr(get_flags(), "PROJECT_DIR", None)
        self.project_root = Path(given or os.getcwd())
        self.target_path = Path(getattr(config, "project_target_path", None) or self.project_root / "target")
        self._registry = RunRegistry(self.target_path)
        self._previous = self._retried_results()

    @property
    def id(self) -> str:
        """dbt's id of the command."""
        return str(get_invocation_id())

    @property
    def writes(self) -> bool:
        """Whether writes of this command are units of work."""
        return self._flag("which") in WRITING_COMMANDS

    @property
    def queries(self) -> bool:
        """Whether this command surely needs Spark."""
        return self._flag("which") in QUERYING_COMMANDS

    @property
    def full_refresh(self) -> bool:
        return bool(self._flag("full_refresh"))

    @property
    def context(self) -> RunContext:
        """What the units of work of this command have in common.

        Raises:
            InvalidSettingError: `dbt retry`, and the run id of what it repeats cannot be found.
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
        """The logical run, chosen and entered into `silt_runs.json` at the first call."""
        with self._lock:
            if self._run is None:
                self._run = self._choose()
                if self.writes:
                    self._enter(self._run)
            return self._run

    def start(self) -> None:
        """Enter the run, if this command is one."""
        if self.writes:
            _ = self.run

    def finish(self) -> None:
        """Mark the run as one that came to its end."""
        with self._lock:
            entered, self._entered = self._entered, None
        if entered is not None:
            self._registry.finish(entered)

    def _choose(self) -> LogicalRun:
        credentials: SiltCredentials = self._config.credentials
        sources = RunSources(
            invocation_id=self.id,
            variables=getattr(self._config, "cli_vars", None) or {},
            profile_run_id=credentials.run_id,
            resume=parse_duration(credentials.resume) if credentials.resume else None,
            entries=self._registry.entries() if self.writes else (),
            previous=self._previous,
        )
        run = choose_run(sources, datetime.now(timezone.utc), self._of_commits)
        if run.origin is Origin.RESUME:
            logger.info(f"Continuing run {run.run_id}, which did not finish: what it committed is skipped")
        return run

    def _enter(self, run: LogicalRun) -> None:
        started = get_invocation_started_at().replace(tzinfo=timezone.utc)
        entry = RunEntry(
            invocation_id=self.id,
            run_id=run.run_id,
            command=command_line(self._command(), sys.argv[1:]),
            variables=getattr(self._config, "cli_vars", None) or {},
            started_at=started.isoformat(),
        )
        self._registry.enter(entry)
        self._entered = entry.invocation_id

    def _retried_results(self) -> PreviousResults | None:
        context = click.get_current_context(silent=True)
        if context is None or context.info_name != "retry":
            return None
        state = context.params.get("state")
        folder = self.project_root / state if state else self.target_path
        previous = read_results(folder / "run_results.json")
        if previous is not None and not state and self.writes:
            try:
                check_retry(self._registry.entries(), previous, self.id)
            except SiltError as error:
                raise DbtRuntimeError(str(error)) from error
        return previous

    def _command(self) -> str:
        return "retry" if self._previous is not None else str(self._flag("which"))

    def _flag(self, name: str) -> Any:
        """A flag of the command; None where dbt gives no such flag."""
        return getattr(getattr(self._config, "args", None), name, None)
