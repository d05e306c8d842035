"""Records a dbt command with the branch of its run, and decides from all commands of the run whether to publish."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from dbt.adapters.silt.dbt_seams.command_state import selected_nodes
from dbt.adapters.silt.dbt_seams.dbt_command import CommandEnd
from dbt.adapters.silt.lazy import lazy_module
from dbt.adapters.silt.records.command_result import is_failed, is_skipped
from dbt.adapters.silt.runs.logical_run.invocation import Invocation

if TYPE_CHECKING:
    from dbt.adapters.silt.dbt_seams.run_again import RanNodes
    from dbt.adapters.silt.engine.catalog.branches import run_commands as commands
    from dbt.adapters.silt.engine.catalog.branches.command_documents import CommandDocuments
    from dbt.adapters.silt.engine.catalog.branches.run_commands import CommandResults, Standing
else:
    commands = lazy_module("dbt.adapters.silt.engine.catalog.branches.run_commands")

_LONGEST_PROBLEM: Final = 300
"""Characters."""


class CommandOfRun:
    """This command among the commands of its run.

    Args:
        invocation: this command.
        tests_count: whether a test that fails prevents the publication.
    """

    def __init__(self, invocation: Invocation, tests_count: bool) -> None:
        self._invocation = invocation
        self._tests_count = tests_count
        self._documents: CommandDocuments | None = None
        self._ran: RanNodes | None = None

    @property
    def has_entered(self) -> bool:
        """Whether this command has recorded that it works on a branch."""
        return self._documents is not None

    @property
    def documents(self) -> CommandDocuments:
        """The documents of the commands of the run, after `enter`."""
        assert self._documents is not None
        return self._documents

    def enter(self, documents: CommandDocuments) -> None:
        """Records that this command works on a branch. Raises as `CommandDocuments.begin`."""
        self._documents = documents
        own = commands.RunCommand(
            id=self._invocation.id,
            line=self._invocation.line,
            host=socket.gethostname(),
            process=os.getpid(),
            selected=selected_nodes(),
            tests_count=self._tests_count,
        )
        documents.begin(own)

    def on_ran(self, ran: RanNodes) -> None:
        """Notes the nodes of this command when they have run."""
        self._ran = ran

    def end(self, end: CommandEnd, results: Sequence[Mapping[str, Any]]) -> None:
        """Records the end of this command. Raises as `CommandDocuments.end`.

        Args:
            results: the results of its nodes, as in dbt's `run_results.json`.
        """
        self.documents.end(self._results(end, results))

    def standing(self) -> Standing:
        """Returns the reasons why the run is not published. Raises as `CommandDocuments.all`."""
        return self.documents.standing(self._tests_count)

    def prevents(self, results: Iterable[Mapping[str, Any]]) -> bool:
        """Returns whether a result of this command, or anything in other commands, prevents the publication."""
        outcome = commands.CommandResults(failed=frozenset(_ids(filter(is_failed, results))))
        passed = selected_nodes() - outcome.failed
        return bool(self.documents.standing(self._tests_count, commands.CommandResults(passed, outcome.failed)))

    def _results(self, end: CommandEnd, results: Sequence[Mapping[str, Any]]) -> CommandResults:
        failed = _ids(filter(is_failed, results))
        skipped = _ids(filter(is_skipped, results))
        passed = _ids(results) - failed - skipped
        selected = selected_nodes()
        if end.finished and self._ran is not None:
            passed |= self._ran.selected - _ids(results)  # an ephemeral model has no result
        if self._ran is not None:
            passed |= self._removed(self._ran)
        missing = (selected | skipped) - passed - failed - self._allowed_skips(results, failed)
        return commands.CommandResults(passed, failed, missing, _problem(end))

    def _allowed_skips(self, results: Sequence[Mapping[str, Any]], failed: Iterable[str]) -> frozenset[str]:
        """Returns the nodes that dbt skipped because of a test that may fail."""
        if self._tests_count or not all(each.startswith(commands.TESTS) for each in failed):
            return frozenset()
        # dbt gives a reason if it skips a node that does not depend on the test, as with --fail-fast.
        return _ids(each for each in results if is_skipped(each) and not each.get("message"))

    def _removed(self, ran: RanNodes) -> frozenset[str]:
        """Returns the nodes of other commands that the project no longer has."""
        known = (each for other in self.documents.all() for each in (*other.left, *_failed(other.results)))
        return frozenset(each for each in known if each not in ran.of_project)


def _failed(results: CommandResults | None) -> frozenset[str]:
    return frozenset() if results is None else results.failed


def _ids(results: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    return frozenset(str(each.get("unique_id")) for each in results)


def _problem(end: CommandEnd) -> str:
    if end.finished:
        return ""
    if end.interrupted:
        return "the command was interrupted"
    return f"the command ended with an error ({' '.join((end.problem or '').split())[:_LONGEST_PROBLEM]})"
