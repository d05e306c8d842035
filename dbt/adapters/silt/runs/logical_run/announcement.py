"""Announces, before the first node, a command's run id, the run that it continues, and the runs that it does not."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from dbt.adapters.silt.records.command_result import is_on_run_hook, node_name
from dbt.adapters.silt.records.run_registry import RunEntry
from dbt.adapters.silt.runs.logical_run.resume import OFF, last_of_work
from dbt.adapters.silt.runs.logical_run.run_id import LogicalRun, Origin

_AGAIN: Final = "rows that both append are then in the table twice"
_NAMED: Final = 5


@dataclass(frozen=True)
class Announcement:
    """The first messages of a command that starts as a run.

    Attributes:
        run: its logical run.
        own: its entry.
        entries: the project's commands, in their current state.
        committed: gives the unique ids of the nodes that the run of a command has committed.
        selected: the unique ids of the nodes that this command is to run; for an operation, its macro.
        profile_run_id: the profile's `run_id`.
        resume: the profile's `resume`.
    """

    run: LogicalRun
    own: RunEntry
    entries: Sequence[RunEntry]
    committed: Callable[[RunEntry], Collection[str]]
    selected: Collection[str]
    profile_run_id: str | None = None
    resume: str | None = None

    def warnings(self) -> Iterator[str]:
        """Warns of runs by which a node may be applied twice: an unfinished run that is not continued, running runs.

        Raises:
            StorageError: if the project's journal cannot be read.
        """
        unfinished = self._unfinished()
        if unfinished is not None:
            yield self._of_unfinished(unfinished)
        met = [each for each in self._others() if each.running and self._meets(each)]
        running = [each for each in met if each.shares_tables(self.own)]
        if running:
            yield self._of_running(running)

    def lines(self) -> Iterator[str]:
        """Yields the continued run, and the run id."""
        continued = self.run.continued
        if continued is not None:
            yield (
                f"Continuing `{continued.command}`, started at {continued.started_at}, which did not finish: "
                "its commits are skipped. To do everything again, type the command once more after this run"
            )
        unused = self.run.origin is Origin.RETRY and self.profile_run_id not in (None, "", self.run.run_id)
        note = f"; the profile's run_id {self.profile_run_id} is not used" if unused else ""
        yield f"Run id {self.run.run_id} ({self.run.origin.value}{note})"
        for each in self._others():
            if each.running and each.is_in_warehouse_of(self.own) and not each.shares_tables(self.own):
                yield f"Also in progress in this warehouse, in the schema {each.schema}: {_described(each, self.own)}"

    def overlaps(self) -> Iterator[str]:
        """Names, at the end of the command, the runs that began meanwhile and concern the same tables.

        Raises:
            StorageError: if the project's journal cannot be read.
        """
        for each in self._others():
            began_later = each.started >= self.own.started and each.shares_tables(self.own)
            if began_later and (self._meets(each) if each.running else self._in_both(each)):
                yield f"Another run has worked on the same tables meanwhile: {_described(each, self.own)}"

    def _others(self) -> list[RunEntry]:
        return [each for each in self.entries if each.invocation_id != self.own.invocation_id]

    def _of_target(self) -> list[RunEntry]:
        return [each for each in self._others() if each.target == self.own.target]

    def _meets(self, running: RunEntry) -> bool:
        """Returns whether a running command may run a node that this command selects, or its own operation or hooks."""
        return (
            running.selected is None or running.work == self.own.work or not running.selected.isdisjoint(self.selected)
        )

    def _unfinished(self) -> RunEntry | None:
        """Returns the last unfinished run of this command, or else of this target, if this is a new run."""
        if self.run.origin is not Origin.INVOCATION:
            return None
        newest = max(self._of_target(), key=lambda each: each.started, default=None)
        found = (last_of_work(self.entries, self.own), newest)
        return next((each for each in found if each is not None and self._is_repeated(each)), None)

    def _is_repeated(self, earlier: RunEntry) -> bool:
        """Returns whether this run repeats visible work of an earlier, unfinished run."""
        return earlier.is_unfinished and earlier.is_visible and bool(self._in_both(earlier))

    def _in_both(self, earlier: RunEntry) -> list[str]:
        """Returns nodes that an earlier run committed and this run selects; hooks only count in the same command."""
        is_same = earlier.work == self.own.work
        committed = self.committed(earlier)
        return sorted(each for each in committed if each in self.selected or (is_same and is_on_run_hook(each)))

    def _of_unfinished(self, last: RunEntry) -> str:
        is_same = last.work == self.own.work
        which = "The last run of this command" if is_same else f"The last run here, `{last.command}`"
        both = _named(self._in_both(last))
        return (
            f"{which}, started at {last.started_at}, {_how(last)} after it had committed {both}. "
            "This is a new run, which repeats that work: rows that it appends are then in the table twice. To continue "
            f"that run, stop this one and type `{last.continuing_command(self.own.directory)}`{self._advice(is_same)}"
        )

    def _advice(self, same: bool) -> str:
        """Returns the effect of `resume` on the next run; empty if `resume` is off."""
        if not same or self.resume == OFF:
            return ""
        if self.resume:
            return f". It started longer ago than the profile's `resume`, {self.resume}"
        return ". With `resume: 2 hours` in the profile the same command, typed again, continues such a run"

    def _of_running(self, running: Sequence[RunEntry]) -> str:
        newest = max(running, key=lambda each: each.started)
        more = f", and {len(running) - 1} more" if len(running) > 1 else ""
        other = f"{_described(newest, self.own)}{more}"
        if newest.target != self.own.target:
            return f"Another run is in progress on the same tables: {other}; {_AGAIN}"
        if newest.run_id == self.run.run_id:
            once = "Each write is done by one of them only"
            return f"Another run of this project is in progress with the same run id: {other}. {once}"
        return (
            f"Another run of this project is in progress: {other}; {_AGAIN}. If the two should be one run, stop this "
            f"one and type `{newest.continuing_command(self.own.directory)}`: each skips what the other has committed"
        )


def _described(run: RunEntry, own: RunEntry) -> str:
    target = f" (target {run.target})" if run.target != own.target else ""
    return f"`{run.command}`{target}, started at {run.started_at} (process {run.process} of {run.host})"


def _how(last: RunEntry) -> str:
    if last.has_failed:
        return "ended with an error"
    return "was interrupted" if last.ended_at else "was killed"


def _named(nodes: Sequence[str]) -> str:
    names = ", ".join(map(node_name, nodes[:_NAMED]))
    return names if len(nodes) <= _NAMED else f"{names} and {len(nodes) - _NAMED} more"
