"""A story: runs that are killed and continued, whose results are compared with undisturbed runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.chaos.cuts import Reader
from tests.chaos.notes import damage, skips, wrong_notes
from tests.chaos.plan import First, Life, RoundPlan, Way
from tests.chaos.state import Difference, State
from tests.chaos.steps import Moment, Step
from tests.chaos.workplace import Command, Ended, Workplace

_MOST_RUNS = 4
"""The most runs that may be needed to complete a command that is no longer disturbed."""


@dataclass(frozen=True)
class Expected:
    """An undisturbed round: the lives of its commands, and the warehouse's content after it."""

    lives: tuple[Life, ...]
    state: State


@dataclass(frozen=True)
class Kill:
    """A killed process: the number of the kill, its moment, and its command."""

    number: int
    moment: Moment
    command: str
    table: str
    seconds: float


@dataclass
class Told:
    """The events and results of a round.

    Attributes:
        reruns: commands that continued an earlier one.
        missed: planned kills that did not happen, because the remaining work had no such step.
        retries, refused: how often `dbt retry` was used, and how often it printed another command instead.
        skips: units of work that a rerun skipped.
        cuts: the different cuts that a reader saw beside a build that is published at its end.
    """

    plan: RoundPlan
    kills: list[Kill] = field(default_factory=list)
    runs: int = 0
    reruns: int = 0
    missed: int = 0
    failed_hooks: int = 0
    interrupts: int = 0
    retries: int = 0
    refused: int = 0
    skips: int = 0
    units: int = 0
    cuts: int = 0
    seconds: float = 0.0
    difference: Difference | None = None
    faults: list[str] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        return not self.faults and not self.difference


_AFTER_COMMITS = {Step.JOURNAL, Step.HOOK, Step.CHECKPOINT, Step.CHECKPOINT_LINK, Step.HINT}
"""The steps after a commit that is visible at once."""


class Undisturbed:
    """The undisturbed rounds, in a separate warehouse; each round runs when it is first requested.

    Args:
        place: the workplace of the rounds.
        tell: called with a line for each round.
    """

    def __init__(self, place: Workplace, tell: Callable[[str], None]) -> None:
        self.place = place
        self._tell = tell
        self._rounds: list[Expected] = []
        self._lock = threading.Lock()

    def round(self, number: int) -> Expected:
        """Returns the round with a number, counted from 1.

        Raises:
            AssertionError: if a command failed.
        """
        with self._lock:
            while len(self._rounds) < number:
                self._rounds.append(self._run(len(self._rounds) + 1))
            return self._rounds[number - 1]

    def _run(self, number: int) -> Expected:
        lives = []
        for command in Command.of_round(number):
            ended = self.place.dbt(command.given(f"round-{number}"))
            assert ended.code == 0, ended.output
            facts = ended.facts
            lives.append(Life(facts["steps"], facts["seconds"], facts["start_seconds"]))
            _keep_manifest(self.place, command)
            self._tell(
                f"{command.arguments[0]} {facts['seconds']:.1f} s, of which {facts['start_seconds']:.1f} s to start"
            )
        needed = set(self.place.warehouse.steps) - (set() if self.place.publish == "at_once" else _AFTER_COMMITS)
        never = [step.value for step in needed if not lives[0].steps.get(step.name)]
        assert not never, f"a build never comes to these steps, so none can be killed there: {never}"
        return Expected(tuple(lives), State.of(self.place.warehouse))


