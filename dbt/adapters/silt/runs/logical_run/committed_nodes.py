"""Finds the nodes that a run has committed, by the project's journal: only these can be applied twice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from dbt.adapters.silt.records.journal import CommitJournal
from dbt.adapters.silt.records.run_registry import RunEntry


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
