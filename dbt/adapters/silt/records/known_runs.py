"""Combines the logs and a project's records into logical runs, each with its state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from dbt.adapters.silt.engine.catalog.branches.run_branches import BranchedRun, RunBranches, check_length
from dbt.adapters.silt.engine.kernel.clock import utc_text
from dbt.adapters.silt.engine.kernel.errors import (
    CorruptLogError,
    RunNotFoundError,
    StorageError,
    UnsupportedFeatureError,
)
from dbt.adapters.silt.engine.kernel.near_names import nearest
from dbt.adapters.silt.engine.kernel.printable import shortened
from dbt.adapters.silt.engine.kernel.publication.documents import began_ms
from dbt.adapters.silt.records.command_result import COUNTED, node_name
from dbt.adapters.silt.records.project_records import ProjectRecords
from dbt.adapters.silt.records.run_history import Run
from dbt.adapters.silt.records.run_registry import HELD, PUBLISHED, RunEntry
from dbt.adapters.silt.records.units import ENDPOINT

GOOD: Final = "succeeded"
OF_SESSION: Final = "session of "
"""The beginning of the command line that stands for a session of a client of `silt endpoint`."""

_LONGEST_CLIENT: Final = 40
_TIME: Final = slice(len("2026-03-01 "), len("2026-03-01 10:00"))
_WORST_FIRST: Final = ("running", "broken off", "held", "failed", "interrupted", "ended", GOOD)


@dataclass(frozen=True)
class Unpublished:
    """The changes of a run that are not published, as the warehouse shows them to every project and machine.

    Attributes:
        target: the target of its profile.
        began_ms: the beginning of its branch, in milliseconds since 1970-01-01 UTC.
        is_running: whether a command works on it.
        failed: the unique ids of the nodes and tests that have failed.
        clients: the clients of `silt endpoint` whose sessions have worked on it.
    """

    run_id: str
    target: str
    began_ms: int
    is_running: bool = False
    failed: tuple[str, ...] = ()
    clients: tuple[str, ...] = ()

    @property
    def state(self) -> str:
        return "running" if self.is_running else HELD


@dataclass(frozen=True)
class KnownRun:
    """A logical run: its commits, the commands that ran under its id, or both.

    Attributes:
        commands: the recorded commands, oldest first.
        commits: the commits of the run, if any remain.
        outcomes: the last outcome of each node and test, by its unique id, if it had several commands and all are
            known.
        unpublished: its changes that are not published.
        is_of_warehouse: whether `unpublished` was looked up, so that a run without them is not held.
    """

    run_id: str
    commands: Sequence[RunEntry] = ()
    commits: Run | None = None
    outcomes: Mapping[str, str] | None = None
    unpublished: Sequence[Unpublished] = ()
    is_of_warehouse: bool = False

    @property
    def state(self) -> str | None:
        """The worst state of the commands that were not repeated by a later command, and of the last results of its
        nodes, if commands are recorded.
        """
        states = {self.state_of(each) for each in self._last_commands}
        states.update(each.state for each in self.unpublished)
        return next((state for state in _WORST_FIRST if state in states), None)

    def state_of(self, command: RunEntry) -> str:
        """Returns the state of a command of the run, as the warehouse and the later commands of the run show it."""
        state = command.state
        if state == HELD and self.is_of_warehouse and not self.unpublished:
            state = "failed" if command.has_failed else GOOD  # another process has published or dropped the run
        is_of_nodes = state == "failed" and command.result is not None and not command.result.problem
        if is_of_nodes and self.outcomes is not None:
            return "failed" if "error" in self.outcomes.values() else GOOD
        return state

    @property
    def name(self) -> str:
        """Its name for people, such as "dbt build, nightly, 20:27", in UTC; ids tell runs with the same name apart."""
        which = next((each.which for each in reversed(self.commands) if each.which), None)
        own = f"session of {shortened(self.clients[0], _LONGEST_CLIENT)}" if self.clients else "run"
        what = own if which is None else f"dbt {which}"
        return ", ".join([what, *self.targets, utc_text(self.started_ms, zone="")[_TIME]])

    @property
    def is_good(self) -> bool:
        """Whether the records show that everything under its id succeeded."""
        return self.state == GOOD

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of nodes and tests by their last outcome; empty if it is not recorded."""
        if self.outcomes is not None:
            last = Counter(self.outcomes.values())
            return {name: last[name] for name in COUNTED}
        counted: Counter[str] = Counter()
        for each in self._last_commands:
            counted.update(each.result.counts if each.result else {})
        return dict(counted)

    @property
    def failed(self) -> tuple[str, ...]:
        """The names of the nodes and tests whose last result is a failure."""
        return tuple(map(node_name, self.failed_ids))

    @property
    def failed_ids(self) -> tuple[str, ...]:
        """The unique ids of the nodes and tests whose last result is a failure."""
        if self.outcomes is not None:
            return tuple(each for each, outcome in self.outcomes.items() if outcome == "error")
        if not self.commands:
            return tuple(name for each in self.unpublished for name in each.failed)
        return tuple(name for each in self._last_commands if each.result for name in each.result.failed)

    @property
    def problems(self) -> tuple[str, ...]:
        """The errors that ended its last commands."""
        found = (each.result.problem for each in self._last_commands if each.result)
        return tuple(problem for problem in found if problem)

    @property
    def upkeep(self) -> str | None:
        """The upkeep at the end of its last command with an upkeep, as a line."""
        results = (each.result for each in self.commands)
        return next((each.upkeep for each in reversed(list(results)) if each is not None and each.upkeep), None)

    @property
    def targets(self) -> list[str]:
        """The profile's targets."""
        committed = [] if self.commits is None else self.commits.targets
        others = [*(each.target for each in self.commands), *(each.target for each in self.unpublished)]
        return list(dict.fromkeys([*committed, *filter(None, others)]))

    @property
    def clients(self) -> list[str]:
        """The clients of `silt endpoint` that sent its statements."""
        committed = [] if self.commits is None else self.commits.clients
        return list(dict.fromkeys([*committed, *(name for each in self.unpublished for name in each.clients)]))

    @property
    def invocations(self) -> list[str]:
        """dbt's ids of the commands of the run."""
        committed = [] if self.commits is None else self.commits.invocations
        return list(dict.fromkeys([*committed, *(each.invocation_id for each in self.commands)]))

    @property
    def started_ms(self) -> int:
        """The time of its start, or else of its first commit, in milliseconds since 1970-01-01 UTC."""
        starts = [*(command.started_ms for command in self.commands), *(each.began_ms for each in self.unpublished)]
        return min([*starts, *([] if self.commits is None else [self.commits.first_ms])])

    @property
    def newest_ms(self) -> int:
        """The time of the last start of a command or of the last commit, whichever is later."""
        starts = [*(command.started_ms for command in self.commands), *(each.began_ms for each in self.unpublished)]
        return max([*starts, *([] if self.commits is None else [self.commits.last_ms])])

    @cached_property
    def _last_commands(self) -> list[RunEntry]:
        """The last command for each command line, unless it is retried, or a later command publishes it.

        If the outcomes of all nodes are known, a command with other variables repeats it too.
        """
        repeated = {each.repeats for each in self.commands}
        published = max((each.started for each in self.commands if each.publication == PUBLISHED), default=None)
        last: dict[str, RunEntry] = {}
        for each in self.commands:
            is_published = published is not None and not each.is_visible and each.started < published
            if each.invocation_id not in repeated and not (is_published and each.state != "running"):
                line = (each.command, each.target) if self.outcomes is not None else each.work
                last[str(line)] = each
        return list(last.values())


