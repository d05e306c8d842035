"""Reads the records of runs in a dbt project: `silt_commits.jsonl` and `silt_runs.json` in its target path.

A skipped unit of work changes no table, so only these files record it. The records cover a project's own commands on
this machine, not the work of other machines.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from dbt.adapters.silt.lazy import lazy_module
from dbt.adapters.silt.records.command_result import KeptResults, last_outcomes
from dbt.adapters.silt.records.journal import CommitJournal, JournalEntry

if TYPE_CHECKING:
    from dbt.adapters.silt.records import run_registry
    from dbt.adapters.silt.records.run_registry import RunEntry
else:
    run_registry = lazy_module("dbt.adapters.silt.records.run_registry")


@dataclass(frozen=True)
class ProjectRecords:
    """The records of a project; empty without a project.

    Attributes:
        commands: its dbt commands, oldest first.
        journal: their commits and skipped units of work, oldest first.
        kept: the results of their nodes.
    """

    commands: Sequence[RunEntry] = ()
    journal: Sequence[JournalEntry] = ()
    kept: KeptResults | None = None

    @classmethod
    def of(cls, target_path: Path | None) -> ProjectRecords:
        """Reads the records in dbt's target path, if there is a project.

        Raises:
            StorageError: if a file exists and cannot be read.
            InvalidSettingError: if `silt_runs.json` has another form than this package writes.
        """
        if target_path is None:
            return cls()
        entries = run_registry.RunRegistry(target_path).entries()
        return cls(entries, CommitJournal(target_path).read().entries, KeptResults(target_path))

    def outcomes_of(self, run_id: str) -> Mapping[str, str] | None:
        """Returns the last outcome of each node and test of a run of several commands, by its unique id, if the run had
        several commands and all results are kept.
        """
        ended = [each for each in self.commands_of(run_id) if each.result is not None]
        if self.kept is None or len(ended) < 2:
            return None
        found = [self.kept.results_of(each.invocation_id) for each in ended]
        known = [each for each in found if each is not None]
        return last_outcomes(known) if len(known) == len(found) else None

    def skipped(self, run_id: str) -> list[JournalEntry] | None:
        """Returns the skipped units of work of a run, if the journal has lines of the run."""
        entries = self._journal_by_run.get(run_id)
        return None if entries is None else [entry for entry in entries if entry.skipped]

    def tables_in_use(self, own: str | None = None) -> frozenset[str]:
        """Returns the names of the tables that running commands write, as far as earlier commits tell.

        Args:
            own: the invocation id of the command that asks.
        """
        others = [each for each in self.commands if each.running and each.invocation_id != own]
        nodes = frozenset(node for each in others for node in each.selected or ())
        return frozenset(each.table for each in self.journal if each.node_id in nodes)

    def started_at(self, run_id: str) -> str | None:
        """Returns the start of a run's first command, in UTC, as ISO 8601, if it is recorded."""
        return min((command.started_at for command in self.commands_of(run_id)), default=None)

    def commands_of(self, run_id: str) -> list[RunEntry]:
        """Returns the recorded commands of a run, oldest first."""
        return [command for command in self.commands if command.run_id == run_id]

    def seconds(self, run_id: str) -> float | None:
        """Returns the total duration of a run's commands, if all ends are recorded."""
        taken = [command.seconds for command in self.commands_of(run_id)]
        known = [each for each in taken if each is not None]
        return sum(known) if taken and len(known) == len(taken) else None

    @cached_property
    def _journal_by_run(self) -> Mapping[str, Sequence[JournalEntry]]:
        by_run: dict[str, list[JournalEntry]] = defaultdict(list)
        for entry in self.journal:
            by_run[entry.run_id or entry.invocation_id or ""].append(entry)
        return dict(by_run)
