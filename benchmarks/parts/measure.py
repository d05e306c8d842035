"""Runs small statements by dbt-silt and by bare Spark in turn, and measures the parts of their time.

The statements are cases of the benchmarks, on tables of the same size, with the same comparison of results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from benchmarks.cases.append import SmallAppends
from benchmarks.cases.delete import DeleteRange
from benchmarks.cases.merge import InsertOnlyMerge, LargeMerge, SmallMerge
from benchmarks.contestants.bare import BareSpark
from benchmarks.contestants.contestant import Contestant, Need
from benchmarks.contestants.silt import Silt
from benchmarks.data import Scale
from benchmarks.harness import Case, entrants_of, run_case
from benchmarks.parts.spark_jobs import SparkJobs
from benchmarks.parts.trace import Spent, Trace, Tracer


@dataclass(frozen=True)
class Parts:
    """The parts of one statement's time for each contestant; the baseline is the first.

    Attributes:
        contestants: by name, the mean of the middle half of its repetitions, so that the phases add up.
        jobs: by name, the number of Spark's jobs for one statement.
        methods: by name, the calls to Spark, by `phase: method`.
    """

    case: str
    contestants: dict[str, dict[str, Spent]]
    jobs: dict[str, float]
    methods: dict[str, dict[str, Spent]]


@dataclass
class _Traced:
    """A case whose work is traced."""

    case: Case
    tracer: Tracer
    warmups: int
    repetitions: int
    traces: dict[str, list[Trace]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.case.name

    @property
    def needs(self) -> frozenset[Need]:
        return self.case.needs

    def prepare(self, contestant: Contestant) -> None:
        self.case.prepare(contestant)

    def before(self, contestant: Contestant, repetition: int) -> None:
        self.case.before(contestant, repetition)

    def work(self, contestant: Contestant, repetition: int) -> None:
        with self.tracer.statement():
            self.case.work(contestant, repetition)
        trace = self.tracer.traces.pop()
        if repetition >= self.warmups:
            self.traces.setdefault(contestant.name, []).append(trace)

    def result(self, contestant: Contestant, repetition: int) -> DataFrame:
        return self.case.result(contestant, repetition)

    def expected(self) -> DataFrame | None:
        return self.case.expected()

    def finish(self, contestant: Contestant, repetition: int) -> None:
        self.case.finish(contestant, repetition)


def small_statements(scale: Scale) -> list[Case]:
    """The statements that are traced by default."""
    return [SmallAppends(scale), SmallMerge(scale), LargeMerge(scale), InsertOnlyMerge(scale), DeleteRange(scale)]


def measure(spark: SparkSession, folder: Path, cases: Sequence[Case], repetitions: int | None = None) -> list[Parts]:
    """Traces each case in which both dbt-silt and bare Spark take part.

    Args:
        repetitions: of each case; by default, half of its usual repetitions.

    Raises:
        ResultsDifferError: if the contestants' results have different rows.
        ValueError: if no case has both contestants.
    """
    contestants = [BareSpark(spark, folder / "bare"), Silt(spark, folder / "silt")]
    both = [case for case in cases if len(entrants_of(case, contestants)) == len(contestants)]
    if not both:
        raise ValueError(f"{', '.join(case.name for case in cases)}: bare Spark has no such statement to compare with")
    tracer = Tracer(SparkJobs(spark))
    with tracer.installed():
        return [_parts(case, repetitions or -(-case.repetitions // 2), tracer, contestants) for case in both]


def _parts(case: Case, repetitions: int, tracer: Tracer, contestants: Sequence[Contestant]) -> Parts:
    traced = _Traced(case, tracer, min(case.warmups, repetitions), repetitions)
    run_case(traced, contestants)
    middle = {name: _middle_half(traces) for name, traces in traced.traces.items()}
    return Parts(
        case.name,
        {name: _mean([trace.phases for trace in traces]) for name, traces in middle.items()},
        {name: sum(trace.jobs for trace in traces) / len(traces) for name, traces in middle.items()},
        {name: _mean([trace.methods for trace in traces]) for name, traces in middle.items()},
    )


def _middle_half(traces: Sequence[Trace]) -> list[Trace]:
    ordered = sorted(traces, key=lambda trace: trace.seconds)
    left_out = len(ordered) // 4
    return ordered[left_out : len(ordered) - left_out]


def _mean(each: Sequence[dict[str, Spent]]) -> dict[str, Spent]:
    names = {name for spent in each for name in spent}
    return {name: _mean_spent([spent.get(name, Spent()) for spent in each]) for name in names}


def _mean_spent(each: Sequence[Spent]) -> Spent:
    count = len(each)
    return Spent(
        sum(spent.python for spent in each) / count,
        sum(spent.spark for spent in each) / count,
        sum(spent.jobs for spent in each) / count,
        sum(spent.calls for spent in each) / count,
    )
