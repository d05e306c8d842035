"""Reads what a dbt project has on record of its runs: `silt_commits.jsonl` and `silt_runs.json` in its target path.

A skipped unit of work changes no table, so it is on record only there. A project's records
are of its own commands on this machine: they do not show what another machine did.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from dbt.adapters.silt.lazy import lazy_module
from dbt.adapters.silt.records.journal import CommitJournal, JournalEntry

if TYPE_CHECKING:
    from dbt.adapters.silt.records import run_registry
    from dbt.adapters.silt.records.run_registry import RunEntry
else:
    run_registry = lazy_module("dbt.adapters.silt.records.run_registry")


@dataclass(frozen=True)
class ProjectRecords:
    """The records of one project; empty where there is no project.

    Attributes:
        commands: its dbt commands, oldest first.
        journal: what they committed and skipped, oldest first.
    """

    commands: Sequence[RunEntry] = ()
    journal: Sequence[JournalEntry] = ()

    @classmethod
    def of(cls, target_path: Path | None) -> ProjectRecords:
        """Reads dbt's target path; None stands for no project.

        Raises:
            StorageError: a file is there and cannot be read.
            InvalidSettingError: `silt_runs.json` does not hold what this package writes.
        """
        if target_path is None:
            return cls()
        return cls(run_registry.RunRegistry(target_path).entries(), CommitJournal(target_path).read().entries)

    def skipped(self, run_id: str) -> list[JournalEntry] | None:
        """The units of work of a run that were skipped, as done; None where the journal has no line of the run."""
        entries = self._journal_by_run.get(run_id)
        return None if entries is None else [entry for entry in entries if entry.skipped]

    def started_at(self, run_id: str) -> str | None:
        """When the first command of a run started, in UTC, as ISO 8601; None where that is not on record."""
        return min((command.started_at for command in self.commands_of(run_id)), default=None)

    def commands_of(self, run_id: str) -> list[RunEntry]:
        """The commands that worked under a run id, oldest first; empty where that is not on record."""
        return [command for command in self.commands if command.run_id == run_id]

    def seconds(self, run_id: str) -> float | None:
        """How long the commands of a run took together; None where the end of one is not on record."""
        taken = [command.seconds for command in self.commands_of(run_id)]
        known = [each for each in taken if each is not None]
        return sum(known) if taken and len(known) == len(taken) else None

    @cached_property
    def _journal_by_run(self) -> Mapping[str, Sequence[JournalEntry]]:
        by_run: dict[str, list[JournalEntry]] = defaultdict(list)
        for entry in self.journal:
            by_run[entry.run_id or entry.invocation_id or ""].append(entry)
        return dict(by_run)