def known_runs(
    made: Iterable[Run],
    records: ProjectRecords,
    target: str | None = None,
    unpublished: Sequence[Unpublished] | None = None,
) -> list[KnownRun]:
    """Returns the runs of the logs and of the records, newest first.

    Args:
        target: restricts runs without commits to this target of the profile, if given.
        unpublished: the unpublished changes in the warehouse, of all targets, if they were looked up.
    """
    committed = {each.run_id: each for each in made}
    known = dict.fromkeys(committed)
    known.update(dict.fromkeys(each.run_id for each in records.commands if target in (None, each.target)))
    known.update(dict.fromkeys(each.run_id for each in unpublished or ()))
    found = [
        KnownRun(
            run_id,
            records.commands_of(run_id),
            committed.get(run_id),
            records.outcomes_of(run_id),
            [each for each in unpublished or () if each.run_id == run_id],
            unpublished is not None,
        )
        for run_id in known
    ]
    return sorted(found, key=lambda each: (each.newest_ms, each.run_id), reverse=True)


def unpublished_runs(branches: RunBranches) -> list[Unpublished]:
    """Returns the runs of a warehouse whose changes are not published.

    Raises:
        StorageError: if the storage failed.
    """
    return [found for run in branches.all() if (found := _unpublished(branches, run)) is not None]


def _unpublished(branches: RunBranches, run: BranchedRun) -> Unpublished | None:
    try:
        if branches.end_of(run) is not None:
            return None
        commands = branches.commands(run)
        found = commands.standing()
        lines = dict.fromkeys(each.line for each in commands.all()) if run.project == ENDPOINT else ()
    except (CorruptLogError, UnsupportedFeatureError, StorageError):  # publishing the run raises this error
        return Unpublished(run.run_id, run.target, began_ms(int(run.branch)))
    is_running, failed = bool(found.at_work), tuple(found.failed)
    clients = tuple(each.removeprefix(OF_SESSION) for each in lines)
    return Unpublished(run.run_id, run.target, began_ms(int(run.branch)), is_running, failed, clients)


def find_run(text: str, made: Sequence[KnownRun]) -> KnownRun | None:
    """Finds a run by its id or the id of a command, or by the beginning of such an id; None if no run matches.

    Raises:
        RunNotFoundError: if several runs match, or the beginning is too short to be meant.
    """
    exact = [each for each in made if each.run_id == text] or [each for each in made if text in each.invocations]
    found = exact or [each for each in made if text and _begins(text, each)]
    if len(found) > 1:
        ids = ", ".join(each.run_id for each in found[:5])
        raise RunNotFoundError(f"{len(found)} runs begin with `{text}`: {ids}", remedy="Type more of the id")
    if found and not exact:
        check_length(text)
    return found[0] if found else None


def _begins(text: str, run: KnownRun) -> bool:
    return any(each.startswith(text) for each in (run.run_id, *run.invocations))


def similar_run(text: str, made: Iterable[KnownRun]) -> str | None:
    """Returns the remedy that names the run with the most similar id, if an id is similar."""
    near = nearest(text, [each.run_id for each in made])
    return None if near is None else f"Did you mean `{near}`? `silt runs` shows all runs"
