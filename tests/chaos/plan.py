"""What is done to the runs of a story, drawn from a seed: which moments, and how each is continued.

A story is a warehouse from its first run on: rounds, each a logical run of all commands that is killed a few times and
continued each time. A later round builds on what the rounds before it left.
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
"""Of a round whose warehouse is in an object store, where an undisturbed round takes some times longer."""

_LATE_SECONDS = (2.0, 20.0)


class Way(enum.Enum):
    """How the command that continues a killed one gets the same run id."""

    RETRY = "retry"
    """`dbt retry`; where it is refused, the command that it prints."""
    VARIABLE = "vars"
    RESUME = "resume"
    PROFILE = "profile"


class First(enum.Enum):
    """What happens to a round before it is killed."""

    NOTHING = "nothing"
    FAILING_HOOK = "failing hook"
    INTERRUPT = "interrupt"


@dataclass(frozen=True)
class RoundPlan:
    """A round of a story.

    Attributes:
        kills: the command by its number, and its moment; in the order in which they strike.
        interrupt: when Ctrl-C is pressed, where it is.
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
        """The number of its first kill among those of all stories."""
        return (self.story * ROUNDS + self.round - 1) * self.per_round


@dataclass(frozen=True)
class Life:
    """Of one command in an undisturbed round: how often it comes to each step, and its seconds.

    Attributes:
        start_seconds: until it is entered in `silt_runs.json`.
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
    """The plan of a round.

    Args:
        lives: of the round's commands, undisturbed.
        kills: how many of the round's are wanted: the first; else all.
        per_round: how many each round has.
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
    """Moments that are spread evenly over a command's life: each is as far from the one before as their places are.

    Args:
        done: the part of the life that is over before the first.
    """
    for place, kind in _places(chance, life, number, done):
        yield _moment(chance, life, kind, place - done)
        done = place


def _places(chance: random.Random, life: Life, number: int, begin: float) -> list[tuple[float, Step]]:
    """Parts of the life, ascending, and what is to happen there; what there is only at the end is last."""
    places = [(chance.uniform(begin, 1.0), _kind(chance, life)) for _ in range(number)]
    return sorted(((1.0 if kind is Step.RESULTS else place, kind) for place, kind in places), key=lambda each: each[0])


def _kind(chance: random.Random, life: Life) -> Step:
    """One in five at any time, one in twenty in the start, the others at a step."""
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
