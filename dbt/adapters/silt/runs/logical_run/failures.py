"""Finds the nodes that a run has committed, the failures that a rerun is to correct, and the command to type."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from dbt.adapters.silt.records.command_result import is_failed, node_name
from dbt.adapters.silt.records.journal import CommitJournal
from dbt.adapters.silt.records.run_registry import RunEntry

_TABLES: Final = ("model.", "seed.", "snapshot.")


def next_step(
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
    unrepeated = sorted(node_name(each) for each in with_upstream(failed, parents) & _unrepeated(results))
    if unrepeated:
        return _undo(unrepeated, build, directory)
    if not left:
        return None
    return (
        f"A test failed on {', '.join(left)}, which run {build.run_id} had built before this command. Correct the "
        f"source or the code, then type `{build.continuing_command(directory)}`: nodes that "
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
    return (
        f"Run {build.run_id} has built {', '.join(nodes)}, whose write cannot be repeated, and the code or the inputs "
        f"have changed since. Undo the run with `silt rollback {shlex.quote(build.run_id)}` (with `--drop-created` if "
        f"the run created the table), then type `{build.continuing_command(directory)}`"
    )


def _unrepeated(results: Sequence[Mapping[str, Any]]) -> set[str]:
    """Returns the nodes that were skipped although their code or inputs have changed."""
    responses = {each["unique_id"]: each.get("adapter_response") or {} for each in results}
    return {name for name, each in responses.items() if each.get("changed_since")}


def _built(results: Sequence[Mapping[str, Any]]) -> set[str]:
    return {each["unique_id"] for each in results if not (each.get("adapter_response") or {}).get("skipped")}


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
