"""What a dbt project has on record of its runs beside the tables' logs: `silt_commits.jsonl` and `silt_runs.json`.

What was skipped changes no table and so stands there alone. A project's records are of its own commands on this
machine: what another one did is not known from them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from dbt.adapters.silt.cli.lazily import lazily
from dbt.adapters.silt.records.journal import CommitJournal, JournalEntry
from dbt.adapters.silt.records.run_history import Run

if TYPE_CHECKING:
    from dbt.adapters.silt.records.run_registry import RunEntry

run_registry = lazily("dbt.adapters.silt.records.run_registry")


@dataclass(frozen=True)
class Records:
    """A project's records, found by run.

    Attributes:
        entries: the journal's lines by run.
        commands: the commands that were started, by run.
    """

    entries: Mapping[str, tuple[JournalEntry, ...]] = field(default_factory=dict)
    commands: Mapping[str, tuple[RunEntry, ...]] = field(default_factory=dict)

    def skipped(self, run_id: str) -> list[JournalEntry] | None:
        """The work of a run that was skipped because it had been done; None where nothing of the run is on record."""
        if run_id not in self.entries:
            return None
        return [entry for entry in self.entries[run_id] if entry.skipped]

    def started(self, run: Run) -> str | None:
        """When the run's first command started, in UTC, as ISO 8601; None where it is not on record."""
        return min((entry.started_at for entry in self.commands.get(run.run_id, ())), default=None)


def read_records(target_path: Path | None) -> Records:
    """The records in dbt's folder of artifacts; none where there are none.

    Raises:
        StorageError: the journal cannot be read.
        InvalidSettingError: `silt_runs.json` cannot be read.
    """
    if target_path is None:
        return Records()
    entries: dict[str, list[JournalEntry]] = defaultdict(list)
    for entry in CommitJournal(target_path).read().entries:
        entries[entry.run_id or entry.invocation_id or ""].append(entry)
    commands: dict[str, list[RunEntry]] = defaultdict(list)
    for command in run_registry.RunRegistry(target_path).entries():
        commands[command.run_id].append(command)
    return Records(
        {run_id: tuple(each) for run_id, each in entries.items()},
        {run_id: tuple(each) for run_id, each in commands.items()},
    )