class Round:
    """One round of a story.

    Args:
        tell: called with a line for each event.
    """

    def __init__(self, place: Workplace, plan: RoundPlan, tell: Callable[[str], None]) -> None:
        self._place = place
        self._plan = plan
        self._tell = tell
        self._told = Told(plan)
        self._run_id = f"story-{plan.story}-round-{plan.round}"

    def live(self, expected: Expected) -> Told:
        """Runs the round to its end, and checks its results."""
        target = self._place.project / "target"
        began, units, skipped = time.monotonic(), State.of(self._place.warehouse).unit_count, skips(target)
        for number, command in enumerate(Command.of_round(self._plan.round)):
            moments = [(kill, moment) for kill, (at, moment) in enumerate(self._plan.kills) if at == number]
            self._read_beside(command, moments, self._first(number))
            _keep_manifest(self._place, command)
        state = State.of(self._place.warehouse)
        self._told.units = state.unit_count - units
        self._told.skips = skips(target) - skipped
        self._told.difference = Difference.of(expected.state, state)
        self._told.faults += damage(self._place.warehouse)
        self._told.faults += wrong_notes(target, self._place.warehouse)
        self._told.seconds = time.monotonic() - began
        return self._told

    def _first(self, number: int) -> First:
        return self._plan.first if number == 0 else First.NOTHING

    def _read_beside(self, command: Command, moments: list[tuple[int, Moment]], first: First) -> None:
        """Runs a command; if its changes are published at its end, reads cuts of the warehouse beside it."""
        if self._place.publish == "at_once" or command.arguments[0] != "build":
            self._command(command, moments, first)
            return
        with Reader(self._place.warehouse) as reader:
            self._command(command, moments, first)
        self._told.cuts += len(reader.cuts)
        self._told.faults += reader.partial()

    def _command(self, command: Command, moments: list[tuple[int, Moment]], first: First) -> None:
        """Runs a command repeatedly until it ends without a disturbance."""
        following, disturbed = self._plain(command), False
        if first is not First.NOTHING:
            self._note_first(first, self._disturbed(following, first))
            following, disturbed = ("retry",), True
        for number, (kill, moment) in enumerate(moments):
            entered = self._place.runs_entered()
            ended = self._rerun(following, moment) if disturbed else self._run(following, moment)
            if not ended.killed:
                self._note_missed([each for _, each in moments[number:]], ended)
                return
            self._note_kill(self._plan.first_kill + kill, command, moment, ended)
            disturbed = True
            if self._plan.way is Way.RETRY and self._place.runs_entered() > entered:
                following = ("retry",)
        self._to_its_end(following, disturbed)

    def _disturbed(self, arguments: tuple[str, ...], first: First) -> Ended:
        """Runs the command that `dbt retry` continues; a failing hook ends it early, so that work remains."""
        if first is First.INTERRUPT:
            return self._run(arguments, self._plan.interrupt)
        return self._run((*arguments, "--fail-fast"), None, failing=True)

    def _to_its_end(self, following: tuple[str, ...], disturbed: bool) -> None:
        for _ in range(_MOST_RUNS):
            ended = self._rerun(following, None) if disturbed else self._run(following, None)
            if ended.code == 0:
                return
        self._fault(f"still ends with {ended.code}", ended)

    def _rerun(self, arguments: tuple[str, ...], moment: Moment | None) -> Ended:
        """Continues the run; if `dbt retry` prints another command, runs that command as printed."""
        self._told.reruns += 1
        if arguments != ("retry",):
            return self._run(arguments, moment)
        self._told.retries += 1
        ended = self._run(arguments, moment)
        printed = ended.printed_command
        if ended.struck or ended.code == 0 or printed is None:
            return ended
        self._told.refused += 1
        self._tell(f"  refused retry, which says: dbt {' '.join(printed)}")
        return self._run(printed, moment)

    def _run(self, arguments: tuple[str, ...], moment: Moment | None, failing: bool = False) -> Ended:
        self._told.runs += 1
        run_id = self._run_id if self._plan.way is Way.PROFILE else ""
        ended = self._place.dbt(arguments, moment, run_id, failing)
        return ended

    def _plain(self, command: Command) -> tuple[str, ...]:
        return command.given(self._run_id if self._plan.way is Way.VARIABLE else None)

    def _note_first(self, first: First, ended: Ended) -> None:
        if first is First.FAILING_HOOK:
            self._told.failed_hooks += 1
            if ended.code != 1 or "this hook was told to fail" not in ended.output:
                self._fault(f"the failing hook ended the run with {ended.code}", ended)
        else:
            self._told.interrupts += 1
            if not ended.struck:
                self._fault("Ctrl-C was never pressed", ended)
            elif ended.code == 0:
                self._fault("Ctrl-C did not end the build", ended)
        self._tell(f"  {first.value}, ended with {ended.code}")

    def _note_kill(self, number: int, command: Command, moment: Moment, ended: Ended) -> None:
        facts = ended.facts
        kill = Kill(number, moment, command.arguments[0], facts.get("table", ""), facts.get("seconds", 0.0))
        self._told.kills.append(kill)
        where = f" in {kill.table}" if kill.table else ""
        self._tell(f"  kill {kill.number}: {kill.command} {moment}{where}, after {kill.seconds:.1f} s")

    def _note_missed(self, moments: list[Moment], ended: Ended) -> None:
        """Records kills that did not happen because the command ended without their steps."""
        self._told.missed += len(moments)
        self._tell(f"  missed  {', '.join(map(str, moments))}")
        if ended.code != 0:
            self._fault(f"ended with {ended.code} before {moments[0]}", ended)

    def _fault(self, what: str, ended: Ended) -> None:
        self._told.faults.append(what + "\n" + "\n".join(ended.output.splitlines()[-30:]))


def _keep_manifest(place: Workplace, command: Command) -> None:
    if command.arguments[0] == "build":
        place.keep_manifest()
