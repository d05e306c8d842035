"""Draws the plan of a story's runs from a seed: the moments of kills, and the way in which each run is continued.

A story is the life of a warehouse in rounds; each round is a logical run of all commands that is killed a few times and
continued each time. Later rounds use the tables of earlier rounds.
"""

from __future__ import annotations

import enum
import math
import random
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tests.chaos.steps import Moment, Step

ROUNDS = 2
KILLS_PER_ROUND = 3
CLOUD_KILLS_PER_ROUND = 6
"""The kills of a round whose warehouse is in an object store, where an undisturbed round takes several times longer."""

_LATE_SECONDS = (2.0, 20.0)


class Way(enum.Enum):
    """How the command that continues a killed command gets the same run id."""

    RETRY = "retry"
    """`dbt retry`, or the command that it prints if it is refused."""
    VARIABLE = "vars"
    RESUME = "resume"
    PROFILE = "profile"


class First(enum.Enum):
    """The event in a round before its kills."""

    NOTHING = "nothing"
    FAILING_HOOK = "failing hook"
    INTERRUPT = "interrupt"


@dataclass(frozen=True)
class RoundPlan:
    """A round of a story.

    Attributes:
        kills: the number of the command and the moment of each kill, in order.
        interrupt: the moment of Ctrl-C, or None.
    """

    story: int
    round: int
    way: Way
    first: First
    kills: tuple[tuple[int, Moment], ...]
    interrupt: Moment | None = None
    per_round: int = KILLS_PER_ROUND

    @property
    def first_kill(self) -> int:
        """The number of its first kill among the kills of all stories."""
        return (self.story * ROUNDS + self.round - 1) * self.per_round


@dataclass(frozen=True)
class Life:
    """The life of a command in an undisturbed round: how often each step occurs, and its seconds.

    Attributes:
        start_seconds: until the run is entered in `silt_runs.json`.
    """

    steps: dict[str, int]
    seconds: float
    start_seconds: float


def plan(
    seed: int,
    story: int,
    round_: int,
    lives: Sequence[Life],
    kills: int | None = None,
    per_round: int = KILLS_PER_ROUND,
) -> RoundPlan:
    """Draws the plan of a round.

    Args:
        lives: the lives of the round's commands in an undisturbed round.
        kills: the number of the round's first kills to keep; all by default.
        per_round: the number of kills of each round.
    """
    chance = random.Random(f"{seed}/{story}/{round_}")
    ways = list(Way)
    way = ways[(story + round_ - 1) % len(ways)]
    first = chance.choice(list(First)) if way is Way.RETRY else First.NOTHING
    begin = 0.0 if first is First.NOTHING else chance.uniform(0.05, 0.3)
    interrupt = _at_step(Step.JOURNAL, lives[0], begin, signal.SIGINT)
    commands = [0 if chance.random() < 0.85 else chance.randrange(len(lives)) for _ in range(per_round)]
    moments = [
        (number, moment)
        for number, life in enumerate(lives)
        for moment in _moments(chance, life, commands.count(number), begin if number == 0 else 0.0)
    ]
    pressed = interrupt if first is First.INTERRUPT else None
    return RoundPlan(story, round_, way, first, tuple(moments[:kills]), pressed, per_round)


def _moments(chance: random.Random, life: Life, number: int, done: float) -> Iterator[Moment]:
    """Yields moments that are spread over a command's life, each relative to the moment before it.

    Args:
        done: the part of the life before the first moment.
    """
    for place, kind in _places(chance, life, number, done):
        yield _moment(chance, life, kind, place - done)
        done = place


def _places(chance: random.Random, life: Life, number: int, begin: float) -> list[tuple[float, Step]]:
    """Draws ascending parts of the life with the step to kill at; a step that occurs only at the end is last."""
    places = [(chance.uniform(begin, 1.0), _kind(chance, life)) for _ in range(number)]
    return sorted(((1.0 if kind is Step.RESULTS else place, kind) for place, kind in places), key=lambda each: each[0])


def _kind(chance: random.Random, life: Life) -> Step:
    """Draws the step: 20 % at any time, 5 % during the start, and the rest at a step."""
    drawn = chance.random()
    if drawn < 0.25:
        return Step.START if drawn < 0.05 else Step.ENTRY
    return chance.choice([each for each in Step if each not in (Step.START, Step.ENTRY) and life.steps.get(each.name)])


def _moment(chance: random.Random, life: Life, step: Step, share: float) -> Moment:
    match step:
        case Step.START:
            return Moment(step.name, seconds=chance.uniform(0.05, life.start_seconds))
        case Step.ENTRY:
            return Moment(step.name, seconds=0.001 + (life.seconds - life.start_seconds) * share)
        case Step.LATE | Step.LATE_NAMES:
            return replace(_at_step(step, life, share), seconds=chance.uniform(*_LATE_SECONDS))
        case Step.HOOK | Step.JOURNAL if chance.random() < 0.5:
            return replace(_at_step(step, life, share), seconds=chance.uniform(0.001, 0.2))
    return _at_step(step, life, share)


def _at_step(step: Step, life: Life, share: float, number: int = signal.SIGKILL) -> Moment:
    return Moment(step.name, max(1, math.ceil(life.steps[step.name] * share)), signal=number)
