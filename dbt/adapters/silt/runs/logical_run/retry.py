"""Finds the run id of `dbt retry`, and refuses a retry that would not repeat the last run.

dbt repeats the nodes in `run_results.json`. After a kill that file belongs to an older run: the retry is refused, with
the command that continues the killed run. After Ctrl-C the file is completed (see `recorded_end`).
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from dbt.adapters.silt.engine.catalog.names.relation_names import RelationKind, RelationName
from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError
from dbt.adapters.silt.engine.kernel.printable import short_id
from dbt.adapters.silt.engine.sql.tokens import identifiers
from dbt.adapters.silt.records.command_result import RESULTS_FILE
from dbt.adapters.silt.records.commit_facts import find_run_id
from dbt.adapters.silt.records.run_registry import REGISTRY_FILE, RUN_ID_VARIABLE, RunEntry, parse_time
from dbt.adapters.silt.runs.logical_run.run_id import run_id_text

if TYPE_CHECKING:
    from dbt.adapters.silt.engine.catalog.catalog import Catalog
    from dbt.adapters.silt.engine.kernel.log.log import DeltaLog

_CLOCKS_DIFFER_BY = timedelta(hours=1)
"""The largest difference between the clocks of the machine that ran dbt and the machine that reads its commits."""

_REPEATED = frozenset(("error", "fail", "skipped", "runtime error", "partial success"))


@dataclass(frozen=True)
class PreviousResults:
    """The contents of `run_results.json` about the command that `dbt retry` repeats.

    Attributes:
        command: dbt's name of it ("run", "run-operation").
        run_ids: the run ids in the adapter responses of its nodes.
        relations: the quoted names of the relations that its nodes write.
        variables: its `--vars`, which a retry's own replace.
        unfinished: the unique ids of the nodes that are repeated.
    """

    invocation_id: str
    generated_at: datetime
    started_at: datetime
    command: str = ""
    run_ids: tuple[str, ...] = ()
    relations: tuple[str, ...] = ()
    variables: Mapping[str, Any] = field(default_factory=dict)
    unfinished: tuple[str, ...] = ()

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> PreviousResults:
        metadata, arguments, results = document["metadata"], document.get("args", {}), document.get("results", ())
        responses = [result.get("adapter_response") or {} for result in results]
        return cls(
            invocation_id=metadata["invocation_id"],
            generated_at=parse_time(metadata["generated_at"]),
            started_at=parse_time(metadata.get("invocation_started_at") or metadata["generated_at"]),
            command=str(arguments.get("which", "")),
            run_ids=tuple(dict.fromkeys(each["run_id"] for each in responses if each.get("run_id"))),
            relations=tuple(result["relation_name"] for result in results if result.get("relation_name")),
            variables=arguments.get("vars") or {},
            unfinished=tuple(each["unique_id"] for each in results if each.get("status") in _REPEATED),
        )

    @classmethod
    def read(cls, folder: Path) -> PreviousResults | None:
        """Reads the results in a target folder, or returns None if they are missing (dbt itself reports that)."""
        try:
            return cls.of(json.loads((folder / RESULTS_FILE).read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None


def run_id_of_commits(catalog: Catalog, previous: PreviousResults) -> str | None:
    """Returns the run id in the commits of the tables that the results name, or else of any table of the warehouse."""
    since = previous.started_at - _CLOCKS_DIFFER_BY
    return find_run_id(_logs(catalog, previous.relations), previous.invocation_id, since)


def _logs(catalog: Catalog, first: tuple[str, ...]) -> Iterator[DeltaLog]:
    """Yields the tables of the warehouse, the named tables first: hooks and operations also write to further tables."""
    named = [RelationName(*parts) for parts in map(identifiers, first) if len(parts) == 3]
    found = (catalog.find(name) for name in named)
    first_tables = (entry.name for entry in found if entry is not None and entry.kind is RelationKind.TABLE)
    yield from map(catalog.table, chain(first_tables, catalog.all_tables()))


@dataclass(frozen=True)
class Retry:
    """A `dbt retry` command.

    Attributes:
        previous: the results that it repeats.
        own: its own entry, with the suggested run id for the case that no other is found.
        from_state: whether the results are from another folder than the project's target folder, by the user's choice.
    """

    previous: PreviousResults
    own: RunEntry
    from_state: bool = False

    def check(self, entries: Sequence[RunEntry], results: str) -> None:
        """Refuses a retry if its results are incomplete, or older than the last run.

        Args:
            entries: the runs of the project.
            results: the folder of the results.

        Raises:
            InvalidSettingError: if the last run is still running, or was stopped; the message contains the command that
                continues it.
        """
        for entry in entries:
            if entry.invocation_id == self.previous.invocation_id and not (entry.finished or entry.has_results):
                self._refuse(entry, results, "which was stopped: its results lack the nodes that had not yet run")
        later = [each for each in entries if each.started > self.previous.generated_at]
        for entry in sorted(later, key=lambda each: each.started, reverse=True):
            # A killed retry of the same results has left them unchanged.
            if self.previous.invocation_id != entry.repeats and self.own.invocation_id != entry.invocation_id:
                self._refuse(
                    entry,
                    results,
                    f"but run {short_id(entry.run_id)}, started later at {entry.started_at}, {entry.ending}",
                )

    def run_id(self, entries: Sequence[RunEntry], of_commits: Callable[[PreviousResults], str | None]) -> str:
        """Returns the run id of the retried run.

        Args:
            entries: the runs in the registries that may contain it.
            of_commits: finds the id in the commits that the run left; called only if the id is not found elsewhere.

        Raises:
            InvalidSettingError: if the run id is not found; the message contains the command that passes it.
        """
        for entry in entries:
            if entry.invocation_id == self.previous.invocation_id:
                return entry.run_id
        recorded = run_id_text(self.previous.variables.get(RUN_ID_VARIABLE), f"the recorded `{RUN_ID_VARIABLE}`")
        found = next(iter(self.previous.run_ids), None) or recorded or of_commits(self.previous)
        if found:
            return found
        if self.previous.command == "run-operation" and not self.from_state:
            return self.previous.invocation_id  # it is entered before its first change, so it has changed nothing
        raise InvalidSettingError(
            f"the run id of invocation {self.previous.invocation_id}, which `dbt retry` repeats, is not in "
            f"{REGISTRY_FILE}, nor in its results or the commits of this warehouse",
            remedy="If it had its own run id, use that id; otherwise name it with "
            f"`{self.own.continuing_command(self.own.directory)}`",
        )

    def _refuse(self, entry: RunEntry, results: str, why: str) -> NoReturn:
        if entry.running:
            why = f"but run {short_id(entry.run_id)} {entry.ending}"
        otherwise = f"add `--state {shlex.quote(results)}` to repeat it by these results anyway"
        raise InvalidSettingError(
            f"`dbt retry` would repeat run {self.previous.invocation_id}, {why}",
            remedy=f"{entry.remedy(self.own.directory)}, or {otherwise}",
            details={"run_id": entry.run_id},
        )
