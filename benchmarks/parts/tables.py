"""Shows the parts of statements as tables."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table

from benchmarks.parts.measure import Parts
from benchmarks.parts.phases import PHASES, REST
from benchmarks.parts.trace import Spent

_KINDS = ("total", "Python", "Spark, no job", "in jobs", "calls")
_CALLS_SHOWN = 12


def parts_table(parts: Parts) -> Table:
    """Returns a line per phase of dbt-silt's statement and of the baseline's, then the sums."""
    baseline, name = parts.contestants
    spent, bare = parts.contestants[name], parts.contestants[baseline]
    table = Table(title=f"{parts.case}: mean milliseconds of the middle half of the repetitions")
    table.add_column("phase", no_wrap=True)
    for column in (*_KINDS, *(f"{baseline.split()[0]}: {kind}" for kind in _KINDS)):
        table.add_column(column, justify="right")
    for phase in (*PHASES, REST):
        if phase in spent or phase in bare:
            table.add_row(phase, *_cells(spent.get(phase)), *_cells(bare.get(phase)))
    table.add_section()
    table.add_row("all", *_cells(_sum(spent)), *_cells(_sum(bare)))
    table.add_row("number of jobs", f"{parts.jobs[name]:.1f}", *[""] * 4, f"{parts.jobs[baseline]:.1f}")
    return table


def calls_table(parts: Parts) -> Table:
    """Returns dbt-silt's longest calls to Spark outside of jobs."""
    _, name = parts.contestants
    table = Table(title=f"{parts.case}: calls to Spark that take longest outside of jobs, milliseconds")
    table.add_column("phase: method", no_wrap=True)
    for column in ("Spark, no job", "in jobs", "calls"):
        table.add_column(column, justify="right")
    longest = sorted(parts.methods[name].items(), key=lambda item: -item[1].spark)
    for method, spent in longest[:_CALLS_SHOWN]:
        table.add_row(method, f"{1000 * spent.spark:,.1f}", f"{1000 * spent.jobs:,.1f}", f"{spent.calls:.1f}")
    return table


def summary_table(every: list[Parts]) -> Table:
    """Returns a line per phase and a column per statement: dbt-silt's milliseconds, sums and the baseline's."""
    table = Table(title="Where the milliseconds of a statement go (Python, analysis and jobs together)")
    table.add_column("phase", no_wrap=True)
    for parts in every:
        table.add_column(parts.case, justify="right")
    (baseline, name) = every[0].contestants
    for phase in (*PHASES, REST):
        cells = [parts.contestants[name].get(phase) for parts in every]
        if any(cells):
            table.add_row(phase, *("" if each is None else f"{1000 * each.seconds:,.1f}" for each in cells))
    table.add_section()
    for contestant in (name, baseline):
        whole = [_sum(parts.contestants[contestant]) for parts in every]
        for title, attribute in (("", "seconds"), (": in jobs", "jobs"), (": Spark, no job", "spark")):
            table.add_row(contestant + title, *(f"{1000 * getattr(each, attribute):,.0f}" for each in whole))
        table.add_row(f"{contestant}: number of jobs", *(f"{parts.jobs[contestant]:.1f}" for parts in every))
    return table


def _cells(spent: Spent | None) -> Iterator[str]:
    if spent is None:
        yield from [""] * len(_KINDS)
        return
    for seconds in (spent.seconds, spent.python, spent.spark, spent.jobs):
        yield f"{1000 * seconds:,.1f}"
    yield f"{spent.calls:.0f}"


def _sum(phases: dict[str, Spent]) -> Spent:
    whole = Spent()
    for spent in phases.values():
        whole = Spent(
            whole.python + spent.python,
            whole.spark + spent.spark,
            whole.jobs + spent.jobs,
            whole.calls + spent.calls,
        )
    return whole
