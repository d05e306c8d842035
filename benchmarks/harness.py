"""Runs cases: every contestant does the same operation in turn, and times count only if the results are equal.

A *contestant* is one way to keep a table (bare Spark, dbt-silt, ...). A *case* is one operation on it. In each
repetition each contestant does it once (A B A B ...), so that a slow minute of the machine affects all of them.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import DataFrame

from benchmarks.content import Fingerprint, fingerprint
from benchmarks.contestants.contestant import Contestant


class Case(Protocol):
    """One operation, the same for every contestant."""

    name: str
    warmups: int
    repetitions: int

    def prepare(self, contestant: Contestant) -> None:
        """Makes the start tables; once, not timed."""

    def before(self, contestant: Contestant, repetition: int) -> None:
        """Prepares one repetition; not timed."""

    def work(self, contestant: Contestant, repetition: int) -> None:
        """Runs the operation; this is timed."""

    def result(self, contestant: Contestant, repetition: int) -> DataFrame:
        """The rows that the operation wrote or returned."""

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
    """The times of all contestants in one case; the first contestant is the baseline."""

    case: str
    rows: int
    measurements: tuple[Measurement, ...]

    def ratio(self, contestant: str) -> float:
        """The contestant's median divided by the baseline's."""
        medians = {measurement.contestant: measurement.median for measurement in self.measurements}
        return medians[contestant] / self.measurements[0].median


def run_case(
    case: Case, contestants: Sequence[Contestant], clock: Callable[[], float] = time.perf_counter
) -> CaseResult:
    """Runs the warm-ups, then the repetitions in turn, and compares the results of the last repetition.

    Raises:
        ResultsDifferError: the contestants' results are not the same rows.
    """
    for contestant in contestants:
        case.prepare(contestant)
    last = case.warmups + case.repetitions - 1
    seconds: dict[str, list[float]] = {contestant.name: [] for contestant in contestants}
    for repetition in range(last + 1):
        for contestant in contestants:
            took = _timed(case, contestant, repetition, clock)
            if repetition >= case.warmups:
                seconds[contestant.name].append(took)
    prints = {contestant.name: fingerprint(case.result(contestant, last)) for contestant in contestants}
    rows = agreed(case.name, prints).rows
    for contestant in contestants:
        case.finish(contestant, last)
    return CaseResult(case.name, rows, tuple(Measurement(name, tuple(times)) for name, times in seconds.items()))


def agreed(case: str, prints: Mapping[str, Fingerprint]) -> Fingerprint:
    """The one fingerprint that all contestants share.

    Raises:
        ResultsDifferError: their fingerprints differ.
    """
    if len(set(prints.values())) != 1:
        told = ", ".join(f"{name}: {value}" for name, value in prints.items())
        raise ResultsDifferError(f"{case}: the contestants' results differ: {told}")
    return next(iter(prints.values()))


def chosen(cases: Iterable[Case], names: Sequence[str]) -> list[Case]:
    """The cases of those names, in the order of `cases`; all if no name is given.

    Raises:
        ValueError: there is no case of a name.
    """
    by_name = {case.name: case for case in cases}
    unknown = sorted(set(names) - set(by_name))
    if unknown:
        raise ValueError(f"no case {', '.join(unknown)}; there are: {', '.join(by_name)}")
    return [case for name, case in by_name.items() if not names or name in names]


def _timed(case: Case, contestant: Contestant, repetition: int, clock: Callable[[], float]) -> float:
    case.before(contestant, repetition)
    started = clock()
    case.work(contestant, repetition)
    return clock() - started
