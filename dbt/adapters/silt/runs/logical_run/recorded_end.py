"""Records the end of a dbt command: its result, its nodes' results, its failures, and the next command to type."""

from __future__ import annotations

import contextlib
import json
import shlex
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from dbt.adapters.events.logging import AdapterLogger

from dbt.adapters.silt.dbt_seams import interruption
from dbt.adapters.silt.dbt_seams.dbt_command import CommandEnd, retry_line
from dbt.adapters.silt.engine.kernel.errors import SiltError
from dbt.adapters.silt.engine.kernel.printable import short_id
from dbt.adapters.silt.records.command_result import (
    RESULTS_FILE,
    CommandResult,
    KeptResults,
    is_failed,
    node_name,
    replace_results,
    results_of_command,
)
from dbt.adapters.silt.records.journal import CommitJournal
from dbt.adapters.silt.records.run_registry import HELD, RunEntry, RunRegistry, last_build

logger = AdapterLogger("Silt")

_TABLES: Final = ("model.", "seed.", "snapshot.")


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
        """Logs last which command to type if a test failed on a node that this command has not built, unless the run is
        held: the lines about that name the next step.

        Args:
            parents: gives the unique ids that a test is built from.
        """
        with contextlib.suppress(SiltError, OSError, ValueError):  # `record` has warned of unreadable files
            results = results_of_command(self.target_path, invocation_id)
            build = last_build(self.registry.entries(), run_id)
            is_held = self.end.publication == HELD
            line = None if build is None or is_held else _next_step(results, parents, build, self.directory)
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
        result = CommandResult.of(self.end.ending, results, self.end.problem, self._earlier_failures(invocation_id))
        return replace(result, upkeep=self.end.upkeep)

    def _earlier_failures(self, invocation_id: str) -> Sequence[str]:
        """Returns the failures in the run before this command.

        Raises:
            InvalidSettingError, StorageError: if the registry cannot be read.
        """
        entries = self.registry.entries()
        run_ids = [each.run_id for each in entries if each.invocation_id == invocation_id]
        others = [each for each in entries if each.invocation_id != invocation_id]
        return last_failures(others, run_ids[0]) if run_ids else ()


class CommittedNodes:
    """The nodes that each run of a project has committed; the journal is read at the first use.

    Args:
        target_path: dbt's target path.
    """

    def __init__(self, target_path: Path) -> None:
        self._journal = CommitJournal(target_path)

    def of(self, entry: RunEntry) -> frozenset[str]:
        """Returns the unique ids that the run of a command has committed; for an operation, its macro.

        Raises:
            StorageError: if the journal cannot be read.
        """
        return self._by_run.get(entry.run_id, frozenset())

    def may_matter(self, entry: RunEntry) -> bool:
        """Returns whether this command matters to a later command: not if an error ended it before its first commit.

        A killed command may have committed a write just before its line in the journal, and commits that are not
        visible have no lines.
        """
        return not entry.is_visible or not (entry.is_unfinished and entry.has_failed) or bool(self.of(entry))

    @cached_property
    def _by_run(self) -> Mapping[str, frozenset[str]]:
        found: dict[str, set[str]] = defaultdict(set)
        for each in self._journal.read().entries:
            if each.run_id and each.node_id and not each.skipped:
                found[each.run_id].add(each.node_id)
        return {run_id: frozenset(nodes) for run_id, nodes in found.items()}


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


def _next_step(
    results: Sequence[Mapping[str, Any]], parents: Callable[[str], Iterable[str]], build: RunEntry, directory: str
) -> str | None:
    """Returns the line for the end of a command, or None if a failure needs no advice.

    Args:
        results: the results of its nodes, as in dbt's `run_results.json`.
        parents: gives the unique ids that a test is built from.
        build: the run's last command that builds.
        directory: the folder in which the next command is typed.
    """
    failed = [each["unique_id"] for each in results if is_failed(each)]
    tested = {parent for each in failed if each.startswith("test.") for parent in parents(each)}
    left = sorted(node_name(each) for each in tested - _built(results) if each.startswith(_TABLES))
    unrepeated = sorted(node_name(each) for each in with_upstream(failed, parents) & _changed_since(results))
    if unrepeated:
        return _undo(unrepeated, build, directory)
    if not left:
        return None
    return (
        f"A test failed on {', '.join(left)}, which run {short_id(build.run_id)} had built before this command. "
        f"Correct the source or the code, then type `{build.continuing_command(directory)}`: nodes that "
        "changed since are built again. A new run id builds everything again"
    )


def last_failures(entries: Iterable[RunEntry], run_id: str) -> tuple[str, ...]:
    """Returns dbt's unique ids of the failures that the last finished command of a run has left to correct.

    These are the nodes that failed in it, and earlier failures that did not run in it.
    """
    ended = [each for each in entries if each.run_id == run_id and each.finished]
    newest = max(ended, key=lambda each: each.started, default=None)
    return () if newest is None or newest.result is None else (*newest.result.failed, *newest.result.left)


def with_upstream(failed: Iterable[str], parents: Callable[[str], Iterable[str]]) -> frozenset[str]:
    """Returns these nodes and all nodes that they are built from."""
    found: set[str] = set()
    left = list(failed)
    while left:
        node = left.pop()
        if node not in found:
            found.add(node)
            left.extend(parents(node))
    return frozenset(found)


def _undo(nodes: Sequence[str], build: RunEntry, directory: str) -> str:
    run_id = short_id(build.run_id)
    return (
        f"Run {run_id} has built {', '.join(nodes)}, whose write cannot be repeated, and the code or the inputs have "
        f"changed since. Undo the run with `silt rollback {shlex.quote(run_id)}` (with `--drop-created` if the run "
        f"created the table), then type `{build.continuing_command(directory)}`"
    )


def _changed_since(results: Sequence[Mapping[str, Any]]) -> set[str]:
    """Returns the nodes that were skipped although their code or inputs have changed."""
    responses = {each["unique_id"]: each.get("adapter_response") or {} for each in results}
    return {name for name, each in responses.items() if each.get("changed_since")}


def _built(results: Sequence[Mapping[str, Any]]) -> set[str]:
    return {each["unique_id"] for each in results if not (each.get("adapter_response") or {}).get("skipped")}
