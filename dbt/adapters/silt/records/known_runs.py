"""Combines the logs and a project's records into logical runs, each with its state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from dbt.adapters.silt.engine.catalog.run_branches import check_length
from dbt.adapters.silt.engine.kernel.errors import RunNotFoundError
from dbt.adapters.silt.engine.kernel.near_names import nearest
from dbt.adapters.silt.records.project_records import ProjectRecords
from dbt.adapters.silt.records.run_history import Run
from dbt.adapters.silt.records.run_registry import HELD, PUBLISHED, RunEntry

GOOD: Final = "succeeded"
_WORST_FIRST: Final = ("running", "broken off", "held", "failed", "interrupted", "ended", GOOD)


@dataclass(frozen=True)
class KnownRun:
    """A logical run: its commits, the commands that ran under its id, or both.

    Attributes:
        commands: the recorded commands, oldest first.
        commits: the commits of the run, if any remain.
    """

    run_id: str
    commands: Sequence[RunEntry] = ()
    commits: Run | None = None

    @property
    def state(self) -> str | None:
        """The worst state of the commands that were not repeated by a later command; None without recorded commands."""
        states = {each.state for each in self._last_commands}
        return next((state for state in _WORST_FIRST if state in states), None)

    @property
    def is_good(self) -> bool:
        """Whether the records show that everything under its id succeeded."""
        return self.state == GOOD

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of nodes and tests by outcome in its last commands; empty if it is not recorded."""
        counted: Counter[str] = Counter()
        for each in self._last_commands:
            counted.update(each.result.counts if each.result else {})
        return dict(counted)

    @property
    def failed(self) -> tuple[str, ...]:
        """The names of the nodes and tests that failed in its last commands."""
        return tuple(name for each in self._last_commands if each.result for name in each.result.failed_names)

    @property
    def problems(self) -> tuple[str, ...]:
        """The errors that ended its last commands."""
        found = (each.result.problem for each in self._last_commands if each.result)
        return tuple(problem for problem in found if problem)

    @property
    def targets(self) -> list[str]:
        """The profile's targets."""
        committed = [] if self.commits is None else self.commits.targets
        return list(dict.fromkeys([*committed, *(each.target for each in self.commands if each.target)]))

    @property
    def invocations(self) -> list[str]:
        """dbt's ids of the commands of the run."""
        committed = [] if self.commits is None else self.commits.invocations
        return list(dict.fromkeys([*committed, *(each.invocation_id for each in self.commands)]))

    @property
    def started_ms(self) -> int:
        """The time of its start, or else of its first commit, in milliseconds since 1970-01-01 UTC."""
        starts = [each.started_ms for each in self.commands]
        return min([*starts, *([] if self.commits is None else [self.commits.first_ms])])

    @property
    def newest_ms(self) -> int:
        """The time of the last start of a command or of the last commit, whichever is later."""
        starts = [each.started_ms for each in self.commands]
        return max([*starts, *([] if self.commits is None else [self.commits.last_ms])])

    @cached_property
    def _last_commands(self) -> list[RunEntry]:
        """The last command for each command line, unless it is retried, or a later command publishes it."""
        repeated = {each.repeats for each in self.commands}
        published = max((each.started for each in self.commands if each.publication == PUBLISHED), default=None)
        last: dict[str, RunEntry] = {}
        for each in self.commands:
            is_published = published is not None and each.publication == HELD and each.started < published
            if each.invocation_id not in repeated and not is_published:
                last[str(each.work)] = each
        return list(last.values())


def known_runs(made: Iterable[Run], records: ProjectRecords, target: str | None = None) -> list[KnownRun]:
    """Returns the runs of the logs and of the records, newest first.

    Args:
        target: restricts runs without commits to this target of the profile, if given.
    """
    committed = {each.run_id: each for each in made}
    known = dict.fromkeys(committed)
    known.update(dict.fromkeys(each.run_id for each in records.commands if target in (None, each.target)))
    found = [KnownRun(run_id, records.commands_of(run_id), committed.get(run_id)) for run_id in known]
    return sorted(found, key=lambda each: (each.newest_ms, each.run_id), reverse=True)


def find_run(text: str, made: Sequence[KnownRun]) -> KnownRun | None:
    """Finds a run by the id, by the id of a command, or by the beginning of the id; None if no run matches.

    Raises:
        RunNotFoundError: if several runs match, or the beginning is too short to be meant.
    """
    exact = [each for each in made if each.run_id == text] or [each for each in made if text in each.invocations]
    found = exact or [each for each in made if text and each.run_id.startswith(text)]
    if len(found) > 1:
        ids = ", ".join(each.run_id for each in found[:5])
        raise RunNotFoundError(f"{len(found)} runs begin with `{text}`: {ids}", remedy="Type more of the id")
    if found and not exact:
        check_length(text)
    return found[0] if found else None


def similar_run(text: str, made: Iterable[KnownRun]) -> str | None:
    """Returns the remedy that names the run with the most similar id, if an id is similar."""
    near = nearest(text, [each.run_id for each in made])
    return None if near is None else f"Did you mean `{near}`? `silt runs` shows all runs"
