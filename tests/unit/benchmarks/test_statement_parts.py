"""The parts of statements, counted in a real session."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from benchmarks.cases.delete import DeletePartition
from benchmarks.data import Scale
from benchmarks.parts import phases
from benchmarks.parts.measure import Parts, measure, small_statements
from benchmarks.parts.spark_jobs import Interval, SparkJobs, overlap
from benchmarks.parts.tables import calls_table, parts_table, summary_table
from benchmarks.parts.trace import Trace, Tracer
from dbt.adapters.silt.engine.commands.writing import files
from dbt.adapters.silt.engine.statements.execute import dml

TINY = Scale(large=4_000, changed=200, small=20, appended=4, parts=4, partitioned=40)


@pytest.mark.parametrize(
    ("intervals", "seconds"),
    [
        ([], 0),
        ([Interval(0, 1), Interval(4, 5)], 0),
        ([Interval(0, 2)], 1),
        ([Interval(1.5, 2), Interval(1.5, 2.5)], 1),
        ([Interval(0, 9)], 2),
    ],
)
def test_overlapping_intervals_of_jobs_count_once(intervals: list[Interval], seconds: float) -> None:
    assert overlap(Interval(1, 3), intervals) == seconds


def test_every_function_of_a_phase_is_wrapped_and_restored() -> None:
    before = files.write
    seen = []
    with phases.wrapped(lambda phase, function: seen.append(phase) or (lambda *_: phase)):  # type: ignore[func-returns-value]
        assert set(seen) == set(phases.PHASES)
        assert files.write() == "prepare the write"  # type: ignore[call-arg, comparison-overlap]
        assert dml.merge_keys() == "plan the clauses, place the columns", "imported there by its name"  # type: ignore[attr-defined, call-arg, comparison-overlap]
    assert files.write is before


def test_a_phase_whose_function_is_missing_raises_an_error_and_wraps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    before = files.write
    monkeypatch.setitem(phases.PHASES, "gone", ("commands.writing.files:not_there",))
    with pytest.raises(AttributeError, match="not_there"), phases.wrapped(lambda *_: None):  # type: ignore[arg-type]
        pass
    assert files.write is before


def traced(spark: SparkSession, statement: str) -> Trace:
    tracer = Tracer(SparkJobs(spark))
    with tracer.installed(), tracer.statement():
        spark.sql(statement).collect()
    return tracer.traces.pop()


def test_a_statement_is_divided_into_python_calls_and_jobs(spark: SparkSession) -> None:
    trace = traced(spark, "select sum(id) from range(0, 1000, 1, 2)")
    assert trace.jobs >= 1
    analysis = trace.phases["analyse the query"]
    assert analysis.jobs == 0
    assert trace.methods["analyse the query: sql"].calls == 1
    rest = trace.phases[phases.REST]
    assert rest.jobs > 0
    assert all(part >= 0 for spent in trace.phases.values() for part in (spent.python, spent.spark))


def test_a_statement_without_a_job_counts_no_jobs(spark: SparkSession) -> None:
    tracer = Tracer(SparkJobs(spark))
    with tracer.installed(), tracer.statement():
        assert spark.sql("select 1 as one").columns == ["one"]
    assert tracer.traces.pop().jobs == 0


def test_a_case_without_bare_spark_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no such statement"):
        measure(spark, tmp_path, [DeletePartition(TINY)])


@pytest.fixture(scope="module")
def measured(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> list[Parts]:
    return measure(spark, tmp_path_factory.mktemp("parts"), small_statements(TINY), repetitions=1)


def test_each_statement_has_parts_of_both_contestants(measured: list[Parts]) -> None:
    assert [parts.case.split()[0] for parts in measured] == ["append", "merge", "merge", "insert-only", "delete"]
    for parts in measured:
        assert list(parts.contestants) == ["bare Spark", "dbt-silt"]
        assert {"parse the statement", "pin the tables", "Spark's write", "commit"} <= set(
            parts.contestants["dbt-silt"]
        )
        assert all(jobs >= 1 for jobs in parts.jobs.values())


def test_the_tables_show_every_phase_and_both_sums(measured: list[Parts]) -> None:
    console = Console(width=200)
    with console.capture() as printed:
        console.print(parts_table(measured[1]), calls_table(measured[1]), summary_table(measured))
    shown = printed.get()
    for text in ("parse the statement", "Spark's write: parquet", "number of jobs", "dbt-silt: in jobs", "bare Spark"):
        assert text in shown
