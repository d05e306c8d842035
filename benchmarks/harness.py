"""Runs cases: every contestant runs the same operation in turn, and times count only if the results are equal.

A *contestant* is one way to keep a table (bare Spark, dbt-silt, ...). A *case* is one operation on it. In each
repetition, each contestant runs it once (A B A B ...), so that a slow minute of the machine affects all contestants.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import DataFrame

from benchmarks.content import Fingerprint, fingerprint
from benchmarks.contestants.contestant import Contestant, Need


class Case(Protocol):
    """One operation, the same for every contestant."""

    name: str
    needs: frozenset[Need]
    warmups: int
    repetitions: int

    def prepare(self, contestant: Contestant) -> None:
        """Creates the start tables, once; not timed."""

    def before(self, contestant: Contestant, repetition: int) -> None:
        """Prepares one repetition; not timed."""

    def work(self, contestant: Contestant, repetition: int) -> None:
        """Runs the operation; timed."""

    def result(self, contestant: Contestant, repetition: int) -> DataFrame:
        """Returns the rows that the operation wrote or returned."""

    def expected(self) -> DataFrame | None:
        """Returns the rows that the result must equal, or None if equal results of all contestants are sufficient."""

    def finish(self, contestant: Contestant, repetition: int) -> None:
        """Removes the tables of the last repetition."""


class ResultsDifferError(Exception):
    """Two contestants had different results: their times cannot be compared."""


@dataclass(frozen=True)
class Measurement:
    """The times of one contestant in one case."""

    contestant: str
    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The median time, in seconds."""
        return statistics.median(self.seconds)

    @property
    def worst(self) -> float:
        """The longest time, in seconds."""
        return max(self.seconds)


@dataclass(frozen=True)
class CaseResult:
    """The times of the contestants that take part in one case.

    Attributes:
        measurements: of each contestant, the baseline first if it takes part.
        has_baseline: whether the baseline takes part.
    """

    case: str
    rows: int
    measurements: tuple[Measurement, ...]
    has_baseline: bool = True

    def of(self, contestant: str) -> Measurement | None:
        """Returns the contestant's times, or None if it does not take part."""
        return next((each for each in self.measurements if each.contestant == contestant), None)

    def ratio(self, contestant: str) -> float | None:
        """Returns the contestant's median divided by the baseline's, or None if either does not take part."""
        measured = self.of(contestant)
        return measured.median / self.measurements[0].median if self.has_baseline and measured else None


def run_case(
    case: Case, contestants: Sequence[Contestant], clock: Callable[[], float] = time.perf_counter
) -> CaseResult:
    """Runs the warm-ups, then the repetitions in turn, and compares the results of the last repetition.

    Args:
        contestants: the baseline first. Contestants without the capabilities that the case needs are omitted.

    Raises:
        ResultsDifferError: if the contestants' results have different rows.
        ValueError: if no contestant can take part.
    """
    entrants = entrants_of(case, contestants)
    for contestant in entrants:
        case.prepare(contestant)
    last = case.warmups + case.repetitions - 1
    seconds: dict[str, list[float]] = {contestant.name: [] for contestant in entrants}
    for repetition in range(last + 1):
        for contestant in entrants:
            took = timed(case, contestant, repetition, clock)
            if repetition >= case.warmups:
                seconds[contestant.name].append(took)
    prints = {contestant.name: fingerprint(case.result(contestant, last)) for contestant in entrants}
    expected = case.expected()
    if expected is not None:
        prints["expected"] = fingerprint(expected)
    rows = agreed(case.name, prints).rows
    for contestant in entrants:
        case.finish(contestant, last)
    measurements = tuple(Measurement(name, tuple(times)) for name, times in seconds.items())
    return CaseResult(case.name, rows, measurements, has_baseline=entrants[0] is contestants[0])


def entrants_of(case: Case, contestants: Sequence[Contestant]) -> list[Contestant]:
    """Returns the contestants with the capabilities that the case needs, in order.

    Raises:
        ValueError: if no contestant has them.
    """
    entrants = [each for each in contestants if case.needs <= each.offers]
    if not entrants:
        raise ValueError(f"{case.name}: no contestant can take part")
    return entrants


def agreed(case: str, prints: Mapping[str, Fingerprint]) -> Fingerprint:
    """Returns the fingerprint that all contestants share.

    Raises:
        ResultsDifferError: if their fingerprints differ.
    """
    if len(set(prints.values())) != 1:
        told = ", ".join(f"{name}: {value}" for name, value in prints.items())
        raise ResultsDifferError(f"{case}: the contestants' results differ: {told}")
    return next(iter(prints.values()))


def chosen(cases: Iterable[Case], names: Sequence[str]) -> list[Case]:
    """Returns the cases with these names, in the order of `cases`, or all cases without names.

    Raises:
        ValueError: if no case has a name.
    """
    by_name = {case.name: case for case in cases}
    unknown = sorted(set(names) - set(by_name))
    if unknown:
        raise ValueError(f"no case {', '.join(unknown)}; there are: {', '.join(by_name)}")
    return [case for name, case in by_name.items() if not names or name in names]


def timed(case: Case, contestant: Contestant, repetition: int, clock: Callable[[], float]) -> float:
    """Prepares one repetition, runs it, and returns its seconds."""
    case.before(contestant, repetition)
    started = clock()
    case.work(contestant, repetition)
    return clock() - started
