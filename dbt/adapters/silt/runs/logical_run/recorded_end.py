"""Records the end of a dbt command: its result, a copy of the results of its nodes, and the next command to type."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dbt.adapters.events.logging import AdapterLogger

from dbt.adapters.silt.dbt_seams import interruption
from dbt.adapters.silt.dbt_seams.dbt_command import CommandEnd, retry_line
from dbt.adapters.silt.engine.kernel.errors import SiltError
from dbt.adapters.silt.records.command_result import RESULTS_FILE, CommandResult, replace_results, results_of_command
from dbt.adapters.silt.records.kept_results import KeptResults
from dbt.adapters.silt.records.run_registry import RunEntry, RunRegistry, last_build
from dbt.adapters.silt.runs.logical_run.failures import last_failures, next_step

logger = AdapterLogger("Silt")


@dataclass(frozen=True)
class RecordedEnd:
    """The end of a dbt command.

    Attributes:
        registry: the project's registry of runs.
        target_path: dbt's target folder.
        which: dbt's name of the command.
        directory: the folder in which it was typed.
        end: its classified end.
        may_have_written: whether it began a statement that changes data or metadata.
    """

    registry: RunRegistry
    target_path: Path
    which: str
    directory: str
    end: CommandEnd
    may_have_written: bool = True

    def record(self, invocation_id: str, selected: Iterable[str]) -> None:
        """Records the end of a run; if the run was interrupted, finally logs the command to type.

        Args:
            selected: the unique ids of the nodes that the run was to run.
        """
        has_results = self.end.interrupted and self._enter_unfinished(invocation_id, selected)
        has_begun = has_results or self.may_have_written or not self.end.interrupted
        self._mark(invocation_id, has_results, has_begun)
        if not has_begun:
            logger.info(f"{_reason()} before anything was written: the same command starts again.")
        elif self.end.interrupted:
            self._advise(invocation_id, has_results)

    def record_failure_to_begin(self, entry: RunEntry) -> None:
        """Records a command that failed before its first node: otherwise it would look as if it had never been typed.

        It has changed nothing, so no rerun needs the record, and a registry that cannot be written is not an error.
        """
        with contextlib.suppress(SiltError):
            self.registry.enter(replace(entry, began=False))
            result = CommandResult.of(self.end.ending, (), self.end.problem)
            self.registry.end(entry.invocation_id, finished=False, result=result)

    def name_next_step(self, invocation_id: str, run_id: str, parents: Callable[[str], Iterable[str]]) -> None:
        """Logs last which command to type if a test failed on a node that this command has not built.

        Args:
            parents: gives the unique ids that a test is built from.
        """
        with contextlib.suppress(SiltError, OSError, ValueError):  # `record` has warned of unreadable files
            results = results_of_command(self.target_path, invocation_id)
            build = last_build(self.registry.entries(), run_id)
            line = None if build is None else next_step(results, parents, build, self.directory)
            if line is not None:
                logger.info(line)

    def _enter_unfinished(self, invocation_id: str, selected: Iterable[str]) -> bool:
        """Completes the results that dbt has written at Ctrl-C; returns False without such results."""
        try:
            return enter_unfinished(self.target_path, invocation_id, selected)
        except OSError as error:
            logger.warning(f"The nodes that had not run are not in dbt's results, so `dbt retry` will refuse: {error}")
            return False

    def _advise(self, invocation_id: str, has_results: bool) -> None:
        """Logs which command to type; an unreadable registry has been warned of."""
        with contextlib.suppress(SiltError):
            entry = self.registry.find(invocation_id)
            if entry is not None:
                logger.info(advice(entry, has_results, self.directory, _reason()))

    def _mark(self, invocation_id: str, has_results: bool, has_begun: bool) -> None:
        """Marks the end; a failure is only a warning: the commits stand, and dbt still has to write its results."""
        try:
            result = self._result(invocation_id)
            self.registry.end(
                invocation_id, self.end.finished, has_results, result, self.end.publication, began=has_begun
            )
        except SiltError as error:
            logger.warning(
                f"The end of this run could not be recorded, so `dbt retry` will treat it as a killed run: {error}"
            )

    def _result(self, invocation_id: str) -> CommandResult:
        """Returns the result of the command, from the results that dbt has written, and keeps a copy of these."""
        try:
            results = results_of_command(self.target_path, invocation_id)
            KeptResults(self.target_path).keep(invocation_id, self.which, results)
        except (OSError, ValueError) as error:
            logger.warning(f"The record of this run lacks its nodes: {error}")
            results = ()
        return CommandResult.of(self.end.ending, results, self.end.problem, self._earlier_failures(invocation_id))

    def _earlier_failures(self, invocation_id: str) -> Sequence[str]:
        """Returns the failures in the run before this command.

        Raises:
            InvalidSettingError, StorageError: if the registry cannot be read.
        """
        entries = self.registry.entries()
        run_ids = [each.run_id for each in entries if each.invocation_id == invocation_id]
        others = [each for each in entries if each.invocation_id != invocation_id]
        return last_failures(others, run_ids[0]) if run_ids else ()


def enter_unfinished(folder: Path, invocation_id: str, selected: Iterable[str]) -> bool:
    """Enters the nodes without a result into dbt's results as skipped.

    `dbt retry` repeats the nodes that failed or were skipped according to `run_results.json`. If `--fail-fast` stops a
    run, dbt enters the remaining nodes as skipped; after Ctrl-C it omits them, and a retry would succeed without them.

    Args:
        folder: dbt's target folder.
        invocation_id: the interrupted command.
        selected: the unique ids of the nodes that it was to run.

    Returns:
        Whether dbt has written the results of that command, so that they are complete now.
    """
    path = folder / RESULTS_FILE
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return False
    if document["metadata"]["invocation_id"] != invocation_id:
        return False
    known = {result["unique_id"] for result in document["results"]}
    document["results"] += [_skipped(unique_id) for unique_id in selected if unique_id not in known]
    replace_results(folder, document)
    return True


def advice(entry: RunEntry, has_results: bool, directory: str, reason: str) -> str:
    """Returns the last line of an interrupted run, below dbt's traceback: the command to type next.

    Args:
        has_results: whether `dbt retry` knows the remaining nodes.
        directory: the folder in which the command was typed.
        reason: why it ended, as the beginning of a sentence.
    """
    if has_results:
        how = f"`{retry_line(entry.command)}` runs the rest"
    else:
        how = f"`{entry.continuing_command(directory)}` continues it"
    return f"{reason}: committed work is kept, and {how}."


def _reason() -> str:
    """Returns why an interrupted command ended, as the beginning of a sentence."""
    return "Ended by SIGTERM" if interruption.was_received() else "Interrupted"


def _skipped(unique_id: str) -> dict[str, Any]:
    return {
        "status": "skipped",
        "timing": [],
        "thread_id": "",
        "execution_time": 0.0,
        "adapter_response": {},
        "message": "Skipped because the run was interrupted",
        "failures": None,
        "unique_id": unique_id,
        "compiled": False,
        "compiled_code": None,
        "relation_name": None,
        "batch_results": None,
    }
