"""The figures of many rounds: their kills and their results."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.chaos.plan import First
from tests.chaos.story import Told


@dataclass
class Figures:
    """Sums; see Told.

    Attributes:
        kills: by kind of moment.
        ways: kills by the way in which the run was continued.
    """

    kills: dict[str, int] = field(default_factory=dict)
    ways: dict[str, int] = field(default_factory=dict)
    commands: dict[str, int] = field(default_factory=dict)
    rounds: int = 0
    runs: int = 0
    reruns: int = 0
    missed: int = 0
    failing_hooks: int = 0
    interrupts: int = 0
    retries: int = 0
    retries_refused: int = 0
    units_done: int = 0
    units_skipped: int = 0
    rows_lost: int = 0
    rows_doubled: int = 0
    rounds_gone_wrong: int = 0
    seconds: float = 0.0

    @classmethod
    def of(cls, told: Iterable[Told]) -> Figures:
        """Returns the sums over rounds."""
        figures = cls()
        for each in told:
            figures.add(each)
        return figures

    def add(self, told: Told) -> None:
        """Adds the figures of a round."""
        self.kills = _sum(self.kills, Counter(kill.moment.kind for kill in told.kills))
        self.ways = _sum(self.ways, Counter({told.plan.way.value: len(told.kills)}))
        self.commands = _sum(self.commands, Counter(kill.command for kill in told.kills))
        self.rounds += 1
        self.runs += told.runs
        self.reruns += told.reruns
        self.missed += told.missed
        self.failing_hooks += told.plan.first is First.FAILING_HOOK
        self.interrupts += told.plan.first is First.INTERRUPT
        self.retries += told.retries
        self.retries_refused += told.refused
        self.units_done += told.units
        self.units_skipped += told.skips
        self.rows_lost += told.difference.rows_lost if told.difference else 0
        self.rows_doubled += told.difference.rows_doubled if told.difference else 0
        self.rounds_gone_wrong += not told.is_good
        self.seconds += told.seconds

    def merged(self, other: Figures) -> Figures:
        """Returns the sums of both."""
        mine, theirs = asdict(self), asdict(other)
        return Figures(
            **{  # type: ignore[arg-type]
                name: _sum(value, theirs[name]) if isinstance(value, dict) else value + theirs[name]
                for name, value in mine.items()
            }
        )

    @property
    def kill_count(self) -> int:
        return sum(self.kills.values())

    def __str__(self) -> str:
        kinds = ", ".join(f"{kind} {times}" for kind, times in sorted(self.kills.items()))
        ways = ", ".join(f"{way} {times}" for way, times in sorted(self.ways.items()))
        return "\n".join(
            (
                f"{self.kill_count} kills: {kinds}",
                f"continued by: {ways}; dbt retry {self.retries} times, of which it was refused {self.retries_refused}",
                f"{self.failing_hooks} failing hooks, {self.interrupts} interrupts; {self.missed} moments never came",
                f"{self.runs} runs, {self.reruns} of them reruns, in {self.rounds} rounds, {self.seconds:.0f} s",
                f"{self.units_done} units of work done, {self.units_skipped} skipped",
                f"rows lost {self.rows_lost}, rows doubled {self.rows_doubled}, "
                f"rounds gone wrong {self.rounds_gone_wrong}",
            )
        )

    def json(self) -> str:
        """Returns all figures as one line of JSON."""
        return json.dumps({"kill_count": self.kill_count, **asdict(self)})

    def keep(self, path: Path) -> Figures:
        """Adds the figures to those in a file, which is created if it is missing; returns the sums."""
        total = self
        if path.exists():
            total = Figures(**json.loads(path.read_text())).merged(self)
        path.write_text(json.dumps(asdict(total), indent=1) + "\n")
        return total


def _sum(first: dict[str, int], second: dict[str, int]) -> dict[str, int]:
    return dict(Counter(first) + Counter(second))
